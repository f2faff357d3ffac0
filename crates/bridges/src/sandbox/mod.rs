//! A sandbox for commands on Linux, in two ways.
//!
//! ```text
//! Kai ── guard ── bwrap ── sh -c …        bubblewrap: namespaces of its own, and refused system calls
//! Kai ── guard ── inmate, then sh -c …    built in: Landlock, and more refused system calls
//! ```
//!
//! Guard and inmate are ourselves, started anew (`kai __sandbox …`) with an empty environment. The **guard** holds one
//! end of a pipe whose other end Kai holds: when Kai lets go of it, or dies, the guard ends everything. It reads what
//! is printed, looks at what is used, keeps the time, and is not done before nothing of the command is left. The
//! **inmate** takes its own rights away and then becomes the shell. Kai run by root starts the guard as a user that
//! owns nothing. Which way is taken is found out by trying, once; a way that lets Kai's home be seen counts as none.

mod bubblewrap;
mod calls;
mod guard;
mod inmate;
mod limits;
mod scratch;
mod system;
mod usage;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use kai_assistant::device::PortError;
use kai_assistant::device::shell::{End, Ending, Found, Job, Probing, Ran, Sandbox};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::sync::{OnceCell, Semaphore};

/// The sandbox of this machine.
pub struct Guarded {
    /// `bwrap`, if there is one.
    bubblewrap: Option<PathBuf>,
    /// Where scratch folders are made.
    scratch: PathBuf,
    /// Kai's own folder: nothing may see it.
    home: PathBuf,
    found: OnceCell<Chosen>,
    /// A round of calls runs at once, and each may use as much as is allowed.
    room: Semaphore,
}

struct Chosen {
    way: Way,
    found: Found,
}

/// What keeps a command in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Way {
    Bubblewrap(PathBuf),
    BuiltIn,
}

/// Which of us is started anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Guard,
    Inmate,
}

impl Part {
    /// As it is called on the command line.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Guard, Self::Inmate].into_iter().find(|part| part.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Guard => "guard",
            Self::Inmate => "inmate",
        }
    }
}

/// Plays the part in this process, to its end.
pub fn play(part: Part) -> ExitCode {
    match part {
        Part::Guard => guard::serve(),
        Part::Inmate => inmate::serve(),
    }
}

/// What the guard is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    way: Way,
    command: String,
    env: BTreeMap<String, String>,
    folder: Option<PathBuf>,
    /// Where scratch folders are made; for an inmate, the scratch folder itself.
    scratch: PathBuf,
    patience: Duration,
}

/// What the guard answers.
type Report = Result<Ran, String>;

/// The hidden subcommand.
const SUBCOMMAND: &str = "__sandbox";
/// Whatever file this process runs, also when it was replaced meanwhile, and also where another user has no way to it.
const OURSELVES: &str = "/proc/self/exe";
/// Of a range that no system hands out. The user that a command is when Kai is root.
const NOBODY: u32 = 65_532;
const AT_ONCE: usize = 3;
/// More than the guard needs to clean up.
const GRACE: Duration = Duration::from_secs(15);
const LONGEST_REPORT: u64 = 2 * 1024 * 1024;
/// What the try-out ends with if it saw nothing of the home.
const KEPT_IN: i32 = 42;
const TRY_OUT: &str = "ls \"$HIDDEN\" > /dev/null 2>&1 && exit 1; exit 42";

impl Guarded {
    pub fn new(bubblewrap: Option<PathBuf>, scratch: PathBuf, home: PathBuf) -> Self {
        Self { bubblewrap, scratch, home, found: OnceCell::new(), room: Semaphore::new(AT_ONCE) }
    }

    async fn chosen(&self) -> &Chosen {
        self.found.get_or_init(|| self.choose()).await
    }

    /// The first way that works.
    async fn choose(&self) -> Chosen {
        let without = match self.bubblewrap.clone().map(Way::Bubblewrap) {
            Some(way) => match self.try_out(&way).await {
                Ok(()) => return Chosen { way, found: Ok("bubblewrap") },
                Err(why) => format!("bubblewrap does not work here ({why})"),
            },
            None => "bubblewrap is not installed".to_owned(),
        };
        let found = match self.try_out(&Way::BuiltIn).await {
            Ok(()) => Ok("built in (Landlock and seccomp)"),
            Err(why) => Err(format!(
                "Commands are run in a sandbox only, and there is none here: {without}, and the built-in one does not \
                 work ({why}). Install bubblewrap, or use Linux 6.2 or newer with Landlock."
            )),
        };
        Chosen { way: Way::BuiltIn, found }
    }

