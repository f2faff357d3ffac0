//! The data that a page of the chat is rendered from: what the store holds, and the state of the running turns.

use std::collections::BTreeMap;
use std::sync::Arc;

use kai_assistant::agent::conversation::{self, Conversation, ConversationId, Entry, Kind, Revision, Whole};
use kai_assistant::agent::listing::{self, Listed, PAGE, Shelf};
use kai_assistant::agent::queued::{self, Queued};
use kai_assistant::agent::search::{self, Found};
use kai_assistant::db::DbError;
use kai_assistant::settings::Values;
use kai_assistant::{heartbeat, lease};
use kai_words::Lang;
use rusqlite::Transaction;
use serde::Deserialize;

use super::bin::{Deleted, UndoPlace};
use super::drafts::{self, Drafts};
use super::pairing::{self, Pairings};
use super::remedy::Trouble;
use super::state::Web;
use super::times::Times;
use super::turns::{PendingApproval, Sight};
use crate::app::App;
use crate::app::sessions::{self, Session};
use crate::commands::headline::headline;
use crate::commands::inbox::COUNTED;
use crate::commands::models::{self, Choice};

/// What the URL of a chat page asks to see.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Place {
    /// `None` for a new conversation that has no messages yet.
    #[serde(default)]
    pub(super) chat: Option<ConversationId>,
    /// Words to search the conversations for.
    #[serde(default)]
    pub(super) q: String,
    /// The long draft that the user wants to see in full.
    #[serde(default)]
    pub(super) whole: Option<i64>,
    /// The draft that the user edits.
    #[serde(default)]
    pub(super) edit: Option<i64>,
    /// The whole query, which says what is unfolded in the list.
    #[serde(default)]
    pub(super) query: BTreeMap<String, String>,
}

/// The most chats that the list shows, however far somebody goes on.
const MOST_LISTED: usize = 100 * PAGE;

impl Place {
    /// The value of a query parameter; empty if there is none.
    pub(super) fn says(&self, name: &str) -> &str {
        self.query.get(name).map(String::as_str).unwrap_or_default()
    }

    /// The same place with other values for these query parameters; an empty one leaves its parameter out.
    pub(super) fn with(&self, changes: &[(&str, &str)]) -> String {
        let mut query: BTreeMap<&str, &str> =
            self.query.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        query.extend(changes.iter().copied());
        let pairs = query.into_iter().filter(|(_, value)| !value.is_empty());
        format!("?{}", form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish())
    }

    /// How many chats the list shows.
    pub(super) fn listed(&self) -> usize {
        self.says("listed").parse().unwrap_or(PAGE).clamp(PAGE, MOST_LISTED)
    }

    /// The message that a search led to.
    fn hit(&self) -> Option<i64> {
        self.says("hit").parse().ok()
    }
}

/// The chats in the list.
pub(super) enum ChatList {
    All {
        chats: Listed<Conversation>,
        asked: Asked,
    },
    /// What a search found.
    Found(Listed<Found>),
}

/// Questions of a command line, which the list keeps apart.
pub(super) struct Asked {
    pub(super) count: usize,
    pub(super) is_unfolded: bool,
    /// Empty unless they are unfolded.
    pub(super) rows: Listed<Conversation>,
}

impl ChatList {
    fn ids(&self) -> Vec<ConversationId> {
        match self {
            Self::All { chats, asked } => {
                chats.rows.iter().chain(&asked.rows.rows).map(|chat| chat.id).collect()
            }
            Self::Found(found) => found.rows.iter().map(|found| found.chat.id).collect(),
        }
    }

    fn read(tx: &Transaction<'_>, place: &Place, chat: Option<&Whole>) -> Result<Self, DbError> {
        let most = place.listed();
        if !place.q.trim().is_empty() {
            return Ok(Self::Found(search::search(tx, &place.q, most)?));
        }
        let is_here = chat.is_some_and(|chat| chat.asked && !chat.pinned);
        let is_unfolded = if is_here { place.says("asked") != "no" } else { place.says("asked") == "yes" };
        let rows = if is_unfolded { listing::shelf(tx, Shelf::Asked, most)? } else { Listed::default() };
        let asked = Asked { count: listing::count(tx, Shelf::Asked)?, is_unfolded, rows };
        Ok(Self::All { chats: listing::shelf(tx, Shelf::Chats, most)?, asked })
    }
}

