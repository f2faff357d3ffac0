//! Prints what a mailbox of 100,000 mails costs, at a real IMAP server of our own. Run it with `--release`; it needs
//! Dovecot and Exim.
#![expect(clippy::print_stdout, reason = "a program to look at")]
#![expect(clippy::disallowed_methods, reason = "a stopwatch")]

use std::error::Error;
use std::fs;
use std::time::{Duration, Instant};

use kai_assistant::email::FIRST_ACCOUNT;
use kai_assistant::email::account::{Account, Credentials, Security, Server};
use kai_assistant::email::port::MailServers;
use kai_assistant::secret::Secret;
use kai_assistant::source::SourceId;
use kai_bridges::Environment;
use kai_bridges::mail::Mail;
use kai_stand_ins::mail::PostOffice;

const MAILS: usize = 100_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let office = PostOffice::open(&["alice"]);
    for n in 0..MAILS {
        office.deliver("alice", raw(n).as_bytes());
    }
    // Another program has opened the mailbox since, so the server has put them into their place.
    let (new, cur) =
        (office.maildir("alice", "INBOX").join("new"), office.maildir("alice", "INBOX").join("cur"));
    for file in fs::read_dir(new)? {
        let file = file?;
        let name = format!("{}:2,S", file.file_name().to_string_lossy());
        fs::rename(file.path(), cur.join(name))?;
    }
    let server = |port| Server { host: "localhost".to_owned(), port, security: Security::Plain };
    let account = Account {
        source: SourceId(FIRST_ACCOUNT),
        address: office.address("alice"),
        user: office.address("alice"),
        imap: server(office.ports.imap),
        smtp: server(office.ports.smtp),
        credentials: Credentials::Password(Secret::new(office.password("alice"))),
    };
    let mail = Mail::new(Environment::default())?;
    // The server numbers them first.
    print("seed", mail.newer(&account, None, 50)).await?;
    let seed = mail.newer(&account, None, 50).await?;
    let before = resident()?;
    // A server looks closely at a folder that has just changed.
    tokio::time::sleep(Duration::from_secs(5)).await;
    mail.newer(&account, Some(seed.mark), 50).await?;
    print("poll_nothing_new", mail.newer(&account, Some(seed.mark), 50)).await?;
    for _ in 0..50 {
        mail.newer(&account, Some(seed.mark), 50).await?;
    }
    println!("poll_memory_growth_mib {:.2}", resident()? - before);
    for n in 0..50 {
        office.deliver("alice", raw(n).as_bytes());
    }
    print("poll_50_new", mail.newer(&account, Some(seed.mark), 50)).await?;
    print("search_all", mail.search(&account, "usual place", 20)).await?;
    print("search_one", mail.search(&account, "number-4711", 20)).await?;
    print("read", mail.read(&account, seed.mark)).await?;
    println!("memory_growth_mib {:.2}", resident()? - before);
    Ok(())
}

fn raw(n: usize) -> String {
    format!(
        "From: Bob <bob{}@post.test>\r\nTo: alice@post.test\r\nSubject: number-{n}\r\nMessage-ID: <{n}@x>\r\n\r\n\
         See you at the usual place, or call me when the train is late again.\r\n",
        n % 900
    )
}

async fn print<T, E: Error + 'static>(
    name: &str,
    call: impl Future<Output = Result<T, E>>,
) -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    call.await?;
    println!("{name}_ms {:.1}", began.elapsed().as_secs_f64() * 1000.0);
    Ok(())
}

/// How much memory this program has, in MiB.
fn resident() -> Result<f64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
}