    async fn try_out(&self, way: &Way) -> Result<(), String> {
        let hidden = self.home.to_str().ok_or("Kai's home has a name that is no text")?;
        let job = Job {
            command: TRY_OUT.to_owned(),
            env: BTreeMap::from([("HIDDEN".to_owned(), hidden.to_owned())]),
            folder: None,
            patience: GRACE,
        };
        let ran = self.under_guard(way, &job).await?;
        match ran.end {
            End::Exited(KEPT_IN) => Ok(()),
            End::Exited(1) if ran.stderr.whole().is_empty() => Err("Kai's home could be seen".to_owned()),
            End::Exited(code) => match ran.stderr.whole().lines().next() {
                Some(line) => Err(line.chars().take(200).collect()),
                None => Err(format!("it ended with {code}")),
            },
            End::TimedOut => Err("it did not end".to_owned()),
            End::Stopped(why) => Err(why),
        }
    }

    async fn under_guard(&self, way: &Way, job: &Job) -> Result<Ran, String> {
        let order = Order {
            way: way.clone(),
            command: job.command.clone(),
            env: job.env.clone(),
            folder: job.folder.clone(),
            scratch: self.scratch.clone(),
            patience: job.patience,
        };
        let order = serde_json::to_string(&order).map_err(|e| e.to_string())? + "\n";
        let limit = job.patience.saturating_add(GRACE);
        let answered = tokio::time::timeout(limit, answer(&order)).await;
        answered.map_err(|_| "the guard of the sandbox did not answer".to_owned())?
    }
}

/// Starts a guard and waits for its report. Its input stays open until then: closing it means to give up.
async fn answer(order: &str) -> Report {
    let mut command = anew(Part::Guard);
    let lost = |e: std::io::Error| format!("the guard of the sandbox was lost: {e}");
    let mut guard =
        command.spawn().map_err(|e| format!("the guard of the sandbox could not be started: {e}"))?;
    let (mut to, from) = (guard.stdin.take(), guard.stdout.take());
    if let Some(to) = &mut to {
        to.write_all(order.as_bytes()).await.map_err(lost)?;
        to.flush().await.map_err(lost)?;
    }
    let mut report = Vec::new();
    if let Some(from) = from {
        from.take(LONGEST_REPORT).read_to_end(&mut report).await.map_err(lost)?;
    }
    guard.wait().await.map_err(lost)?;
    drop(to);
    serde_json::from_slice(&report).map_err(|_| "the guard of the sandbox ended without a word".to_owned())?
}

/// Ourselves in another part, with nothing of our surroundings.
fn anew(part: Part) -> Command {
    let mut command = Command::new(OURSELVES);
    command.arg0("kai").args([SUBCOMMAND, part.name()]).env_clear().current_dir("/").process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

impl Sandbox for Guarded {
    fn probe(&self) -> Probing<'_> {
        Box::pin(async { &self.chosen().await.found })
    }

    fn seen(&self) -> Option<&Found> {
        self.found.get().map(|chosen| &chosen.found)
    }

    fn run<'a>(&'a self, job: &'a Job) -> Ending<'a> {
        Box::pin(async move {
            let chosen = self.chosen().await;
            chosen.found.as_ref().map_err(|why| PortError(why.trim_end_matches('.').to_owned()))?;
            let _place = self.room.acquire().await.map_err(|e| PortError(e.to_string()))?;
            self.under_guard(&chosen.way, job).await.map_err(PortError)
        })
    }
}

/// What a command finds in its environment, with `scratch` for everything it writes.
fn environment<'a>(order: &'a Order, scratch: &'a Path) -> BTreeMap<&'a str, &'a str> {
    let scratch = scratch.to_str().unwrap_or("/");
    let ours = [("PATH", system::PATH), ("HOME", scratch), ("TMPDIR", scratch), ("LANG", "C.UTF-8")];
    let theirs = order.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    ours.into_iter().chain(theirs).collect()
}
