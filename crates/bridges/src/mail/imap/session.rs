//! A connection to an IMAP server that is signed in: sends commands and reads what comes back.

use kai_assistant::email::account::{Security, Server};
use kai_assistant::email::port::Why;
use kai_assistant::untrusted::Untrusted;
use tokio::time::timeout;

use super::super::dial::Dial;
use super::super::limits::Limits;
use super::super::line::{Kept, Line};
use super::super::sign_in::{self, Proof};
use super::command::Command;
use super::reply::{Reply, State, Status};

/// A connection to an IMAP server.
pub(in crate::mail) struct Session {
    line: Line,
    limits: Limits,
    /// How many commands were sent; the last one's number is its tag.
    commands: u32,
    /// In capital letters. Empty if the server has not told them yet.
    capabilities: Vec<String>,
    /// What the server said when it announced that it ends the connection.
    farewell: Option<String>,
}

/// How a command ended.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: Status,
    pub(super) code: String,
    pub(super) words: String,
}

impl Answer {
    fn of(state: &State<'_>) -> Self {
        let cut = |text: &str| text.chars().take(LONGEST_WORDS).collect();
        Self { status: state.status, code: state.code.to_string(), words: cut(&state.words) }
    }

    pub(super) fn is_ok(&self) -> bool {
        self.status == Status::Ok
    }

    /// A refusal is an error.
    pub(super) fn agreed(self) -> Result<Self, Why> {
        if self.is_ok() { Ok(self) } else { Err(Why::Refused(Untrusted::new(self.words))) }
    }
}

/// How many characters of what a server says are kept.
const LONGEST_WORDS: usize = 500;
/// How often a server may ask for more while we sign in.
const MOST_QUESTIONS: usize = 3;

impl Session {
    /// Connects and signs in.
    pub(in crate::mail) async fn open(
        dial: &Dial,
        server: &Server,
        user: &str,
        proof: &Proof,
    ) -> Result<Self, Why> {
        let line = dial.connect(server).await?;
        let mut session = Self::new(line, dial.limits());
        let is_signed_in = session.greeted().await?;
        if server.security == Security::StartTls {
            // A server that signs us in before the connection is encrypted cannot be told from an attacker.
            if is_signed_in {
                return Err(Why::NoTls);
            }
            session = session.encrypted(dial, server).await?;
        }
        if !is_signed_in {
            session.sign_in(&server.host, user, proof).await?;
        }
        session.know_capabilities().await?;
        Ok(session)
    }

