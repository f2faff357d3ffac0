//! What a page of the chat shows, as a function of the store and of the turns that run. A page is made of regions; the
//! live updates are the regions that have become different.

use jiff::tz::TimeZone;
use kai_assistant::agent::conversation::{self, Conversation, ConversationId, Entry, Reached, Whole};
use kai_assistant::db::DbError;
use kai_assistant::settings::Values;
use kai_assistant::words::Words;
use kai_assistant::{heartbeat, lease};
use rusqlite::Transaction;
use serde::Deserialize;

use super::bin::{Deleted, UndoPlace};
use super::state::Web;
use super::turns::{Question, Sight};
use crate::app::App;
use crate::app::sessions::{self, Session};
#[cfg(feature = "foss")]
use crate::call::sms::DraftRow;
#[cfg(feature = "foss")]
use crate::commands::sms;

/// What an address asks to see.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Place {
    /// `None` for a conversation that has not begun.
    #[serde(default)]
    pub(super) chat: Option<ConversationId>,
    /// Words to look for in the conversations.
    #[serde(default)]
    pub(super) q: String,
    /// The long draft that the person wants to see whole.
    #[serde(default)]
    pub(super) whole: Option<i64>,
}

/// What the store says, read in one go.
pub(super) struct Stored {
    pub(super) chat: Option<Whole>,
    pub(super) reached: Reached,
    /// Somebody answers in it: one of our turns, or a command.
    pub(super) held: bool,
    pub(super) list: Vec<Conversation>,
    pub(super) heartbeat: Option<ConversationId>,
    #[cfg(feature = "foss")]
    pub(super) drafts: Vec<DraftRow>,
    pub(super) values: Values,
    /// The session has ended in the meantime.
    pub(super) signed_out: bool,
}

/// Reads what a place shows. `known` is what was read before: a conversation in which nothing was said since is not
/// read again.
pub(super) async fn stored(
    web: &Web,
    place: &Place,
    session: &Session,
    known: Option<Stored>,
) -> Result<Stored, DbError> {
    #[cfg(feature = "foss")]
    let drafts = sms::drafts(&web.app).await?;
    let (place, now, cookie) = (place.clone(), web.app.clock.now(), session.token());
    let read = move |tx: &Transaction<'_>| {
        let (values, session) = sessions::recognise(tx, Some(cookie), now)?;
        let reached = place.chat.map_or(Ok(Reached::default()), |id| conversation::reached(tx, id))?;
        let held = place.chat.map_or(Ok(false), |id| lease::held(tx, &id.lease(), now))?;
        let chat = match (place.chat, known) {
            (Some(_), Some(before)) if before.reached == reached && before.chat.is_some() => before.chat,
            (Some(id), _) => conversation::whole(tx, id)?,
            (None, _) => None,
        };
        let list = if place.q.trim().is_empty() {
            conversation::list(tx)?
        } else {
            conversation::search(tx, &place.q)?
        };
        let heartbeat = heartbeat::store::banner(tx)?;
        let signed_out = session.is_none();
        let stored = Stored {
            chat,
            reached,
            held,
            list,
            heartbeat,
            #[cfg(feature = "foss")]
            drafts,
            values,
            signed_out,
        };
        Ok(stored)
    };
    web.app.db.read(read).await
}

/// Everything a page is made of.
pub(super) struct View<'a> {
    pub(super) place: &'a Place,
    pub(super) stored: &'a Stored,
    pub(super) csrf: &'a str,
    pub(super) words: &'static Words,
    pub(super) zone: TimeZone,
    /// Conversations that are being answered.
    pub(super) busy: Vec<ConversationId>,
    pub(super) sight: Option<Sight>,
    pub(super) questions: Vec<(ConversationId, Question)>,
    pub(super) deleted: Option<Deleted>,
}

impl<'a> View<'a> {
    pub(super) fn of(web: &Web, place: &'a Place, stored: &'a Stored, csrf: &'a str) -> Self {
        let busy = stored.list.iter().map(|listed| listed.id).filter(|id| web.turns.is_running(*id));
        Self {
            place,
            stored,
            csrf,
            words: App::words(&stored.values, &web.app.env),
            zone: web.app.clock.zone(),
            busy: busy.collect(),
            sight: place.chat.and_then(|id| web.turns.sight(id)),
            questions: web.turns.questions(),
            deleted: web.bin.newest(UndoPlace::InChats, web.app.clock.now()),
        }
    }

    pub(super) fn running(&self) -> bool {
        self.sight.as_ref().is_some_and(|sight| sight.ended.is_none())
    }

    /// The turn waits for the person's click.
    pub(super) fn asks(&self) -> bool {
        self.sight.as_ref().is_some_and(|sight| !sight.questions.is_empty())
    }

    /// A command answers in this conversation.
    pub(super) fn answered_elsewhere(&self) -> bool {
        let open = |chat: &Whole| newest(&chat.entries).is_some_and(|last| !last.is_answer());
        self.stored.held && self.sight.is_none() && self.stored.chat.as_ref().is_some_and(open)
    }

    pub(super) fn coming(&self) -> Option<&Sight> {
        let newest = self.stored.chat.as_ref().and_then(|chat| newest(&chat.entries));
        coming(self.sight.as_ref(), newest)
    }
}

/// The newest thing that the person and Kai said to each other; a report is no part of that.
fn newest(entries: &[Entry]) -> Option<&Entry> {
    entries.iter().rfind(|entry| !entry.report)
}

/// What is still being said. An answer is stored a moment before its turn is over, and must not be there twice.
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
            stopped: false,
            report: false,
            meaning: None,
        };
        let asked = entry(Message::User { text: "Count".to_owned() });
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
