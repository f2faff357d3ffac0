//! Stores drafts and the attempts to send them.

use jiff::Timestamp;
use kai_words::Said;
use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::{
    Channel, Draft, DraftId, NewDraft, ReplyTo, Status, everybody, number, origin_from, origin_name,
};
use crate::db::{self, DbError};
use crate::gate::RunKind;
use crate::guests::rules::MOST_WAITING;
use crate::guests::{self, Did, GuestId};
use crate::ledger::{self, Record};
use crate::untrusted::Untrusted;

/// The most drafts in the outbox. Needing more would mean that a model is out of control.
pub const CAPACITY: u32 = 20;

/// Why a draft was not staged.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    #[error(
        "{CAPACITY} drafts are already waiting for the user, which is the limit. Ask the user to send or discard some."
    )]
    Full,
    #[error(
        "{MOST_WAITING} drafts of yours are already waiting for the user, which is the limit. Ask the user to send or \
         discard some in Kai."
    )]
    GuestFull,
    #[error(transparent)]
    Store(#[from] DbError),
}

/// Stages a draft for the user to send. If the outbox is full, old drafts are deleted to make room, sent ones before
/// failed ones; one that waits or may have been sent never is.
pub fn stage(tx: &Transaction<'_>, new: &NewDraft, now: Timestamp) -> Result<Draft, StageError> {
    let guest = new.guest.map_or(Ok(None), |guest| name_of(tx, guest))?;
    if let Some(waiting) = again(tx, new, guest.as_deref())? {
        // What the user has made of it since is theirs, so the model hears of its own words only.
        let NewDraft { to, body, in_reply_to, .. } = new.clone();
        return Ok(Draft { to, body, in_reply_to, ..waiting });
    }
    if let Some(guest) = &guest
        && waiting_of(tx, guest)? >= MOST_WAITING
    {
        return Err(StageError::GuestFull);
    }
    make_room(tx)?;
    let to_all = everybody(&new.to, new.mail.as_ref());
    let first_contact = !new.known_contact && !reached_before(tx, new.channel, &to_all)?;
    let mail = new.mail.as_ref().map(db::json).transpose()?;
    tx.execute(
        "INSERT INTO drafts (channel, phone, recipient, app, body, reply_kind, reply_to, quoted, first_contact, origin,
                             conversation, created_at, guest, mail, status)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, 'PENDING')",
        params![
            new.channel.as_str(),
            new.phone,
            new.to,
            new.app,
            new.body,
            new.in_reply_to.as_ref().map(ReplyTo::kind),
            new.in_reply_to.as_ref().map(ReplyTo::id),
            new.quoted.as_ref().and_then(quotation),
            first_contact,
            origin_name(new.origin),
            new.conversation,
            now.as_millisecond(),
            guest,
            mail,
        ],
    )
    .map_err(DbError::from)?;
    let draft = get(tx, DraftId(tx.last_insert_rowid()))?
        .ok_or(DbError::Other(rusqlite::Error::QueryReturnedNoRows))?;
    let record = Record::Draft {
        draft: draft.id.0,
        channel: draft.channel.as_str().to_owned(),
        to: to_all,
        digest: draft.digest(),
        conversation: draft.conversation,
        phone: draft.phone,
        app: draft.app.clone(),
        guest,
    };
    ledger::append(tx, &record, now)?;
    if let Some(guest) = new.guest {
        guests::store::note(tx, guest, new.tool(), Did::Drafted(draft.id.0), now)?;
    }
    Ok(draft)
}

/// The name of a guest that stages a draft. One that the user forgot meanwhile stages nothing.
fn name_of(tx: &Transaction<'_>, guest: GuestId) -> Result<Option<String>, DbError> {
    let known = guests::store::get(tx, guest)?;
    known.map(|guest| Some(guest.name)).ok_or(DbError::Other(rusqlite::Error::QueryReturnedNoRows))
}

