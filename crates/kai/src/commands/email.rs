//! Mail accounts: adds, tests and removes them, looks for new mail, reads and searches it.

use futures_util::future::join_all;
use jiff::tz::TimeZone;
use kai_assistant::db::DbError;
use kai_assistant::email::account::{Account, Credentials, Security, Server};
use kai_assistant::email::adding::{self, Wish};
use kai_assistant::email::mailboxes::NotRead;
use kai_assistant::email::poll::{self, PollError, Polled};
use kai_assistant::email::port::{Found, Header, Mailbox, Which};
use kai_assistant::email::presets::{self, NoServer};
use kai_assistant::email::{EmailId, kept, queue, store, sync};
use kai_assistant::moment::local;
use kai_assistant::outbox::address;
use kai_assistant::pending;
use kai_assistant::secret::Secret;
use kai_words::{Said, said};
use rusqlite::Transaction;
use serde_json::Value;

use crate::app::App;
use crate::app::mail::Mail;
use crate::call::drafts::EditCall;
use crate::call::email::{
    AccountPolled, AccountRow, AccountTest, AddAccount, AttachmentRow, EmailCall, EmailFound, EmailPolled,
    EmailRow, EmailWhole,
};
use crate::call::json;
use crate::failure::Failure;

pub(crate) async fn answer(app: &App, call: EmailCall) -> Result<Value, Failure> {
    match call {
        EmailCall::List => json(list(app).await?),
        EmailCall::Add(new) => json(add(app, new).await?),
        EmailCall::Test { account } => json(test(app, &account).await?),
        EmailCall::Remove { account } => json(remove(app, &account).await?),
        EmailCall::Poll { account } => json(poll(app, account).await?),
        EmailCall::Read { id } => json(read(app, id).await?),
        EmailCall::Search { text } => json(search(app, &text).await?),
    }
}

/// The way to mail servers; the demo's are only there while it runs.
fn mail(app: &App) -> Result<&Mail, Failure> {
    app.mail.as_ref().ok_or_else(|| Failure::failed(said::accounts_not_in_demo()))
}

/// The accounts, in the order in which they were added.
pub(crate) async fn list(app: &App) -> Result<Vec<AccountRow>, DbError> {
    app.db.read(|tx| store::all(tx)?.iter().map(|account| row(tx, account)).collect()).await
}

fn row(tx: &Transaction<'_>, account: &Account) -> Result<AccountRow, DbError> {
    let sync = sync::sync(tx, account.source)?;
    let shares = pending::by_phone(tx, queue::QUEUE)?;
    let share = shares.iter().find(|share| share.phone == account.source);
    Ok(AccountRow {
        address: account.address.clone(),
        user: account.user.clone(),
        imap: shown(&account.imap),
        smtp: shown(&account.smtp),
        token_command: matches!(account.credentials, Credentials::TokenCommand(_)),
        queued: share.map(|share| share.waiting).unwrap_or_default(),
        dropped: share.map(|share| share.dropped).unwrap_or_default(),
        counted: sync::bulk(tx, account.source)?,
        last_sync: sync.last_sync.map(jiff::Timestamp::as_millisecond),
        last_attempt: sync.last_attempt.map(jiff::Timestamp::as_millisecond),
        last_error: sync.last_error,
    })
}

/// A server with its port, and how the connection is encrypted.
fn shown(server: &Server) -> String {
    let security = match server.security {
        Security::Tls => "TLS",
        Security::StartTls => "STARTTLS",
        Security::Plain => "unencrypted",
    };
    format!("{}:{} ({security})", server.host, server.port)
}

/// Whether an account is looked into right now.
pub(crate) async fn polling(app: &App) -> Result<bool, DbError> {
    let now = app.clock.now();
    app.db.read(move |tx| poll::under_way(tx, now)).await
}

