//! An established connection with a device: reads packets, writes packets, and runs the pairing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsStream;
use tokio_util::sync::CancellationToken;

use super::envelope::Malformed;
use super::event::{Event, Pin, SendError};
use super::handshake::{Established, next_line};
use super::identity::{self, Identity, Protocol};
use super::key::verification_key;
use super::line::Lines;
use super::packet::{Packet, Pair};
use super::pairing::{Failure, News, Pairing, Step, Tap};
use super::refusal::Refusal;
use super::registry::{Done, Order, WAITING};
use super::shared::Shared;

/// Longer lines are parsed on a thread where that holds nobody up, in bytes.
const LONG: usize = 64 * 1024;

/// A line to be written, and who wants to know when it was.
struct Written {
    line: Vec<u8>,
    done: Option<Done>,
}

/// One running link.
pub(super) struct Link {
    shared: Arc<Shared>,
    identity: Identity,
    /// The version that both sides speak.
    protocol: Protocol,
    certificate: Vec<u8>,
    public_key: Vec<u8>,
    pairing: Pairing,
    reader: ReadHalf<TlsStream<TcpStream>>,
    lines: Lines,
    writer: mpsc::Sender<Written>,
    /// Events that nobody has taken yet. Nothing is read while there are any.
    told: VecDeque<Event>,
    packets_before_pairing: u32,
    stop: CancellationToken,
}

impl Link {
    pub(super) fn new(
        shared: Arc<Shared>,
        established: Established,
        paired: bool,
        stop: CancellationToken,
    ) -> Self {
        let Established { stream, mut lines, identity, certificate, public_key, .. } = established;
        let (reader, writer) = split(stream);
        let (lines_to_write, written) = mpsc::channel(WAITING);
        shared.spawn(write(writer, written, shared.limits.writing, stop.clone()));
        lines.allow(shared.longest_line(paired));
        let protocol = shared.me.protocol.with(identity.protocol);
        Self {
            pairing: Pairing::new(protocol, shared.limits.pairing, paired),
            protocol,
            shared,
            identity,
            certificate,
            public_key,
            reader,
            lines,
            writer: lines_to_write,
            told: VecDeque::new(),
            packets_before_pairing: 0,
            stop,
        }
    }

    /// Runs until the connection ends, and says why it did. `first` is told before anything else.
    pub(super) async fn run(mut self, first: Event, mut orders: mpsc::Receiver<Order>) -> Refusal {
        self.told.push_back(first);
        let events = self.shared.events.clone();
        let why = loop {
            let quiet = self.told.is_empty();
            let late = self.time_left();
            tokio::select! {
                () = self.stop.cancelled() => break Refusal::Closed,
                Some(order) = orders.recv() => self.obey(order),
                () = sleep(late.unwrap_or_default()), if late.is_some() => {
                    let steps = self.pairing.on_time(self.shared.clock.now());
                    self.take(steps);
                }
                permit = events.reserve(), if !quiet => {
                    let (Ok(permit), Some(event)) = (permit, self.told.pop_front()) else {
                        break Refusal::Closed;
                    };
                    permit.send(event);
                }
                line = next_line(&mut self.reader, &mut self.lines), if quiet => {
                    if let Err(why) = self.read(line).await {
                        break why;
                    }
                }
            }
        };
        refuse(orders);
        self.stop.cancel();
        if self.pairing.deadline().is_some() {
            let device = self.identity.id.clone();
            self.told.push_back(Event::PairingFailed { device, why: Failure::Disconnected });
        }
        for event in self.told {
            self.shared.tell(event).await;
        }
        why
    }