/// How many drafts of the guest wait for the user's tap.
fn waiting_of(tx: &Transaction<'_>, guest: &str) -> Result<usize, DbError> {
    let sql = format!("SELECT count(*) FROM drafts WHERE {KEPT} AND status = 'PENDING' AND guest = ?1");
    let count: i64 = tx.query_row(&sql, [guest], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or_default())
}

/// Stages a draft that the user wrote themselves. It waits for their tap like any other.
pub fn stage_own(tx: &Transaction<'_>, new: &NewDraft, now: Timestamp) -> Result<Draft, StageError> {
    let draft = stage(tx, new, now)?;
    tx.execute("UPDATE drafts SET own = 1 WHERE id = ?1", [draft.id.0]).map_err(DbError::from)?;
    Ok(Draft { own: true, ..draft })
}

/// How many characters of an answered message are kept with its draft.
pub const QUOTED: usize = 500;

/// The beginning of an answered message, with "…" if it was cut; `None` if the message is blank.
fn quotation(text: &Untrusted) -> Option<String> {
    let text = text.as_written().replace("\r\n", "\n");
    let text = text.trim();
    let kept: String = text.chars().take(QUOTED).collect();
    let more = if kept.len() < text.len() { "…" } else { "" };
    (!kept.is_empty()).then_some(kept + more)
}

/// The same draft, if it already waits from an earlier unattended run. Such a run is repeated if it fails, and must not
/// stage its draft twice, even if the user has edited the first one. A guest may repeat a call too; it hears of its own
/// drafts only.
fn again(tx: &Transaction<'_>, new: &NewDraft, guest: Option<&str>) -> Result<Option<Draft>, DbError> {
    if new.origin == RunKind::Chat {
        return Ok(None);
    }
    let wanted = new.digest();
    let sql = format!("{SELECT} WHERE {KEPT} AND staged = ?1 AND status = 'PENDING' AND guest IS ?2");
    if let Some(edited) = tx.prepare_cached(&sql)?.query_row(params![wanted, guest], draft).optional()? {
        return Ok(Some(edited));
    }
    let is_same = |draft: &Draft| {
        draft.status == Status::Pending && draft.digest() == wanted && draft.guest.as_deref() == guest
    };
    Ok(all(tx)?.into_iter().find(is_same))
}

fn make_room(tx: &Transaction<'_>) -> Result<(), StageError> {
    while count(tx)? >= CAPACITY {
        let finished = format!(
            "SELECT id FROM drafts WHERE {KEPT} AND status IN ('SENT', 'FAILED') ORDER BY status DESC, id LIMIT 1"
        );
        let oldest: Option<i64> =
            tx.query_row(&finished, [], |row| row.get(0)).optional().map_err(DbError::from)?;
        let Some(id) = oldest else { return Err(StageError::Full) };
        tx.execute("DELETE FROM drafts WHERE id = ?1", [id]).map_err(DbError::from)?;
    }
    Ok(())
}

fn count(tx: &Transaction<'_>) -> Result<u32, DbError> {
    Ok(tx.query_row(&format!("SELECT count(*) FROM drafts WHERE {KEPT}"), [], |row| row.get(0))?)
}

/// Stores a draft as the user has edited it, in one statement with what a repeated run is compared with.
pub(super) fn rewrite(tx: &Transaction<'_>, before: &Draft, after: &Draft) -> Result<(), DbError> {
    let sql = "UPDATE drafts SET recipient = ?2, body = ?3, reply_kind = ?4, reply_to = ?5, quoted = ?6,
                      first_contact = ?7, composed_at = NULL, staged = coalesce(staged, ?8), mail = ?9 WHERE id = ?1";
    let mail = after.mail.as_ref().map(db::json).transpose()?;
    tx.prepare_cached(sql)?.execute(params![
        after.id.0,
        after.to,
        after.body,
        after.in_reply_to.as_ref().map(ReplyTo::kind),
        after.in_reply_to.as_ref().map(ReplyTo::id),
        after.quoted.as_ref().map(Untrusted::as_written),
        after.first_contact,
        before.digest(),
        mail,
    ])?;
    set_status(tx, after.id, &after.status)
}

