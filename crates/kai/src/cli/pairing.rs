//! `kai phones pair`: searches for phones, shows the key that both devices must show, and asks what the phone may be
//! used for. The daemon does the work; this asks it what goes on and shows that. The search ends with the command,
//! however that ends.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use kai_assistant::phones::Switch;
use rustix::termios::{QueueSelector, tcflush};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::asking::Cli;
use super::{show, yes};
use crate::app::messages::start_kai;
use crate::call::Call;
use crate::call::phones::{NearbyRow, NetworkRow, PairingRow, PhoneRow, PhonesCall};
use crate::caller::Caller;
use crate::commands::phones::grouped;
use crate::failure::Failure;
use crate::terminal::input;
use crate::terminal::out::{self, visible};

/// How often to ask the daemon what goes on.
const LOOK: Duration = Duration::from_millis(400);
/// How long a phone whose switches were changed is given to connect anew.
const RECONNECTING: Duration = Duration::from_secs(10);

pub(super) fn pair(ask: &Cli, address: Option<String>) -> Result<ExitCode, Failure> {
    // Someone who cannot see the key cannot compare it.
    if !(input::has_person() && io::stderr().is_terminal()) {
        return Err(Failure::failed(
            "Nothing was paired, because Kai has to show you a key first. Run this on a terminal, or pair the phone \
             on the page, under Settings → Phones.",
        ));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Failure::failed(format!("Kai could not start: {e}.")))?;
    let paired = runtime.block_on(async {
        // Before the search, or it would go on after a Ctrl-C.
        let keys = Keys { lines: keyboard(), cancelled: ctrl_c()? };
        let search = Search::begin(&ask.caller)?;
        let mut desk = Desk { caller: &ask.caller, keys };
        let row = desk.pair(address).await?;
        drop(search);
        desk.ask_switches(&row).await
    });
    // The keyboard is still being read; do not wait for a line.
    runtime.shutdown_timeout(Duration::ZERO);
    ask.print(&paired?, |row| show::phones::list(std::slice::from_ref(row)));
    Ok(ExitCode::SUCCESS)
}

/// A search that the daemon runs. Dropping it ends the search.
struct Search<'a>(&'a Caller);

impl<'a> Search<'a> {
    fn begin(caller: &'a Caller) -> Result<Self, Failure> {
        // A search that cannot begin now would begin as soon as it can, with nobody here any more.
        let search = Self(caller);
        asked::<NetworkRow>(caller, PhonesCall::Search { on: true })?;
        Ok(search)
    }
}

impl Drop for Search<'_> {
    fn drop(&mut self) {
        // Without a daemon there is no search either.
        drop(asked::<NetworkRow>(self.0, PhonesCall::Search { on: false }));
    }
}

/// Asks the daemon; nobody else reaches phones.
fn asked<T: serde::de::DeserializeOwned>(caller: &Caller, call: PhonesCall) -> Result<T, Failure> {
    caller.ask_daemon(Call::from(call))?.ok_or_else(start_kai)
}

/// The lines that are typed from now on.
fn keyboard() -> mpsc::UnboundedReceiver<String> {
    let (typed, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        while matches!(io::stdin().read_line(&mut line), Ok(1..)) && typed.send(line.clone()).is_ok() {
            line.clear();
        }
    });
    lines
}

/// Is cancelled by Ctrl-C from now on, which no longer ends the process.
fn ctrl_c() -> Result<CancellationToken, Failure> {
    let mut pressed = signal(SignalKind::interrupt())
        .map_err(|e| Failure::failed(format!("Kai can't listen for Ctrl-C: {e}.")))?;
    let cancelled = CancellationToken::new();
    let cancels = cancelled.clone();
    tokio::spawn(async move {
        pressed.recv().await;
        cancels.cancel();
    });
    Ok(cancelled)
}

/// What the person types.
struct Keys {
    lines: mpsc::UnboundedReceiver<String>,
    /// Ctrl-C was pressed, at whatever moment: also while the daemon was being asked.
    cancelled: CancellationToken,
}

impl Keys {
    /// Waits for a line; `None` when it is time to look what goes on. Ctrl-C and Ctrl-D cancel everything.
    async fn line(&mut self) -> Result<Option<String>, Failure> {
        let cancelled = || Failure::failed("Cancelled.");
        tokio::select! {
            biased;
            () = self.cancelled.cancelled() => Err(cancelled()),
            line = self.lines.recv() => line.map(Some).ok_or_else(cancelled),
            () = tokio::time::sleep(LOOK) => Ok(None),
        }
    }
}

