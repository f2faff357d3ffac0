//! The line to the server that mails leave by. It understands SMTP, so that a mail can be held or cut off at a chosen
//! step.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use kai_stand_ins::port::free;

use super::Dice;

/// What happens to a mail on its way to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Fate {
    #[default]
    Passes,
    /// The line is cut before the text.
    CutBeforeText,
    /// Kai has ended the mail, the server has not seen that, and the line is cut.
    CutAtEnd,
    /// The same, but the line stays silent.
    EndHeld,
    /// The server has taken the mail, and the line is cut before Kai hears it.
    CutBeforeReply,
    /// The same, but the line stays silent.
    ReplyHeld,
}

impl Fate {
    /// Half of the mails pass.
    pub(super) fn rolled(dice: &mut Dice) -> Self {
        match dice.below(10) {
            0 => Self::CutBeforeText,
            1 => Self::CutAtEnd,
            2 => Self::EndHeld,
            3 => Self::CutBeforeReply,
            4 => Self::ReplyHeld,
            _ => Self::Passes,
        }
    }

    /// Whether Kai waits for an answer until it dies.
    pub(super) fn holds(self) -> bool {
        matches!(self, Self::EndHeld | Self::ReplyHeld)
    }

    /// How many mails this lets through; `None` if that is open.
    pub(super) fn delivers(self) -> Option<usize> {
        match self {
            Self::Passes => None,
            Self::CutBeforeText | Self::CutAtEnd | Self::EndHeld => Some(0),
            Self::CutBeforeReply | Self::ReplyHeld => Some(1),
        }
    }

    /// Whether a draft may have this status after it.
    pub(super) fn fits(self, status: &str) -> bool {
        match self {
            Self::Passes => true,
            // Kai may have died before it could note that.
            Self::CutBeforeText => matches!(status, "FAILED" | "UNKNOWN"),
            Self::CutAtEnd | Self::EndHeld | Self::CutBeforeReply | Self::ReplyHeld => status == "UNKNOWN",
        }
    }
}

pub(super) struct Relay {
    pub(super) port: u16,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// What happens to the next mail.
    next: Fate,
    /// What happened to the last one, unless it passed.
    met: Option<Fate>,
    open: usize,
    /// How many mails the server has taken.
    taken: usize,
}

impl Relay {
    /// Listens, and passes on to a server that listens on that port.
    pub(super) fn to(server: u16) -> Arc<Self> {
        let listener = TcpListener::bind(("127.0.0.1", free())).unwrap();
        let port = listener.local_addr().unwrap().port();
        let relay = Arc::new(Self { port, state: Mutex::default(), changed: Condvar::new() });
        let carrying = Arc::clone(&relay);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let relay = Arc::clone(&carrying);
                relay.change(|state| state.open += 1);
                std::thread::spawn(move || {
                    let _ended = Carried::between(client, server).and_then(|line| line.carry(&relay));
                    relay.change(|state| state.open -= 1);
                });
            }
        });
        relay
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state.lock().unwrap());
        self.changed.notify_all();
        changed
    }

    pub(super) fn let_next(&self, fate: Fate) {
        self.change(|state| (state.next, state.met) = (fate, None));
    }

    fn meets(&self, fate: Fate) -> bool {
        self.change(|state| {
            let meets = state.next == fate;
            if meets {
                (state.next, state.met) = (Fate::Passes, Some(fate));
            }
            meets
        })
    }

    /// Waits until the next mail has met its fate. It need not: Kai may refuse the tap.
    pub(super) fn until_met(&self) {
        let waiting = self.state.lock().unwrap();
        let longest = Duration::from_secs(5);
        drop(self.changed.wait_timeout_while(waiting, longest, |state| state.met.is_none()).unwrap());
    }

    /// What happened to the last mail, once nobody speaks any more. The next one passes.
    pub(super) fn settled(&self) -> Option<Fate> {
        let waiting = self.state.lock().unwrap();
        let longest = Duration::from_secs(30);
        let (mut state, waited) =
            self.changed.wait_timeout_while(waiting, longest, |state| state.open > 0).unwrap();
        assert!(!waited.timed_out(), "{} lines are still open", state.open);
        state.next = Fate::Passes;
        state.met.take()
    }

    pub(super) fn taken(&self) -> usize {
        self.state.lock().unwrap().taken
    }
}

/// One connection. In SMTP, only one side speaks at a time.
struct Carried {
    client: BufReader<TcpStream>,
    server: BufReader<TcpStream>,
}

/// It is over: one side is gone, or the line was cut.
type Over = Option<()>;

impl Carried {
    fn between(client: TcpStream, server: u16) -> Option<Self> {
        let server = TcpStream::connect(("127.0.0.1", server)).ok()?;
        Some(Self { client: BufReader::new(client), server: BufReader::new(server) })
    }

    fn carry(mut self, relay: &Relay) -> Over {
        loop {
            let reply = self.reply()?;
            self.answer(&reply)?;
            if reply.starts_with(b"354") {
                self.hand_over(relay)?;
            }
            let line = line(&mut self.client)?;
            let begins = line.eq_ignore_ascii_case(b"DATA\r\n");
            if begins && relay.meets(Fate::CutBeforeText) {
                return None;
            }
            self.server.get_mut().write_all(&line).ok()?;
        }
    }

    /// The text of a mail, its end, and the reply to it.
    fn hand_over(&mut self, relay: &Relay) -> Over {
        loop {
            let line = line(&mut self.client)?;
            if line == b".\r\n" {
                break;
            }
            self.server.get_mut().write_all(&line).ok()?;
        }
        self.stays(relay, Fate::CutAtEnd, Fate::EndHeld)?;
        self.server.get_mut().write_all(b".\r\n").ok()?;
        let reply = self.reply()?;
        if reply.starts_with(b"250") {
            relay.change(|state| state.taken += 1);
        }
        self.stays(relay, Fate::CutBeforeReply, Fate::ReplyHeld)?;
        self.answer(&reply)
    }

    /// Unless it is to be cut or held here.
    fn stays(&mut self, relay: &Relay, cut: Fate, held: Fate) -> Over {
        if relay.meets(held) {
            // Until Kai is gone.
            let _ = self.client.read(&mut [0; 1]);
            return None;
        }
        if relay.meets(cut) { None } else { Some(()) }
    }

    fn answer(&mut self, reply: &[u8]) -> Over {
        self.client.get_mut().write_all(reply).ok()
    }

    /// All lines of a reply. It offers no encryption, through which nothing could be understood here.
    fn reply(&mut self) -> Option<Vec<u8>> {
        let mut whole = String::new();
        loop {
            let line = String::from_utf8(line(&mut self.server)?).ok()?;
            whole += &line.replace("STARTTLS", "X-NO-TLS");
            if line.as_bytes().get(3) != Some(&b'-') {
                return Some(whole.into_bytes());
            }
        }
    }
}

fn line(from: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut line = vec![];
    from.read_until(b'\n', &mut line).ok()?;
    line.ends_with(b"\n").then_some(line)
}