/// Whether messages were sent before to all of these. A conversation may have any name, also that of a number.
pub(super) fn reached_before(tx: &Transaction<'_>, channel: Channel, to: &str) -> Result<bool, DbError> {
    if channel == Channel::Email {
        return to.split(", ").try_fold(true, |all, address| Ok(all && mailed_before(tx, address)?));
    }
    let sql =
        "SELECT EXISTS (SELECT 1 FROM attempts WHERE recipient = ?1 AND outcome = 'sent' AND way <> 'reply')";
    Ok(tx.query_row(sql, [to], |row| row.get(0))?)
}

/// Whether the user has sent a message to this number or address.
pub(crate) fn has_written_to(tx: &Transaction<'_>, channel: Channel, address: &str) -> Result<bool, DbError> {
    let number = number::recipient(address).ok().filter(|_| channel == Channel::Sms);
    reached_before(tx, channel, number.as_deref().unwrap_or(address))
}

/// Whether a mail to this address was sent before, perhaps with others.
fn mailed_before(tx: &Transaction<'_>, address: &str) -> Result<bool, DbError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM attempts
                              WHERE outcome = 'sent' AND instr(lower(', ' || recipient || ', '), lower(', ' || ?1 || ', ')) > 0)";
    Ok(tx.query_row(sql, [address], |row| row.get(0))?)
}

pub(super) const SELECT: &str =
    "SELECT id, channel, recipient, body, reply_kind, first_contact, origin, conversation, created_at, status, reason,
            attempts, quoted, phone, app, reply_to, composed_at, own, discarded_at,
            staged IS NOT NULL, guest, mail FROM drafts";
/// Those that the user has not discarded.
const KEPT: &str = "discarded_at IS NULL";

/// All drafts, oldest first.
pub fn all(tx: &Transaction<'_>) -> Result<Vec<Draft>, DbError> {
    let mut rows = tx.prepare_cached(&format!("{SELECT} WHERE {KEPT} ORDER BY id"))?;
    Ok(rows.query_map([], draft)?.collect::<rusqlite::Result<_>>()?)
}

const UNWATCHED: &str =
    "discarded_at IS NULL AND status = 'PENDING' AND origin IN ('heartbeat', 'task', 'guest')";

/// The waiting drafts that unattended runs (heartbeats and tasks) and guests staged, oldest first.
pub fn unwatched(tx: &Transaction<'_>) -> Result<Vec<Draft>, DbError> {
    let mut rows = tx.prepare_cached(&format!("{SELECT} WHERE {UNWATCHED} ORDER BY id"))?;
    Ok(rows.query_map([], draft)?.collect::<rusqlite::Result<_>>()?)
}

/// All of [`unwatched`] if the user has not been notified of at least one of them, otherwise nothing. Marks them as
/// announced at once, before the notification is shown, so that it is not repeated every minute. If it cannot be
/// shown, the caller has kept [`unannounced`] and calls [`put_back_unannounced`].
pub fn take_unannounced(tx: &Transaction<'_>) -> Result<Vec<Draft>, DbError> {
    let told = format!("UPDATE drafts SET announced = 1 WHERE announced = 0 AND {UNWATCHED}");
    if tx.execute(&told, [])? == 0 { Ok(vec![]) } else { unwatched(tx) }
}

/// The drafts of [`unwatched`] of which the user has not been notified.
pub fn unannounced(tx: &Transaction<'_>) -> Result<Vec<DraftId>, DbError> {
    let sql = format!("SELECT id FROM drafts WHERE announced = 0 AND {UNWATCHED} ORDER BY id");
    let mut rows = tx.prepare_cached(&sql)?;
    Ok(rows.query_map([], |row| row.get(0).map(DraftId))?.collect::<rusqlite::Result<_>>()?)
}