    /// How long the pairing waits for an answer.
    fn time_left(&self) -> Option<Duration> {
        let until = self.pairing.deadline()?;
        let left = until.duration_since(self.shared.clock.now());
        Some(Duration::try_from(left).unwrap_or_default())
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Tap(tap) => {
                let steps = self.pairing.on_tap(tap, self.shared.clock.now());
                self.take(steps);
            }
            Order::Accept { key } => {
                // Another device may have taken the place of the one whose key was compared.
                if self.pairing.asked().is_some_and(|timestamp| self.key(timestamp) == key) {
                    let steps = self.pairing.on_tap(Tap::Accept, self.shared.clock.now());
                    self.take(steps);
                }
            }
            Order::Send(_, done) if !self.pairing.is_paired() => {
                answer(Some(done), Err(SendError::NotPaired));
            }
            Order::Send(packet, done) => {
                let line = packet.line(self.shared.clock.now());
                if let Err(full) = self.writer.try_send(Written { line, done: Some(done) }) {
                    let done = full.into_inner().done;
                    answer(done, Err(SendError::Busy));
                }
            }
        }
    }

    async fn read(&mut self, line: Result<Vec<u8>, Refusal>) -> Result<(), Refusal> {
        match parsed(line?).await {
            Ok(Packet::Pair(pair)) => {
                self.count()?;
                let steps = self.pairing.on_packet(pair, self.shared.clock.now());
                self.take(steps);
            }
            // A device of version 8 that was taken for one of version 7, because it was slow.
            Ok(Packet::Other(name)) if name == identity::TYPE => return Err(Refusal::IdentityChanged),
            // Unknown packets are nobody's business, and one that is malformed is no reason to lose the rest.
            Ok(Packet::Other(_)) | Err(Malformed) => self.count()?,
            Ok(packet) if self.pairing.is_paired() => {
                self.told.push_back(Event::Packet(self.identity.id.clone(), packet));
            }
            Ok(_) => {
                self.count()?;
                if let Some(no) = self.pairing.on_other_packet() {
                    self.take(vec![Step::Send(no)]);
                }
            }
        }
        Ok(())
    }

    /// Counts what a device sends without being paired.
    fn count(&mut self) -> Result<(), Refusal> {
        if self.pairing.is_paired() {
            return Ok(());
        }
        self.packets_before_pairing += 1;
        let enough = self.packets_before_pairing > self.shared.limits.packets_before_pairing;
        if enough { Err(Refusal::TooMuch) } else { Ok(()) }
    }

    fn take(&mut self, steps: Vec<Step>) {
        for step in steps {
            match step {
                Step::Send(pair) => self.write_pair(pair),
                Step::Tell(news) => {
                    let event = self.event(news);
                    self.told.push_back(event);
                }
            }
        }
    }

    fn write_pair(&mut self, pair: Pair) {
        let line = Packet::Pair(pair).line(self.shared.clock.now());
        // A writer that is this far behind is about to be given up.
        drop(self.writer.try_send(Written { line, done: None }));
    }

    fn event(&mut self, news: News) -> Event {
        let device = self.identity.id.clone();
        match news {
            News::Requested { timestamp } => Event::PairingRequested { device, key: self.key(timestamp) },
            News::Asked { timestamp } => Event::PairingAsked { device, key: self.key(timestamp) },
            News::Failed(why) => Event::PairingFailed { device, why },
            News::Paired => {
                let certificate = self.certificate.clone();
                let pin = Pin { device, certificate, protocol: self.identity.protocol };
                self.lines.allow(self.shared.longest_line(true));
                self.shared.registry().paired(pin.clone());
                Event::Paired(pin)
            }
            News::Unpaired(by) => {
                self.lines.allow(self.shared.longest_line(false));
                self.packets_before_pairing = 0;
                self.shared.registry().unpaired(&device);
                Event::Unpaired { device, by }
            }
        }
    }

    fn key(&self, timestamp: i64) -> String {
        verification_key(&self.shared.public_key, &self.public_key, self.protocol, timestamp)
    }
}

/// Says what became of a packet. Whoever asked may no longer want to know.
fn answer(done: Option<Done>, outcome: Result<(), SendError>) {
    let _ = done.map(|done| done.send(outcome));
}

/// Answers the orders that were not carried out.
fn refuse(mut orders: mpsc::Receiver<Order>) {
    orders.close();
    while let Ok(order) = orders.try_recv() {
        if let Order::Send(_, done) = order {
            answer(Some(done), Err(SendError::NotConnected));
        }
    }
}

async fn parsed(line: Vec<u8>) -> Result<Packet, Malformed> {
    if line.len() <= LONG {
        return Packet::parse(&line);
    }
    spawn_blocking(move || Packet::parse(&line)).await.unwrap_or(Err(Malformed))
}

/// Writes lines until the link stops or the device takes none.
async fn write(
    mut stream: WriteHalf<TlsStream<TcpStream>>,
    mut lines: mpsc::Receiver<Written>,
    patience: Duration,
    stop: CancellationToken,
) {
    while let Some(Written { line, done }) = lines.recv().await {
        let written = timeout(patience, async {
            stream.write_all(&line).await?;
            stream.flush().await
        });
        let outcome = match written.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(SendError::Unsure),
        };
        let failed = outcome.is_err();
        answer(done, outcome);
        if failed {
            break;
        }
    }
    stop.cancel();
    lines.close();
    while let Ok(Written { done, .. }) = lines.try_recv() {
        answer(done, Err(SendError::NotConnected));
    }
    drop(timeout(patience, stream.shutdown()).await);
}
