//! Drafts that wait, as notifications tell of them.

use kai_assistant::db::DbError;
use kai_assistant::outbox::Draft;
use kai_assistant::outbox::store as drafts;
use kai_assistant::untrusted::Untrusted;
use kai_words::Lang;
use rusqlite::Transaction;

use super::phones::name_of;

/// The characters of a draft's text in a notification.
const PREVIEW: usize = 240;
/// The characters of a recipient's name there.
const RECIPIENT: usize = 80;

/// Drafts that wait, as a notification tells it.
pub(crate) struct NewDrafts {
    pub(crate) title: String,
    pub(crate) message: String,
    pub(crate) count: usize,
}

/// What to tell about drafts that were not announced yet; marks them as announced.
pub(crate) fn new_drafts(tx: &Transaction<'_>, lang: Lang) -> Result<Option<NewDrafts>, DbError> {
    let waiting = drafts::take_unannounced(tx)?;
    let to = waiting.iter().map(|draft| Ok(to(draft, name_of(tx, draft)?.as_ref())));
    let to = to.collect::<Result<Vec<_>, DbError>>()?;
    Ok(describe(&waiting, to, lang))
}

fn describe(waiting: &[Draft], mut to: Vec<String>, lang: Lang) -> Option<NewDrafts> {
    let count = waiting.len();
    let message = match waiting {
        [] => return None,
        [only] => {
            let body = Untrusted::new(only.body.as_str()).line(PREVIEW);
            lang.drafts_news_one(to.join(""), body)
        }
        _ => {
            to.dedup();
            lang.drafts_news_several(to.join(", "))
        }
    };
    Some(NewDrafts { title: lang.drafts_news(count), message, count })
}

/// The recipient in one line. Others chose the names of contacts and of conversations.
fn to(draft: &Draft, name: Option<&Untrusted>) -> String {
    let to = Untrusted::new(draft.recipient()).line(RECIPIENT);
    match name {
        Some(name) => format!("{} · {to}", name.line(RECIPIENT)),
        None => to,
    }
}

/// The path to the first pending draft on the page.
pub(crate) fn pending_draft_path(tx: &Transaction<'_>) -> Result<Option<String>, DbError> {
    Ok(drafts::unwatched(tx)?.first().map(|draft| format!("/#draft-{}", draft.id.0)))
}