/// Marks drafts again as not announced, because nobody could be told of them. Those that no longer wait are left alone.
pub fn put_back_unannounced(tx: &Transaction<'_>, drafts: &[DraftId]) -> Result<(), DbError> {
    let mut row =
        tx.prepare_cached(&format!("UPDATE drafts SET announced = 0 WHERE id = ?1 AND {UNWATCHED}"))?;
    drafts.iter().try_for_each(|id| row.execute([id.0]).map(drop))?;
    Ok(())
}

pub fn get(tx: &Transaction<'_>, id: DraftId) -> Result<Option<Draft>, DbError> {
    let mut row = tx.prepare_cached(&format!("{SELECT} WHERE {KEPT} AND id = ?1"))?;
    Ok(row.query_row([id.0], draft).optional()?)
}

pub(super) fn draft(row: &Row<'_>) -> rusqlite::Result<Draft> {
    let (status, reason): (String, String) = (row.get(9)?, row.get(10)?);
    let reason = Said::from_stored(&reason);
    let answered: Option<(String, String)> = row.get::<_, Option<String>>(4)?.zip(row.get(15)?);
    let composed_at: Option<i64> = row.get(16)?;
    let mail: Option<String> = row.get(21)?;
    Ok(Draft {
        id: DraftId(row.get(0)?),
        channel: Channel::stored(&row.get::<_, String>(1)?),
        phone: row.get(13)?,
        to: row.get(2)?,
        app: row.get(14)?,
        body: row.get(3)?,
        mail: mail.and_then(|json| serde_json::from_str(&json).ok()),
        in_reply_to: answered.and_then(|(kind, id)| ReplyTo::stored(&kind, id)),
        quoted: row.get::<_, Option<String>>(12)?.map(Untrusted::new),
        first_contact: row.get(5)?,
        origin: origin_from(&row.get::<_, String>(6)?),
        guest: row.get(20)?,
        conversation: row.get(7)?,
        own: row.get(17)?,
        edited: row.get(19)?,
        created_at: Timestamp::from_millisecond(row.get(8)?).unwrap_or_default(),
        status: match status.as_str() {
            "PENDING" => Status::Pending,
            "SENDING" => Status::Sending,
            "SENT" => Status::Sent(reason),
            "FAILED" => Status::Failed(reason),
            _ => Status::Unknown(reason),
        },
        attempts: row.get(11)?,
        composed_at: composed_at.and_then(|at| Timestamp::from_millisecond(at).ok()),
    })
}

pub(super) fn set_status(tx: &Transaction<'_>, id: DraftId, status: &Status) -> Result<(), DbError> {
    // Only what waits can be open on the phone.
    let sql = "UPDATE drafts SET status = ?2, reason = ?3,
                      composed_at = CASE ?2 WHEN 'PENDING' THEN composed_at END WHERE id = ?1";
    let values =
        params![id.0, status.state().as_str(), status.reason().map(Said::stored).unwrap_or_default()];
    tx.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

pub(super) fn delete(tx: &Transaction<'_>, id: DraftId) -> Result<(), DbError> {
    tx.execute("DELETE FROM drafts WHERE id = ?1", [id.0])?;
    Ok(())
}

/// How an attempt is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// As an SMS or a mail.
    Send,
    /// As an SMS that the user sends in the phone's own app, which is opened with the text.
    Compose,
    /// As the reply that a notification offers.
    Reply,
}

impl Way {
    fn as_str(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Compose => "compose",
            Self::Reply => "reply",
        }
    }

    fn stored(name: &str) -> Self {
        [Self::Compose, Self::Reply].into_iter().find(|way| way.as_str() == name).unwrap_or(Self::Send)
    }
}

/// One attempt to send a draft, from a tap that was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) id: i64,
    pub(super) draft: DraftId,
    pub(super) at: Timestamp,
    pub(super) way: Way,
    /// How many messages such as this one the phone listed before, besides those of earlier attempts; `None` if nobody
    /// looked.
    pub(super) foreign_before: Option<u32>,
}