/// What the store holds for a page. All but the drafts is read in one transaction.
pub(super) struct Stored {
    pub(super) chat: Option<Whole>,
    /// Changes whenever the conversation does.
    pub(super) reached: Revision,
    /// The conversation is being answered, by a turn of ours or by a command in another process.
    pub(super) held: bool,
    pub(super) list: ChatList,
    /// Where in the conversation the message stands that a search led to.
    pub(super) hit: Option<usize>,
    /// What waits until the running answer has ended.
    pub(super) queued: Vec<Queued>,
    /// The models that can be chosen for the conversation.
    pub(super) models: Vec<Choice>,
    /// The model that was chosen.
    pub(super) model: Option<String>,
    /// The conversation with a heartbeat's report that the user has not seen yet.
    pub(super) heartbeat: Option<ConversationId>,
    /// The first sentence of that report.
    pub(super) headline: Option<String>,
    pub(super) drafts: Drafts,
    /// How many messages in the inbox nobody has read, as far as they are counted; `None` if there is no inbox.
    pub(super) unread: Option<usize>,
    pub(super) values: Values,
    /// The session has ended since the page was opened.
    pub(super) signed_out: bool,
}

/// Reads what a page shows. `known` is what was read before: the conversation is not read again if it has not changed.
pub(super) async fn stored(
    web: &Web,
    place: &Place,
    session: &Session,
    known: Option<Stored>,
) -> Result<Stored, DbError> {
    let drafts = drafts::stored(&web.app).await?;
    let (place, now, cookie) = (place.clone(), web.app.clock.now(), session.token());
    let (inbox, app) = (web.app.inbox.clone(), Arc::clone(&web.app));
    let read = move |tx: &Transaction<'_>| {
        let (values, session) = sessions::recognise(tx, Some(cookie), now)?;
        let reached = place.chat.map_or(Ok(Revision::default()), |id| conversation::reached(tx, id))?;
        let held = place.chat.map_or(Ok(false), |id| lease::held(tx, &id.lease(), now))?;
        let chat = match (place.chat, known) {
            (Some(_), Some(before)) if before.reached == reached && before.chat.is_some() => before.chat,
            (Some(id), _) => conversation::whole(tx, id)?,
            (None, _) => None,
        };
        let chat = named(tx, place.chat, chat)?;
        let list = ChatList::read(tx, &place, chat.as_ref())?;
        let hit = match (place.chat, place.hit()) {
            (Some(id), Some(entry)) => listing::position(tx, id, entry)?,
            _ => None,
        };
        let queued = place.chat.map_or(Ok(vec![]), |id| queued::all(tx, id))?;
        let model = place.chat.map_or(Ok(None), |id| conversation::model(tx, id))?;
        let models = models::choices(tx, &app)?;
        let heartbeat = heartbeat::store::banner(tx)?;
        let headline = heartbeat::store::raised(tx)?.and_then(|report| headline(&report));
        let signed_out = session.is_none();
        let unread = (!inbox.is_empty()).then(|| inbox.unread(tx, now, COUNTED)).transpose()?;
        Ok(Stored {
            chat,
            reached,
            held,
            list,
            hit,
            queued,
            models,
            model,
            heartbeat,
            headline,
            drafts,
            unread,
            values,
            signed_out,
        })
    };
    web.app.db.read(read).await
}

/// The conversation with the name and the place that it has now: they change without its messages.
fn named(
    tx: &Transaction<'_>,
    id: Option<ConversationId>,
    chat: Option<Whole>,
) -> Result<Option<Whole>, DbError> {
    let (Some(id), Some(chat)) = (id, chat) else { return Ok(None) };
    let (name, pinned) = listing::placed(tx, id)?;
    Ok(Some(Whole { name, pinned, ..chat }))
}

/// Everything that a page of the chat is rendered from.
pub(super) struct View<'a> {
    pub(super) place: &'a Place,
    pub(super) stored: &'a Stored,
    pub(super) csrf: &'a str,
    pub(super) lang: Lang,
    pub(super) times: Times,
    /// Conversations that are being answered.
    pub(super) busy: Vec<ConversationId>,
    /// The state of this conversation's turn.
    pub(super) sight: Option<Sight>,
    /// Calls that wait for approval, in any conversation.
    pub(super) questions: Vec<(ConversationId, PendingApproval)>,
    /// Why the first queued message could not be sent by itself.
    pub(super) unsent: Option<Trouble>,
    pub(super) deleted: Option<Deleted>,
    /// Phones that ask to be paired.
    pub(super) pairings: Pairings,
}

