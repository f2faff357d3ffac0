//! SMS: polls, reads and searches messages, and reports the status.

mod status;

use std::time::Duration;

use jiff::Timestamp;
use kai_assistant::access::Access;
use kai_assistant::db::DbError;
use kai_assistant::moment::local;
use kai_assistant::pending;
use kai_assistant::phones::{self, Phone};
use kai_assistant::settings::{self, SMS_ENABLED};
use kai_assistant::sms::archive::View;
use kai_assistant::sms::poll::{self, PollError, Polled, Poller};
use kai_assistant::sms::port::ReadError;
use kai_assistant::sms::queue::{PREVIEW, QUEUE, Queued};
use kai_assistant::sms::received::{self, Found, NotRead, PhoneNames};
use kai_assistant::sms::search::Wanted;
use kai_assistant::sms::store;
use kai_assistant::sms::{SmsId, names};
use kai_assistant::source::SourceId;
use kai_assistant::untrusted::Untrusted;
use kai_words::{Said, said};
use serde_json::Value;

use crate::app::App;
use crate::app::messages::{PAIR, no_phone, start_kai};
use crate::call::json;
use crate::call::sms::{SmsCall, SmsPolled, SmsRow, SmsWhole};
use crate::failure::Failure;

pub(crate) use status::{ago, is_supported, known, status};

pub(crate) async fn answer(app: &App, call: SmsCall) -> Result<Value, Failure> {
    match call {
        SmsCall::Poll => json(poll(app).await?),
        SmsCall::List => json(list(app).await?),
        SmsCall::Known => json(known(app).await?),
        SmsCall::Read { id } => json(read(app, id).await?),
        SmsCall::Search { text } => json(search(app, &text).await?),
        SmsCall::Forget => json(forget(app).await?),
    }
}

/// Deletes what is stored of the phone's messages; returns how many were queued. Refused while reading is on, because
/// Kai would store them again at once.
pub(crate) async fn forget(app: &App) -> Result<usize, Failure> {
    let forgotten = app.db.write(|tx| {
        if settings::load(tx)?.on(&SMS_ENABLED) {
            return Ok::<_, DbError>(None);
        }
        store::forget_all(tx).map(Some)
    });
    forgotten.await?.ok_or_else(|| {
        Failure::failed(said::sms_still_on()).try_instead("kai settings set sms_enabled false")
    })
}

/// Whether a poll is in progress.
pub(crate) async fn polling(app: &App) -> Result<bool, DbError> {
    let now = app.clock.now();
    app.db.read(move |tx| poll::under_way(tx, now)).await
}

/// How many times to retry while another poll is in progress.
const PATIENCE: u32 = 75;
const PAUSE: Duration = Duration::from_millis(200);

/// Polls the phone that Kai runs on, and asks connected paired phones what is new on them.
pub(crate) async fn poll(app: &App) -> Result<SmsPolled, Failure> {
    let paired = Paired::now(app).await?;
    // First, so that a phone that fails keeps nobody else from being asked.
    let phones_asked = paired.ask_for_news(app);
    let own = match &app.messages.phone.poller {
        Some(poller) => Some(poll_own(poller).await?),
        None => None,
    };
    if own.is_none() && phones_asked == 0 {
        return Err(paired.nobody_asked(app));
    }
    let queued = app.db.read(|tx| pending::count(tx, QUEUE)).await?;
    let Polled { fresh, more, seeded } = own.unwrap_or(Polled { fresh: 0, more: false, seeded: false });
    Ok(SmsPolled { fresh, more, seeded, queued, phones_asked })
}

async fn poll_own(poller: &Poller) -> Result<Polled, Failure> {
    let mut outcome = poller.poll().await;
    for _ in 0..PATIENCE {
        if !matches!(outcome, Err(PollError::Busy)) {
            break;
        }
        tokio::time::sleep(PAUSE).await;
        outcome = poller.poll().await;
    }
    outcome.map_err(|error| poll_failure(&error))
}

