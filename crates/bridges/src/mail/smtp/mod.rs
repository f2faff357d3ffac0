//! Sends mail over SMTP.
//!
//! The dialogue is our own because the fate of a draft depends on its step: until the line with the dot that ends a mail
//! is written, no server may deliver it; after that, only the server's answer tells.

mod reply;

use std::time::Duration;

use kai_assistant::email::account::{Security, Server};
use kai_assistant::email::port::{Trouble, Which, Why};
use kai_assistant::outbox::door::SendError;
use kai_assistant::untrusted::Untrusted;
use kai_words::said;
use tokio::time::timeout;

use self::reply::{Reply, ReplyLine, stuffed};
use super::compose::Composed;
use super::dial::Dial;
use super::limits::Limits;
use super::line::{Kept, Line};
use super::sign_in::{self, Proof};

#[cfg(any(test, fuzzing))]
pub(super) use self::reply::ReplyLine as Spoken;

/// A connection to an SMTP server that is signed in.
pub(super) struct Smtp {
    line: Line,
    limits: Limits,
    /// What the server offers.
    offers: Reply,
}

/// How many lines a reply may have, and how many bytes of each are kept.
const MOST_LINES: usize = 200;
const LONGEST_LINE: usize = 1_000;
/// How long the server has to say goodbye.
const GOODBYE: Duration = Duration::from_secs(3);
/// We do not tell our name.
const HELLO: &str = "EHLO [127.0.0.1]";

/// Why a mail was not sent, or may not have been.
enum Failed {
    Trouble(Why),
    Recipient { address: String, words: Untrusted },
    TooLarge,
}

impl From<Why> for Failed {
    fn from(why: Why) -> Self {
        Self::Trouble(why)
    }
}

impl Smtp {
    /// Connects and signs in.
    pub(super) async fn open(dial: &Dial, server: &Server, user: &str, proof: &Proof) -> Result<Self, Why> {
        let line = dial.connect(server).await?;
        let offers = Reply { code: 0, lines: vec![] };
        let mut smtp = Self { line, limits: *dial.limits(), offers };
        let greeting = smtp.reply(smtp.limits.greeting).await?;
        agreed(&greeting)?;
        smtp.hello().await?;
        if server.security == Security::StartTls {
            if smtp.offers.offer("STARTTLS").is_none() || !smtp.ask("STARTTLS").await?.is_fine() {
                return Err(Why::NoTls);
            }
            smtp.line = dial.encrypt(smtp.line, server).await?;
            // What was said so far may be an attacker's.
            smtp.hello().await?;
        }
        smtp.sign_in(server, user, proof).await?;
        Ok(smtp)
    }

    async fn hello(&mut self) -> Result<(), Why> {
        self.offers = self.ask(HELLO).await?;
        agreed(&self.offers)
    }

    async fn sign_in(&mut self, server: &Server, user: &str, proof: &Proof) -> Result<(), Why> {
        let offered = self.offers.offer("AUTH");
        // A server on this machine may let everyone in.
        if offered.is_none() && server.security == Security::Plain {
            return Ok(());
        }
        let can = |name: &str| offered.iter().flatten().any(|word| word.eq_ignore_ascii_case(name));
        let reply = match proof {
            Proof::Token(token) => {
                let reply = self.ask(&format!("AUTH XOAUTH2 {}", sign_in::xoauth2(user, token))).await?;
                // It explains its refusal, and wants an empty line before it refuses.
                if reply.code == 334 { self.ask("").await? } else { reply }
            }
            Proof::Password(password) if can("LOGIN") && !can("PLAIN") => {
                self.ask_in_turn(&["AUTH LOGIN", &sign_in::encoded(user), &sign_in::encoded(password)])
                    .await?
            }
            Proof::Password(password) => {
                self.ask(&format!("AUTH PLAIN {}", sign_in::plain(user, password))).await?
            }
        };
        if reply.is_fine() {
            return Ok(());
        }
        Err(sign_in::refused_by_smtp(&server.host, reply.code, &reply.words()))
    }

    /// Sends lines as long as the server asks for more.
    async fn ask_in_turn(&mut self, lines: &[&str]) -> Result<Reply, Why> {
        let mut reply = Reply { code: 334, lines: vec![] };
        for line in lines {
            if reply.code != 334 {
                break;
            }
            reply = self.ask(line).await?;
        }
        Ok(reply)
    }

    /// Sends a line and reads the reply.
    async fn ask(&mut self, line: &str) -> Result<Reply, Why> {
        let line = format!("{line}\r\n");
        let written = timeout(self.limits.answer, self.line.write(line.as_bytes()));
        written.await.map_err(|_| Why::Silent)??;
        self.reply(self.limits.answer).await
    }