/// Adds an account that Kai can sign in to. What is in its inbox now counts as seen.
pub(crate) async fn add(app: &App, new: AddAccount) -> Result<AccountRow, Failure> {
    let mail = mail(app)?;
    let credentials = match (new.password, new.token_command) {
        (_, Some(command)) => Credentials::TokenCommand(command),
        (Some(password), None) if !password.is_empty() => Credentials::Password(Secret::new(password)),
        (_, None) => return Err(Failure::usage(said::accounts_no_password())),
    };
    let (imap, smtp) = (typed(new.imap, Which::Imap)?, typed(new.smtp, Which::Smtp)?);
    let wish = Wish { address: new.address, imap, smtp, user: new.user, credentials };
    let tried = |step: Said| tracing::debug!(%step, "adding a mail account");
    let found = adding::find(mail.servers.as_ref(), &wish, &tried).await;
    let new = found.map_err(|why| Failure::failed(why.said()))?;
    let now = app.clock.now();
    let added = app.db.write(move |tx| store::add(tx, &new, now)).await;
    let account = added.map_err(|why| Failure::failed(why.to_string()))?;
    if let Err(error) = mail.poller.poll(account.source).await {
        // The next tick tries again.
        tracing::warn!(%error, "the first look into an account failed");
    }
    mail.push.poke();
    Ok(app.db.read(move |tx| row(tx, &account)).await?)
}

/// A server as it was typed.
fn typed(server: Option<String>, which: Which) -> Result<Option<Server>, Failure> {
    let read = |typed: String| {
        let wrong = |NoServer| Failure::usage(said::accounts_no_server(&typed));
        presets::server(&typed, which).map_err(wrong)
    };
    server.map(read).transpose()
}

/// The account of that address.
async fn account(app: &App, address: &str) -> Result<Account, Failure> {
    let wanted = address.trim().to_owned();
    let found = app.db.read(move |tx| store::by_address(tx, &wanted)).await?;
    found.ok_or_else(|| Failure::failed(said::accounts_unknown(address)).try_instead("kai email list"))
}

/// Signs in to both servers of an account.
pub(crate) async fn test(app: &App, address: &str) -> Result<AccountTest, Failure> {
    let (mail, account) = (mail(app)?, account(app, address).await?);
    let why = mail.servers.check(&account).await.err().map(|trouble| trouble.said());
    let account = app.db.read(move |tx| row(tx, &account)).await?;
    Ok(AccountTest { account, works: why.is_none(), why })
}

/// Removes an account with everything that is kept of it. Returns its address.
pub(crate) async fn remove(app: &App, address: &str) -> Result<String, Failure> {
    let account = account(app, address).await?;
    app.db.write(move |tx| store::remove(tx, account.source)).await?;
    if let Some(mail) = &app.mail {
        mail.push.poke();
    }
    Ok(account.address)
}

/// Looks for new mail now, in one account or in all.
pub(crate) async fn poll(app: &App, only: Option<String>) -> Result<EmailPolled, Failure> {
    let mail = mail(app)?;
    let accounts = match only {
        Some(address) => vec![account(app, &address).await?],
        None => app.db.read(store::all).await?,
    };
    if accounts.is_empty() {
        return Err(Failure::failed(said::lacks_email()).try_instead("kai email add you@example.org"));
    }
    let polls = accounts.iter().map(async |account| (account, mail.poller.poll(account.source).await));
    let mut polled = vec![];
    for (account, outcome) in join_all(polls).await {
        polled.push(looked(account, outcome)?);
    }
    let queued = app.db.read(|tx| pending::count(tx, queue::QUEUE)).await?;
    Ok(EmailPolled { accounts: polled, queued })
}

fn looked(account: &Account, outcome: Result<Polled, PollError>) -> Result<AccountPolled, Failure> {
    let address = account.address.clone();
    match outcome {
        Ok(Polled { fresh, more, seeded }) => Ok(AccountPolled { address, fresh, more, seeded, error: None }),
        Err(error @ PollError::Off) => {
            Err(Failure::failed(error.said()).try_instead("kai settings set email_enabled true"))
        }
        Err(error) => {
            let error = Some(error.said());
            Ok(AccountPolled { address, fresh: 0, more: false, seeded: false, error })
        }
    }
}