/// Records an attempt before the phone is called. The draft becomes SENDING; one that is opened on the phone waits on,
/// with the time at which it was opened.
pub(super) fn begin(
    tx: &Transaction<'_>,
    draft: &Draft,
    way: Way,
    handle: Option<&str>,
    now: Timestamp,
) -> Result<Attempt, DbError> {
    let (status, composed_at) = match way {
        Way::Send | Way::Reply => ("SENDING", None),
        Way::Compose => ("PENDING", Some(now.as_millisecond())),
    };
    tx.execute(
        "UPDATE drafts SET status = ?2, composed_at = ?3, reason = '', attempts = attempts + 1 WHERE id = ?1",
        params![draft.id.0, status, composed_at],
    )?;
    tx.execute(
        "INSERT INTO attempts (draft, phone, recipient, digest, way, handle, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            draft.id.0,
            draft.phone,
            draft.everybody(),
            draft.digest(),
            way.as_str(),
            handle,
            now.as_millisecond()
        ],
    )?;
    Ok(Attempt { id: tx.last_insert_rowid(), draft: draft.id, at: now, way, foreign_before: None })
}

/// Stores the outcome of an attempt. Updates the draft's status too, unless the draft has a newer attempt that counts,
/// or is no longer SENDING or UNKNOWN, or open on the phone.
pub(super) fn end(tx: &Transaction<'_>, attempt: Attempt, status: &Status) -> Result<(), DbError> {
    let outcome = match status {
        Status::Sent(_) => "sent",
        Status::Failed(_) => "not_sent",
        Status::Unknown(_) | Status::Pending | Status::Sending => "unknown",
    };
    conclude(tx, attempt, outcome)?;
    if is_open(tx, attempt)? { set_status(tx, attempt.draft, status) } else { Ok(()) }
}

/// Takes an attempt back that certainly reached no phone: the draft is again what it was before.
pub(super) fn take_back(tx: &Transaction<'_>, attempt: Attempt, before: &Draft) -> Result<(), DbError> {
    conclude(tx, attempt, "not_sent")?;
    if !is_open(tx, attempt)? {
        return Ok(());
    }
    set_status(tx, before.id, &before.status)?;
    let composed_at = before.composed_at.map(Timestamp::as_millisecond);
    tx.execute("UPDATE drafts SET composed_at = ?2 WHERE id = ?1", params![before.id.0, composed_at])?;
    Ok(())
}

fn conclude(tx: &Transaction<'_>, attempt: Attempt, outcome: &str) -> Result<(), DbError> {
    tx.execute("UPDATE attempts SET outcome = ?2 WHERE id = ?1", params![attempt.id, outcome])?;
    Ok(())
}

/// Whether what becomes of the draft still depends on this attempt.
fn is_open(tx: &Transaction<'_>, attempt: Attempt) -> Result<bool, DbError> {
    let open = get(tx, attempt.draft)?.is_some_and(|draft| match draft.status {
        Status::Sending | Status::Unknown(_) => true,
        Status::Pending => attempt.way == Way::Compose && draft.composed_at.is_some(),
        Status::Sent(_) | Status::Failed(_) => false,
    });
    Ok(open && is_last(tx, attempt)?)
}

/// Whether no later attempt on the draft may have sent it.
fn is_last(tx: &Transaction<'_>, attempt: Attempt) -> Result<bool, DbError> {
    let sql = "SELECT NOT EXISTS (SELECT 1 FROM attempts WHERE draft = ?1 AND id > ?2 AND outcome IS NOT 'not_sent')";
    Ok(tx.query_row(sql, params![attempt.draft.0, attempt.id], |row| row.get(0))?)
}