/// The person at the terminal, and the daemon.
struct Desk<'a> {
    caller: &'a Caller,
    keys: Keys,
}

impl Desk<'_> {
    fn look(&self) -> Result<NetworkRow, Failure> {
        asked(self.caller, PhonesCall::Network)
    }

    /// Shows a question. What was typed before it was seen does not answer it.
    fn question(&mut self, question: &str) {
        // A terminal that cannot be flushed has nothing waiting.
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
        while self.keys.lines.try_recv().is_ok() {}
        out::sign(question);
    }

    /// Pairs a phone and returns its row.
    async fn pair(&mut self, address: Option<String>) -> Result<PhoneRow, Failure> {
        let before = self.look()?.last_pairing;
        let pairing = self.agree(address).await?;
        self.confirm(&pairing).await?;
        if !pairing.by_phone {
            out::note("Now accept the request on the phone.");
        }
        loop {
            let network = self.look()?;
            let ended = network.last_pairing.filter(|last| Some(last) != before.as_ref());
            if let Some(last) = ended.filter(|last| last.device == pairing.device) {
                out::note(&last.says);
                return if last.paired { self.row(&pairing.device) } else { Err(nothing_paired()) };
            }
            if !network.pairings.iter().any(|waiting| waiting.device == pairing.device) {
                return self.row(&pairing.device);
            }
            self.keys.line().await?;
        }
    }

    fn row(&self, device: &str) -> Result<PhoneRow, Failure> {
        let rows: Vec<PhoneRow> = asked(self.caller, PhonesCall::List)?;
        rows.into_iter().find(|row| row.device == device).ok_or_else(nothing_paired)
    }

    /// Lists phones as they appear until one is chosen, or until a phone asks by itself.
    async fn agree(&mut self, address: Option<String>) -> Result<PairingRow, Failure> {
        out::note(
            "Searching for phones. Open the KDE Connect app on the phone, on the same network as this computer. \
             Press Ctrl-C to stop.",
        );
        let is_known = address.is_some();
        if let Some(address) = address {
            let phone: NearbyRow = asked(self.caller, PhonesCall::Connect { address })?;
            self.request(phone)?;
        }
        let (mut found, mut told) = (vec![], BTreeSet::new());
        loop {
            let network = self.look()?;
            if let Some(pairing) = network.pairings.first() {
                return Ok(pairing.clone());
            }
            if network.searching_until.is_none() {
                return Err(Failure::failed("The search has ended. To search again: kai phones pair"));
            }
            for trouble in network.troubles.iter().filter(|trouble| told.insert(trouble.what.clone())) {
                out::note(&format!("! {}\n→ {}", trouble.says, trouble.next));
            }
            if !is_known && show_new(&mut found, network.nearby) {
                self.question("Type the number of your phone: ");
            }
            let typed = self.keys.line().await?;
            if let Some(phone) = typed.and_then(|typed| chosen(&found, &typed).cloned()) {
                self.request(phone)?;
            }
        }
    }

    /// Asks a phone to pair.
    fn request(&self, phone: NearbyRow) -> Result<(), Failure> {
        asked::<NetworkRow>(self.caller, PhonesCall::Pair { device: phone.device }).map(drop)
    }

    /// Shows the key and asks whether the phone shows the same.
    async fn confirm(&mut self, pairing: &PairingRow) -> Result<(), Failure> {
        let (name, key) = (visible(&pairing.name), grouped(&pairing.key));
        let asks = if pairing.by_phone { "wants to be paired" } else { "is asked to pair" };
        out::note(&format!("\n{name} {asks}. Both devices must show the same key:\n\n        {key}\n"));
        self.question(&format!("Does your phone show {key}? [y/N] "));
        let device = pairing.device.clone();
        loop {
            let waits = |network: &NetworkRow| network.pairings.iter().any(|other| other.key == pairing.key);
            let network = self.look()?;
            if !waits(&network) {
                out::note("");
                let why = network.last_pairing.filter(|last| last.device == device && !last.paired);
                return Err(why.map_or_else(nothing_paired, |last| Failure::failed(last.says)));
            }
            let Some(typed) = self.keys.line().await? else { continue };
            if yes::is_yes(&typed) {
                let accept = PhonesCall::Accept { device, key: pairing.key.clone() };
                return asked::<NetworkRow>(self.caller, accept).map(drop);
            }
            asked::<NetworkRow>(self.caller, PhonesCall::Refuse { device })?;
            return Err(nothing_paired());
        }
    }

    /// Asks for each switch; all are off before. Who cancels leaves the rest off.
    async fn ask_switches(&mut self, row: &PhoneRow) -> Result<PhoneRow, Failure> {
        out::note("Choose what Kai can do with this phone. You can change this later: kai phones set");
        for switch in Switch::ALL {
            self.question(&format!("{} [y/N] ", asking(switch)));
            let typed = loop {
                match self.keys.line().await {
                    Ok(None) => {}
                    Ok(Some(typed)) => break typed,
                    Err(_) => return self.row(&row.device),
                }
            };
            if yes::is_yes(&typed) {
                let phone = row.id.0.to_string();
                drop(asked::<PhoneRow>(self.caller, PhonesCall::Set { phone, switch, on: true })?);
            }
        }
        self.settled(&row.device).await
    }

    /// The phone's row once it is connected. Kai announces more after a switch was turned on, so the phone has to connect
    /// anew, which takes a moment.
    async fn settled(&mut self, device: &str) -> Result<PhoneRow, Failure> {
        let connected = async {
            loop {
                let row = self.row(device)?;
                if row.connected {
                    return Ok(row);
                }
                self.keys.line().await?;
            }
        };
        match tokio::time::timeout(RECONNECTING, connected).await {
            Ok(Ok::<_, Failure>(row)) => Ok(row),
            // Whoever does not want to wait sees how it stands now.
            Ok(Err(_)) | Err(_) => self.row(device),
        }
    }
}