/// Reads a mail for the user; nothing is redacted, and it is no longer unread here.
pub(crate) async fn read(app: &App, id: EmailId) -> Result<EmailWhole, Failure> {
    let (account, letter) = mail(app)?.mailboxes.letter(id).await.map_err(|why| not_read(&why))?;
    app.db.write(move |tx| kept::open(tx, id)).await?;
    let all = |list: &[Mailbox]| list.iter().map(written).collect();
    Ok(EmailWhole {
        id,
        account: account.address,
        from: written(&letter.header.from),
        to: all(&letter.to),
        cc: all(&letter.cc),
        subject: letter.header.subject.as_written().to_owned(),
        date: letter.header.received.as_millisecond(),
        date_local: local(letter.header.received, &app.clock.zone()),
        text: letter.text.as_written().to_owned(),
        is_beginning: letter.is_beginning,
        attachments: letter
            .attachments
            .iter()
            .map(|file| AttachmentRow {
                name: file.name.as_written().to_owned(),
                kind: file.kind.as_written().to_owned(),
                size: file.size,
            })
            .collect(),
    })
}

fn written(mailbox: &Mailbox) -> String {
    queue::shown(&mailbox.name, &mailbox.address, usize::MAX)
}

fn not_read(why: &NotRead) -> Failure {
    match why {
        NotRead::Unknown(_) | NotRead::Gone(_) => {
            Failure::failed(said::accounts_no_mail()).try_instead("kai email search TEXT")
        }
        NotRead::Server(_, trouble) => Failure::failed(trouble.said()),
        NotRead::Store(sentence) => Failure::failed(sentence.clone()),
    }
}

const MOST_FOUND: usize = 20;

/// Searches the mail of all accounts on their servers, for the user; nothing is redacted.
pub(crate) async fn search(app: &App, text: &str) -> Result<EmailFound, Failure> {
    if text.trim().is_empty() {
        return Err(Failure::usage("The search text is empty. Type what to search for."));
    }
    let (zone, mut all) = (app.clock.zone(), EmailFound { emails: vec![], without: vec![] });
    for (account, outcome) in mail(app)?.mailboxes.search(text.trim(), MOST_FOUND).await? {
        match outcome {
            Ok(found) => all.emails.extend(rows(&account, found, &zone)),
            Err(trouble) => all.without.push(trouble.said()),
        }
    }
    all.emails.sort_by_key(|row| std::cmp::Reverse(row.date));
    all.emails.truncate(MOST_FOUND);
    Ok(all)
}

fn rows(account: &Account, found: Found, zone: &TimeZone) -> Vec<EmailRow> {
    let Found { validity, mails } = found;
    let row = |header: Header| EmailRow {
        id: EmailId { account: account.source, validity, uid: header.uid },
        account: account.address.clone(),
        from: written(&header.from),
        subject: header.subject.as_written().to_owned(),
        date: header.received.as_millisecond(),
        date_local: local(header.received, zone),
        preview: header.beginning.line(queue::PREVIEW),
    };
    mails.into_iter().map(row).collect()
}

/// Whether everybody whom an edited mail would go to has written to the user, or is the user.
pub(crate) async fn are_known(app: &App, edit: &EditCall) -> Result<bool, DbError> {
    let typed: Vec<&str> =
        [&edit.to, &edit.cc, &edit.bcc].into_iter().flatten().map(String::as_str).collect();
    let Ok(all) = address::list(&typed.join(", ")) else { return Ok(false) };
    let known = move |tx: &Transaction<'_>| {
        all.iter().try_fold(true, |known, one| {
            Ok(known && (kept::wrote_before(tx, one)? || store::by_address(tx, one)?.is_some()))
        })
    };
    app.db.read(known).await
}