/// The last attempt on a draft that may have sent it.
pub(super) fn last_attempt(tx: &Transaction<'_>, draft: DraftId) -> Result<Option<Attempt>, DbError> {
    let mut row = tx.prepare_cached(
        "SELECT id, at, way, foreign_before FROM attempts WHERE draft = ?1 AND outcome IS NOT 'not_sent'
         ORDER BY id DESC LIMIT 1",
    )?;
    let attempt = |row: &Row<'_>| {
        Ok(Attempt {
            id: row.get(0)?,
            draft,
            at: Timestamp::from_millisecond(row.get(1)?).unwrap_or_default(),
            way: Way::stored(&row.get::<_, String>(2)?),
            foreign_before: row.get(3)?,
        })
    };
    Ok(row.query_row([draft.0], attempt).optional()?)
}

/// Notes how many messages such as this one the phone listed before the attempt.
pub(super) fn note_foreign(tx: &Transaction<'_>, attempt: Attempt, count: u32) -> Result<(), DbError> {
    tx.execute("UPDATE attempts SET foreign_before = ?2 WHERE id = ?1", params![attempt.id, count])?;
    Ok(())
}

/// Whether a draft other than this one may have used the reply id. A phone takes each only once.
pub(super) fn is_used(tx: &Transaction<'_>, handle: &str, draft: DraftId) -> Result<bool, DbError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM attempts
                              WHERE handle = ?1 AND draft <> ?2 AND outcome IS NOT 'not_sent')";
    Ok(tx.query_row(sql, params![handle, draft.0], |row| row.get(0))?)
}

/// Which of the other attempts are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    /// Those that may have been sent.
    MayHaveBeenSent,
    /// Those that were sent.
    WereSent,
}

/// Counts the other attempts between the two times, with the same text to the same number by the same phone. Their
/// messages in the sent box do not belong to this attempt, so in doubt the draft stays unknown. What was opened on the
/// phone may be sent there within a day; if it was this draft, that message is its own.
pub(super) fn others(
    tx: &Transaction<'_>,
    draft: &Draft,
    attempt: Attempt,
    (from, to): (Timestamp, Timestamp),
    which: Others,
) -> Result<usize, DbError> {
    let mut rows = tx.prepare_cached(
        "SELECT draft, recipient, digest, outcome FROM attempts
         WHERE id <> ?1 AND phone = ?2 AND outcome IS NOT 'not_sent' AND way <> 'reply'
               AND at BETWEEN ?3 - CASE way WHEN 'compose' THEN 86400000 ELSE 0 END AND ?4
               AND NOT (draft = ?5 AND way = 'compose' AND digest = ?6)",
    )?;
    let (from, to) = (from.as_millisecond(), to.as_millisecond());
    let about_then = rows
        .query_map(params![attempt.id, draft.phone, from, to, draft.id.0, draft.digest()], rival)?
        .collect::<rusqlite::Result<Vec<Rival>>>()?;
    let mut count = 0;
    for rival in about_then.iter().filter(|rival| number::same(&rival.recipient, &draft.to)) {
        let counted = which == Others::MayHaveBeenSent || rival.outcome.as_deref() == Some("sent");
        let same_text = text_of(tx, rival)?.is_none_or(|body| body.trim() == draft.body.trim());
        count += usize::from(counted && same_text);
    }
    Ok(count)
}

/// Another attempt about the same time.
struct Rival {
    draft: DraftId,
    recipient: String,
    digest: String,
    outcome: Option<String>,
}

fn rival(row: &Row<'_>) -> rusqlite::Result<Rival> {
    Ok(Rival {
        draft: DraftId(row.get(0)?),
        recipient: row.get(1)?,
        digest: row.get(2)?,
        outcome: row.get(3)?,
    })
}

/// The text of an attempt. `None` if its draft was deleted or edited since: then it may have been any text.
fn text_of(tx: &Transaction<'_>, rival: &Rival) -> Result<Option<String>, DbError> {
    let unchanged = |draft: &Draft| draft.digest() == rival.digest;
    Ok(get(tx, rival.draft)?.filter(unchanged).map(|draft| draft.body))
}