    async fn reply(&mut self, patience: Duration) -> Result<Reply, Why> {
        timeout(patience, self.receive()).await.map_err(|_| Why::Silent)?
    }

    async fn receive(&mut self) -> Result<Reply, Why> {
        let mut lines = Vec::new();
        loop {
            let mut kept = Kept::up_to(LONGEST_LINE);
            self.line.line(&mut kept).await?;
            let line = ReplyLine::read(&kept.bytes).ok_or(Why::Nonsense)?;
            lines.push(line.words);
            if line.is_last {
                return Ok(Reply { code: line.code, lines });
            }
            if lines.len() > MOST_LINES {
                return Err(Why::Nonsense);
            }
        }
    }

    /// Names sender and recipients, and hands over all but the end.
    async fn hand_over(&mut self, mail: &Composed) -> Result<(), Failed> {
        let bytes = stuffed(&mail.bytes);
        let limit = self.offers.offer("SIZE");
        let most = limit.as_ref().and_then(|words| words.first()?.parse::<usize>().ok());
        if most.is_some_and(|most| most > 0 && bytes.len() > most) {
            return Err(Failed::TooLarge);
        }
        let size = if limit.is_some() { format!(" SIZE={}", bytes.len()) } else { String::new() };
        agreed(&self.ask(&format!("MAIL FROM:<{}>{size}", mail.from)).await?)?;
        for address in &mail.recipients {
            let reply = self.ask(&format!("RCPT TO:<{address}>")).await?;
            if !reply.is_fine() {
                // Nobody gets what somebody cannot get.
                let _ = self.ask("RSET").await;
                let words = Untrusted::new(reply.words());
                return Err(Failed::Recipient { address: address.clone(), words });
            }
        }
        let reply = self.ask("DATA").await?;
        if reply.code != 354 {
            return Err(Failed::Trouble(Why::Refused(Untrusted::new(reply.words()))));
        }
        let written = timeout(self.limits.whole, self.line.write(&bytes));
        written.await.map_err(|_| Why::Silent)??;
        Ok(())
    }

    /// Ends the mail. From the first byte on, the server may have taken it.
    async fn finish(&mut self) -> Result<Reply, Why> {
        self.line.write(b".\r\n").await?;
        self.receive().await
    }

    /// Signs out.
    pub(super) async fn close(mut self) {
        let _ = timeout(GOODBYE, self.ask("QUIT")).await;
    }
}

/// A refusal is an error.
fn agreed(reply: &Reply) -> Result<(), Why> {
    if reply.is_fine() { Ok(()) } else { Err(Why::Refused(Untrusted::new(reply.words()))) }
}

/// Sends a mail. `Ok` means that the server took it over.
pub(super) async fn send(
    dial: &Dial,
    server: &Server,
    user: &str,
    proof: &Proof,
    mail: &Composed,
) -> Result<(), SendError> {
    // Another third is for the command that prints a token.
    let third = dial.limits().whole / 3;
    let prepared = async {
        let mut smtp = Smtp::open(dial, server, user, proof).await?;
        match smtp.hand_over(mail).await {
            Ok(()) => Ok(smtp),
            Err(failed) => {
                smtp.close().await;
                Err(failed)
            }
        }
    };
    let prepared = timeout(third, prepared).await.unwrap_or(Err(Failed::Trouble(Why::Silent)));
    let mut smtp = prepared.map_err(|failed| SendError::NotSent(failed.said(&server.host)))?;
    match timeout(third, smtp.finish()).await {
        Ok(Ok(reply)) if reply.is_fine() => {
            smtp.close().await;
            Ok(())
        }
        Ok(Ok(reply)) if reply.code >= 400 => {
            let refused = Failed::Trouble(Why::Refused(Untrusted::new(reply.words())));
            smtp.close().await;
            Err(SendError::NotSent(refused.said(&server.host)))
        }
        Ok(Err(Why::Broken)) => Err(SendError::Unsure(said::draft_reason_cut_off_mail())),
        Ok(Ok(_) | Err(_)) | Err(_) => Err(SendError::Unsure(said::draft_reason_no_answer_mail())),
    }
}

impl Failed {
    fn said(self, host: &str) -> kai_words::Said {
        match self {
            Self::Trouble(why) => Trouble { which: Which::Smtp, host: host.to_owned(), why }.said(),
            Self::Recipient { address, words } => {
                said::mail_recipient_refused(host, address, words.line(LONGEST_SAID))
            }
            Self::TooLarge => said::mail_too_large(host),
        }
    }
}

/// How many characters of what a server said are shown.
const LONGEST_SAID: usize = 200;