impl<'a> View<'a> {
    pub(super) fn of(web: &Web, place: &'a Place, stored: &'a Stored, csrf: &'a str) -> Self {
        let lang = App::lang(&stored.values, &web.app.env);
        let busy = stored.list.ids().into_iter().filter(|id| web.turns.is_running(*id));
        Self {
            place,
            stored,
            csrf,
            lang,
            times: Times { lang, zone: web.app.clock.zone(), now: web.app.clock.now() },
            busy: busy.collect(),
            sight: place.chat.and_then(|id| web.turns.sight(id)),
            questions: web.turns.questions(),
            unsent: place.chat.and_then(|id| web.turns.unsent(id)),
            deleted: web.bin.newest(UndoPlace::InChats, web.app.clock.now()),
            pairings: pairing::waiting(&web.app),
        }
    }

    /// The title of the conversation.
    pub(super) fn title(&self) -> &'a str {
        let of = |chat: &'a Whole| title(chat.name.as_deref(), chat.kind, &chat.title, self.lang);
        self.stored.chat.as_ref().map_or(self.lang.chat_new(), of)
    }

    /// Is a turn of the page running in this conversation?
    pub(super) fn running(&self) -> bool {
        self.sight.as_ref().is_some_and(|sight| sight.ended.is_none())
    }

    /// Is the turn waiting for the user's approval?
    pub(super) fn asks(&self) -> bool {
        self.sight.as_ref().is_some_and(|sight| !sight.questions.is_empty())
    }

    /// Is another process, such as a command, answering in this conversation?
    pub(super) fn answered_elsewhere(&self) -> bool {
        let open = |chat: &Whole| newest(&chat.entries).is_some_and(|last| !last.is_answer());
        self.stored.held && self.sight.is_none() && self.stored.chat.as_ref().is_some_and(open)
    }

    /// The turn whose answer is not stored yet, if any.
    pub(super) fn coming(&self) -> Option<&Sight> {
        let newest = self.stored.chat.as_ref().and_then(|chat| newest(&chat.entries));
        coming(self.sight.as_ref(), newest)
    }
}

/// The title that the page shows: the name that the user gave the chat, or what it is called by itself. The chat with
/// the heartbeat's reports is named in the user's language.
pub(super) fn title<'a>(name: Option<&'a str>, kind: Kind, title: &'a str, lang: Lang) -> &'a str {
    name.unwrap_or(if kind == Kind::Heartbeat { lang.list_heartbeat() } else { title })
}

/// The newest entry that is not a heartbeat's report: reports are not part of the exchange between the user and Kai.
fn newest(entries: &[Entry]) -> Option<&Entry> {
    entries.iter().rfind(|entry| !entry.report)
}

/// The turn, unless its answer is stored already. An answer is stored shortly before its turn ends, and must not be
/// shown twice.
fn coming<'a>(sight: Option<&'a Sight>, newest: Option<&Entry>) -> Option<&'a Sight> {
    sight.filter(|_| !newest.is_some_and(Entry::is_answer))
}

#[cfg(test)]
mod tests {
    use kai_llm::Message;

    use super::*;

    #[test]
    fn an_answer_that_is_stored_is_not_coming_any_more() {
        let entry = |message| Entry {
            message,
            answered_by: None,
            usage: None,
            at: 0,
            took: None,
            stopped: false,
            report: false,
            meaning: None,
            files: vec![],
            instead: None,
        };
        let asked = entry(Message::user("Count".to_owned()));
        let text = "One.".to_owned();
        let answered = entry(Message::Assistant { text: text.clone(), calls: vec![], signature: None });
        let stopped = Entry { stopped: true, ..answered.clone() };
        let sight = Sight { answer: text, ..Sight::default() };
        for (newest, comes) in
            [(None, true), (Some(&asked), true), (Some(&stopped), true), (Some(&answered), false)]
        {
            assert_eq!(coming(Some(&sight), newest).is_some(), comes, "{newest:?}");
        }
        let report = Entry { report: true, ..answered };
        assert_eq!(newest(&[asked.clone(), report]), Some(&asked), "a report answers nothing");
    }
}
