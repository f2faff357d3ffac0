//! `kai email` on the terminal.

use std::io::Read;
use std::process::ExitCode;

use kai_assistant::email::EmailId;
use serde_json::json;

use super::args::email::EmailCommand;
use super::asking::Cli;
use super::show;
use crate::call::Call;
use crate::call::email::{
    AccountRow, AccountTest, AddAccount, EmailCall, EmailFound, EmailPolled, EmailRow, EmailWhole,
};
use crate::failure::Failure;
use crate::home;
use crate::terminal::input;
use crate::terminal::out::{self, visible};

pub(super) fn run(ask: &Cli, command: EmailCommand) -> Result<ExitCode, Failure> {
    match command {
        EmailCommand::List => ask.show(email(EmailCall::List), |rows: &Vec<_>| accounts(rows)),
        EmailCommand::Add { address, imap, smtp, user, password_stdin, token_command } => {
            let password = match &token_command {
                Some(_) => None,
                None => Some(password(&address, password_stdin)?),
            };
            add(ask, AddAccount { address, imap, smtp, user, password, token_command })
        }
        EmailCommand::Test { account } => {
            let test: AccountTest = ask.caller.ask(email(EmailCall::Test { account }))?;
            ask.print(&test, tested);
            Ok(ExitCode::from(u8::from(!test.works)))
        }
        EmailCommand::Remove { account } => ask.tell(
            email(EmailCall::Remove { account }),
            |address: &String| json!({"removed": address}),
            |address| format!("Removed {} and everything that Kai kept of it.\n", visible(address)),
        ),
        EmailCommand::Poll { account } => poll(ask, account),
        EmailCommand::Read { id } => {
            let id: EmailId = id.parse().map_err(|_| {
                Failure::usage(format!("{} is not the id of a mail.", visible(&id)))
                    .try_instead("kai email search TEXT")
            })?;
            ask.show(email(EmailCall::Read { id }), whole)
        }
        EmailCommand::Search { text } => ask.show(email(EmailCall::Search { text }), found),
    }
}

fn email(call: EmailCall) -> Call {
    Call::Email(call)
}

/// The password of an account: asked without echo, or one line of standard input.
fn password(address: &str, from_stdin: bool) -> Result<String, Failure> {
    let typed = if from_stdin {
        let mut text = String::new();
        let read = input::piped().take(16 * 1024).read_to_string(&mut text);
        read.map_err(|e| {
            Failure::usage(format!("The password could not be read from standard input: {e}."))
        })?;
        text
    } else {
        home::ask_text(&format!("Password for {}: ", visible(address))).ok_or_else(|| {
            Failure::usage("There is no terminal to ask for the password. Pipe it in, with --password-stdin.")
        })?
    };
    // Only the line break at the end is not part of it: a password may end with a blank.
    let typed = typed.trim_end_matches(['\n', '\r']).to_owned();
    if typed.is_empty() { Err(Failure::usage("The password is empty.")) } else { Ok(typed) }
}

fn add(ask: &Cli, new: AddAccount) -> Result<ExitCode, Failure> {
    if !ask.json {
        out::note(&format!("Signing in to the servers of {} …", visible(&new.address)));
    }
    ask.show(email(EmailCall::Add(new)), |row: &AccountRow| {
        format!(
            "Added {}. Kai reads from {} and sends, after your tap, by {}. What is in the inbox now counts as seen.\n",
            visible(&row.address),
            visible(&row.imap),
            visible(&row.smtp)
        )
    })
}

fn accounts(rows: &[AccountRow]) -> String {
    if rows.is_empty() {
        return "No accounts. To add one: kai email add you@example.org\n".to_owned();
    }
    let row = |row: &AccountRow| (visible(&row.address), account(row));
    show::columns(&rows.iter().map(row).collect::<Vec<_>>())
}

fn account(row: &AccountRow) -> String {
    let counted = match row.counted {
        0 => String::new(),
        n => format!(", {} only counted", show::count(n as usize, "automatic mail")),
    };
    let dropped = match row.dropped {
        0 => String::new(),
        n => format!(", {} dropped", show::count(n as usize, "older mail")),
    };
    let state = match (&row.last_error, row.last_sync) {
        (Some(why), _) => format!("cannot be read: {}", visible(&why.to_string())),
        (None, Some(_)) => "works".to_owned(),
        (None, None) => "not read yet".to_owned(),
    };
    format!(
        "{state}. {} waiting{counted}{dropped}. {}, {}",
        row.queued,
        visible(&row.imap),
        visible(&row.smtp)
    )
}

fn tested(test: &AccountTest) -> String {
    let address = visible(&test.account.address);
    match &test.why {
        Some(why) => format!("{address}: {}\n", visible(&why.to_string())),
        None => format!("{address} works: Kai could sign in to both servers.\n"),
    }
}

/// Looks for new mail. Fails if no account could be asked.
fn poll(ask: &Cli, account: Option<String>) -> Result<ExitCode, Failure> {
    let polled: EmailPolled = ask.caller.ask(email(EmailCall::Poll { account }))?;
    ask.print(&polled, looked);
    let failed = polled.accounts.iter().all(|one| one.error.is_some());
    Ok(ExitCode::from(u8::from(failed)))
}

fn looked(polled: &EmailPolled) -> String {
    let lines = polled.accounts.iter().map(|one| {
        let says = match &one.error {
            Some(why) => visible(&why.to_string()),
            None if one.seeded => "what is in the inbox counts as seen".to_owned(),
            None if one.more => format!("{}, and more to come", show::count(one.fresh, "new mail")),
            None => show::count(one.fresh, "new mail"),
        };
        format!("{}: {says}\n", visible(&one.address))
    });
    let lines: String = lines.collect();
    format!("{lines}{} waiting for the next heartbeat.\n", polled.queued)
}

fn found(found: &EmailFound) -> String {
    let row = |row: &EmailRow| {
        let line = format!("{}  {}  {}", row.date_local, visible(&row.from), visible(&row.subject));
        (row.id.to_string(), line)
    };
    let rows: Vec<_> = found.emails.iter().map(row).collect();
    let list = if rows.is_empty() { "No mail found.\n".to_owned() } else { show::columns(&rows) };
    let without = found.without.iter().map(|why| format!("! {}\n", visible(&why.to_string())));
    [list].into_iter().chain(without).collect()
}

fn whole(mail: &EmailWhole) -> String {
    let list = |all: &[String]| all.iter().map(|one| visible(one)).collect::<Vec<_>>().join(", ");
    let cc = if mail.cc.is_empty() { String::new() } else { format!("Cc: {}\n", list(&mail.cc)) };
    let cut = if mail.is_beginning { "\n(This is only the beginning.)\n" } else { "" };
    let files = mail.attachments.iter().map(|file| {
        format!("Attachment: {} ({}, {} bytes)\n", visible(&file.name), visible(&file.kind), file.size)
    });
    let files: String = files.collect();
    format!(
        "From: {}\nTo: {}\n{cc}Date: {}\nSubject: {}\n{files}\n{}\n{cut}",
        visible(&mail.from),
        list(&mail.to),
        mail.date_local,
        visible(&mail.subject),
        show::paragraphs(&mail.text)
    )
}