/// The paired phones, and whether messages are read at all.
struct Paired {
    phones: Vec<Phone>,
    is_on: bool,
}

impl Paired {
    async fn now(app: &App) -> Result<Self, DbError> {
        let read = app
            .db
            .read(|tx| Ok::<_, DbError>((phones::store::all(tx)?, settings::load(tx)?.on(&SMS_ENABLED))));
        let (mut phones, is_on) = read.await?;
        phones.retain(Phone::is_paired);
        Ok(Self { phones, is_on })
    }

    fn read(&self) -> impl Iterator<Item = &Phone> {
        self.phones.iter().filter(|phone| self.is_on && phone.switches.read_sms)
    }

    /// Asks the connected phones that are read; returns how many.
    fn ask_for_news(&self, app: &App) -> usize {
        let connected: Vec<&Phone> =
            self.read().filter(|phone| status::is_connected(app, phone.source)).collect();
        for phone in &connected {
            app.messages.network.ask_for_news(phone.source);
        }
        connected.len()
    }

    /// Why there was nobody to ask.
    fn nobody_asked(&self, app: &App) -> Failure {
        if self.phones.is_empty() {
            no_phone()
        } else if !self.is_on {
            poll_failure(&PollError::Off)
        } else if self.read().next().is_none() {
            not_read_by_any()
        } else if app.daemon.is_none() {
            start_kai()
        } else {
            Failure::failed(said::access_paired_away())
        }
    }
}

/// Phones are paired, and the messages of none may be read.
pub(crate) fn not_read_by_any() -> Failure {
    Failure::failed(said::access_paired_unread()).try_instead("kai phones set PHONE read_sms on")
}

fn poll_failure(error: &PollError) -> Failure {
    match error {
        PollError::Phone(error) => read_failure(error),
        PollError::Off => Failure::failed(error.said()).try_instead("kai settings set sms_enabled true"),
        other => Failure::failed(other.said()),
    }
}

/// The seed specification's message, and what to do about it.
fn read_failure(error: &ReadError) -> Failure {
    Failure::failed(match error {
        ReadError::NotPermitted(what_to_do) => said::access_not_granted_yet(what_to_do),
        ReadError::Failed(sentence) => sentence.clone(),
    })
}

/// The messages queued for the next heartbeat, oldest first.
pub(crate) async fn list(app: &App) -> Result<Vec<SmsRow>, Failure> {
    let zone = app.clock.zone();
    let rows = app.db.read(move |tx| {
        let phones = PhoneNames::of(tx)?;
        let row = |sms: Queued| {
            Ok(SmsRow {
                id: sms.id,
                name: names::beside(tx, sms.address.as_written())?.as_ref().map(written),
                phone: phones.name(sms.source),
                from: written(&sms.address),
                date: sms.date,
                date_local: local(Timestamp::from_millisecond(sms.date).unwrap_or_default(), &zone),
                preview: written(&sms.preview),
                is_read: sms.read,
            })
        };
        let waiting = pending::waiting::<Queued>(tx, QUEUE)?.into_iter();
        waiting.map(|waiting| row(waiting.entry)).collect::<Result<Vec<_>, DbError>>()
    });
    Ok(rows.await?)
}

fn written(text: &Untrusted) -> String {
    text.as_written().to_owned()
}

fn not_read(error: NotRead) -> Failure {
    match error {
        NotRead::NoPhone => no_phone(),
        NotRead::Unknown(id) => Failure::failed(format!("There is no received SMS with the id {}.", id.0)),
        NotRead::Phone(error) => read_failure(&error),
        NotRead::Store(sentence) => Failure::failed(sentence),
    }
}