/// Lists phones that were not listed before. Returns whether there were any.
fn show_new(found: &mut Vec<NearbyRow>, nearby: Vec<NearbyRow>) -> bool {
    let before = found.len();
    for phone in nearby {
        if found.iter().all(|known| known.device != phone.device) {
            let number = found.len() + 1;
            out::note(&format!("  {number}  {} ({})", visible(&phone.name), visible(&phone.address)));
            found.push(phone);
        }
    }
    found.len() > before
}

fn nothing_paired() -> Failure {
    Failure::failed("Nothing was paired.")
}

/// The phone with the number that was typed.
fn chosen<'a>(found: &'a [NearbyRow], typed: &str) -> Option<&'a NearbyRow> {
    let number: usize = typed.trim().parse().ok()?;
    found.get(number.checked_sub(1)?)
}

fn asking(switch: Switch) -> &'static str {
    match switch {
        Switch::ReadSms => "Read its SMS?",
        Switch::SendSms => "Send SMS from it, each after your tap?",
        Switch::Notifications => "Read its notifications?",
        Switch::Names => "Show the names of its contacts beside numbers, to you and to models?",
        Switch::Composer => "Offer to open drafts in its own SMS app?",
        Switch::Tell => "Show on it that a report or a draft is waiting, without message text?",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody waits for a line while the daemon is asked, and Ctrl-C counts all the same.
    #[tokio::test]
    async fn ctrl_c_counts_whenever_it_is_pressed() {
        let (typed, lines) = mpsc::unbounded_channel();
        let mut keys = Keys { lines, cancelled: CancellationToken::new() };
        typed.send("1\n".to_owned()).unwrap();
        assert_eq!(keys.line().await.unwrap().as_deref(), Some("1\n"));
        typed.send("2\n".to_owned()).unwrap();
        keys.cancelled.cancel();
        for _ in 0..2 {
            assert!(keys.line().await.is_err(), "it is not forgotten");
        }
    }

    #[test]
    fn a_phone_is_chosen_by_its_number() {
        let phone = |address: &str| NearbyRow {
            device: address.to_owned(),
            name: "Pixel".to_owned(),
            address: address.to_owned(),
        };
        let found = [phone("192.168.1.20:1716"), phone("[fe80::1]:1717")];
        let address = |phone: Option<&NearbyRow>| phone.map(|phone| phone.address.clone());
        for (typed, expected) in
            [("1\n", Some(0)), (" 2 ", Some(1)), ("0", None), ("3", None), ("Pixel", None)]
        {
            let expected = expected.map(|at: usize| found[at].address.clone());
            assert_eq!(address(chosen(&found, typed)), expected, "{typed}");
        }
    }
}