    fn new(line: Line, limits: &Limits) -> Self {
        Self { line, limits: *limits, commands: 0, capabilities: vec![], farewell: None }
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Reads the greeting. Returns whether the connection is signed in already.
    async fn greeted(&mut self) -> Result<bool, Why> {
        let greeting = timeout(self.limits.greeting, self.receive()).await.map_err(|_| Why::Silent)??;
        let Reply::Told(state) = Reply::read(&greeting.bytes) else { return Err(Why::Nonsense) };
        self.learn(&state.code);
        match state.status {
            Status::Ok => Ok(false),
            Status::Preauth => Ok(true),
            Status::Bye | Status::No => Err(Why::Refused(Untrusted::new(Answer::of(&state).words))),
            Status::Bad => Err(Why::Nonsense),
        }
    }

    async fn encrypted(mut self, dial: &Dial, server: &Server) -> Result<Self, Why> {
        self.know_capabilities().await?;
        if !self.can("STARTTLS") || !self.ask("STARTTLS").await?.is_ok() {
            return Err(Why::NoTls);
        }
        // What was said so far may be an attacker's.
        Ok(Self::new(dial.encrypt(self.line, server).await?, &self.limits))
    }

    async fn sign_in(&mut self, host: &str, user: &str, proof: &Proof) -> Result<(), Why> {
        self.know_capabilities().await?;
        let answer = match proof {
            Proof::Token(token) => self.authenticate("XOAUTH2", &sign_in::xoauth2(user, token)).await?,
            Proof::Password(password) if self.can("AUTH=PLAIN") => {
                self.authenticate("PLAIN", &sign_in::plain(user, password)).await?
            }
            Proof::Password(_) if self.can("LOGINDISABLED") => return Err(Why::NoTls),
            Proof::Password(password) => {
                let login = Command::new("LOGIN ").string(user.as_bytes());
                self.run(login.text(" ").string(password.as_bytes()), |_| {}).await?
            }
        };
        if !answer.is_ok() {
            return Err(sign_in::refused_by_imap(host, &answer.code, &answer.words));
        }
        // It may offer more from now on.
        self.capabilities.clear();
        self.learn(&answer.code);
        Ok(())
    }

    async fn authenticate(&mut self, mechanism: &str, proof: &str) -> Result<Answer, Why> {
        let patience = self.limits.answer;
        timeout(patience, self.authenticating(mechanism, proof)).await.map_err(|_| Why::Silent)?
    }

    async fn authenticating(&mut self, mechanism: &str, proof: &str) -> Result<Answer, Why> {
        let tag = self.tag();
        let at_once = self.can("SASL-IR");
        let begin = if at_once { format!(" {proof}") } else { String::new() };
        self.line.write(format!("{tag} AUTHENTICATE {mechanism}{begin}\r\n").as_bytes()).await?;
        let mut questions = 0;
        loop {
            match self.next(&tag, &mut |_| {}).await? {
                Next::Done(answer) => return Ok(answer),
                // Asked again, it explains its refusal, and wants an empty line before it refuses.
                Next::Continue if questions < MOST_QUESTIONS => {
                    let reply = if questions == 0 && !at_once { proof } else { "" };
                    self.line.write(format!("{reply}\r\n").as_bytes()).await?;
                    questions += 1;
                }
                Next::Continue => return Err(Why::Nonsense),
                Next::Other => {}
            }
        }
    }

    /// Whether the server can do that.
    pub(super) fn can(&self, what: &str) -> bool {
        self.capabilities.iter().any(|known| known == what)
    }

    async fn know_capabilities(&mut self) -> Result<(), Why> {
        if !self.capabilities.is_empty() {
            return Ok(());
        }
        let mut known = Vec::new();
        let ask = self.run(Command::new("CAPABILITY"), |reply| {
            if let Reply::Capabilities(words) = reply {
                known = words.iter().map(|word| word.to_ascii_uppercase()).collect();
            }
        });
        ask.await?.agreed()?;
        self.capabilities = known;
        Ok(())
    }

    /// Takes the capabilities from a code.
    fn learn(&mut self, code: &str) {
        let mut words = code.split(' ').map(str::to_ascii_uppercase);
        if words.next().as_deref() == Some("CAPABILITY") {
            self.capabilities = words.collect();
        }
    }

    /// Sends a command without arguments.
    pub(super) async fn ask(&mut self, command: &str) -> Result<Answer, Why> {
        self.run(Command::new(command), |_| {}).await
    }

    /// Sends a command and hands over every reply until its end.
    pub(super) async fn run(
        &mut self,
        command: Command,
        mut on: impl FnMut(Reply<'_>) + Send,
    ) -> Result<Answer, Why> {
        let patience = command.patience.of(&self.limits);
        timeout(patience, self.exchange(command, &mut on)).await.map_err(|_| Why::Silent)?
    }

    async fn exchange(
        &mut self,
        command: Command,
        on: &mut (dyn FnMut(Reply<'_>) + Send),
    ) -> Result<Answer, Why> {
        let tag = self.tag();
        let pieces = command.pieces(&tag);
        let mut replies = 0;
        for (at, piece) in pieces.iter().enumerate() {
            self.line.write(piece).await?;
            let is_last = at + 1 == pieces.len();
            loop {
                replies += 1;
                if replies > self.limits.replies {
                    return Err(Why::Nonsense);
                }
                match self.next(&tag, on).await? {
                    Next::Done(answer) => return Ok(answer),
                    Next::Continue if !is_last => break,
                    Next::Continue | Next::Other => {}
                }
            }
        }
        Err(Why::Nonsense)
    }

    pub(super) fn tag(&mut self) -> String {
        self.commands += 1;
        format!("k{}", self.commands)
    }

    pub(super) async fn write(&mut self, line: &str) -> Result<(), Why> {
        self.line.write(line.as_bytes()).await
    }

    pub(super) fn allow_more(&mut self) {
        self.line.allow(self.limits.bytes);
    }

    /// The next reply.
    pub(super) async fn next(
        &mut self,
        tag: &str,
        on: &mut (dyn FnMut(Reply<'_>) + Send),
    ) -> Result<Next, Why> {
        let received = match self.receive().await {
            Err(Why::Broken) => {
                let farewell = self.farewell.take().map(|words| Why::Refused(Untrusted::new(words)));
                return Err(farewell.unwrap_or(Why::Broken));
            }
            received => received?,
        };
        match Reply::read(&received.bytes) {
            Reply::Done { tag: of, state } if of == tag.as_bytes() => Ok(Next::Done(Answer::of(&state))),
            Reply::Done { .. } => Err(Why::Nonsense),
            Reply::Continue(_) => Ok(Next::Continue),
            reply => {
                if let Reply::Told(state) = &reply
                    && state.status == Status::Bye
                {
                    self.farewell = Some(Answer::of(state).words);
                }
                on(reply);
                Ok(Next::Other)
            }
        }
    }

    /// Receives a reply with its literals.
    async fn receive(&mut self) -> Result<Kept, Why> {
        let mut kept = Kept::up_to(self.limits.reply);
        self.line.line(&mut kept).await?;
        while let Some(count) = kept.announced() {
            self.line.bytes(count, &mut kept).await?;
            self.line.line(&mut kept).await?;
        }
        Ok(kept)
    }

    /// Signs out. Nobody waits for the answer.
    pub(in crate::mail) async fn close(mut self) {
        let tag = self.tag();
        let _ = timeout(self.limits.answer, self.write(&format!("{tag} LOGOUT\r\n"))).await;
    }
}

/// What a reply was, for whoever waits for the end of a command.
#[derive(Debug)]
pub(super) enum Next {
    Done(Answer),
    Continue,
    Other,
}