/// Reads a message for the user; nothing is redacted, and it is no longer unread.
pub(crate) async fn read(app: &App, id: SmsId) -> Result<SmsWhole, Failure> {
    let found = app.messages.phone.received.message(View::Inbox, id).await.map_err(not_read)?;
    let opened = found.clone();
    let beside = app.db.write(move |tx| {
        received::open(tx, &opened)?;
        let Found { source, sms } = opened;
        Ok::<_, DbError>((names::beside(tx, sms.address.as_written())?, PhoneNames::of(tx)?.name(source)))
    });
    let ((name, phone), sms) = (beside.await?, found.sms);
    Ok(SmsWhole {
        id: sms.id,
        name: name.as_ref().map(written),
        phone,
        from: written(&sms.address),
        date: sms.date.as_millisecond(),
        date_local: local(sms.date, &app.clock.zone()),
        body: written(&sms.body),
        is_read: sms.read,
    })
}

const MOST_FOUND: usize = 20;

pub(crate) async fn search(app: &App, text: &str) -> Result<Vec<SmsRow>, Failure> {
    let wanted = Wanted::new(text)
        .ok_or_else(|| Failure::usage("The search text is empty. Type what to search for."))?;
    let search = app.messages.phone.received.search(View::Inbox, wanted, MOST_FOUND).await;
    let (zone, found) = (app.clock.zone(), search.map_err(not_read)?.found);
    let rows = app.db.read(move |tx| {
        let phones = PhoneNames::of(tx)?;
        let row = |Found { source, sms }: Found| {
            Ok(SmsRow {
                id: sms.id,
                name: names::beside(tx, sms.address.as_written())?.as_ref().map(written),
                phone: phones.name(source),
                from: written(&sms.address),
                date: sms.date.as_millisecond(),
                date_local: local(sms.date, &zone),
                preview: sms.body.line(PREVIEW),
                is_read: sms.read,
            })
        };
        found.into_iter().map(row).collect::<Result<Vec<_>, DbError>>()
    });
    Ok(rows.await?)
}

/// Turns reading on, like the page's toggle: asks the phone for access, and treats messages already on the phone as
/// seen.
pub(crate) async fn turn_reading_on(app: &App) -> Result<(), Failure> {
    let poller = app.messages.phone.poller().map_err(stays_off)?;
    if let Access::Denied(what_to_do) = app.messages.phone.inbox()?.ask().await {
        let denied = ReadError::NotPermitted(what_to_do);
        return Err(stays_off(read_failure(&denied)));
    }
    poller.turn_on().await.map_err(|error| stays_off(poll_failure(&error)))
}

/// The failure of turning reading on.
pub(crate) fn stays_off(mut failure: Failure) -> Failure {
    failure.message = said::sms_read_stays_off(ended(failure.message));
    failure
}

/// Checks that sending can be turned on. The permission cannot be checked without sending, so this only requires a
/// phone that can send, or a paired one.
pub(crate) async fn can_turn_sending_on(app: &App) -> Result<(), Failure> {
    let paired = app.db.read(phones::store::all).await?;
    if !paired.is_empty() || !app.door.senders.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(said::sms_send_stays_off(said::lacks_sending())).try_instead(PAIR))
}

/// The reason as a whole sentence.
fn ended(why: Said) -> Said {
    if why.to_string().ends_with('.') { why } else { said::sentence_ended(why) }
}

/// The button "Grant permission" for reading: makes the platform ask, then polls for new messages.
pub(crate) async fn grant(app: &App) -> Result<(), Failure> {
    if let Access::Denied(what_to_do) = app.messages.phone.inbox()?.ask().await {
        return Err(read_failure(&ReadError::NotPermitted(what_to_do)));
    }
    poll(app).await.map(drop)
}

/// Forgets that the phone refused to send.
pub(crate) fn forget_denial(app: &App) {
    let unknown = Access::Silent(said::access_phone_unasked());
    if let Some(known) = app.door.senders.access(SourceId::HERE) {
        known.learn(unknown, app.clock.now());
    }
}

/// Why the phone last refused to send, if it did. The platform only asks the user when something is sent.
pub(crate) fn sending_denied(app: &App) -> Option<Said> {
    match app.door.senders.access(SourceId::HERE)?.last() {
        Some(Access::Denied(what_to_do)) => Some(what_to_do),
        _ => None,
    }
}
