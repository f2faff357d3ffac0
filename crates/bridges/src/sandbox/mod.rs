//! Runs commands in a sandbox on Linux, in one of two ways.
//!
//! ```text
//! Kai ── guard ── bwrap ── sh -c …        bubblewrap: namespaces of its own, and refused system calls
//! Kai ── guard ── inmate, then sh -c …    built in: Landlock, and more refused system calls
//! ```
//!
//! Guard and inmate are this same program, started again (`kai __sandbox …`) with an empty environment. The **guard**
//! holds one end of a pipe whose other end Kai holds: when Kai closes it or dies, the guard kills everything. It
//! reads the output, checks resource usage, enforces the timeout, and exits only when none of the command's processes
//! are left. The **inmate** drops its own rights and then becomes the shell. If Kai runs as root, it starts the guard
//! as a user that owns nothing. Which way to use is found out once, by trying; a way in which Kai's home is visible
//! is rejected.

mod bubblewrap;
mod calls;
mod guard;
mod inmate;
mod limits;
mod reader;
mod scratch;
mod system;
mod usage;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use kai_assistant::device::PortError;
use kai_assistant::device::shell::{End, Ending, Found, Job, Probing, Ran, Sandbox};
use kai_words::said;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::sync::{OnceCell, Semaphore};

pub use reader::only_reads;

/// The sandbox of this machine, with one guard for each command.
pub struct Guarded {
    /// The path of `bwrap`, if it is installed.
    bubblewrap: Option<PathBuf>,
    /// The folder in which scratch folders are created.
    scratch: PathBuf,
    /// Kai's own folder, which no command may see.
    home: PathBuf,
    found: OnceCell<Chosen>,
    /// Limits how many commands run at once: a round of tool calls runs in parallel, and each may use its full
    /// limits.
    room: Semaphore,
}

/// The sandbox that was found to work, or why none does.
struct Chosen {
    way: Way,
    found: Found,
}

/// The mechanism that isolates a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Way {
    Bubblewrap(PathBuf),
    BuiltIn,
}

/// The role in which this program is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Guard,
    Inmate,
}

impl Part {
    /// Parses the role's name on the command line.
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

/// Runs this process in the given role until it is done.
pub fn play(part: Part) -> ExitCode {
    match part {
        Part::Guard => guard::serve(),
        Part::Inmate => inmate::serve(),
    }
}

/// The job that the guard is given.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    way: Way,
    command: String,
    env: BTreeMap<String, String>,
    folder: Option<PathBuf>,
    /// The folder in which scratch folders are created; for an inmate, the scratch folder itself.
    scratch: PathBuf,
    patience: Duration,
}

/// The guard's answer.
type Report = Result<Ran, String>;

/// The hidden subcommand.
const SUBCOMMAND: &str = "__sandbox";
/// The file that this process runs. It works even if the file was replaced since, or if another user cannot reach its
/// path.
const OURSELVES: &str = "/proc/self/exe";
/// The user id of commands when Kai runs as root. It is from a range that no system assigns.
const NOBODY: u32 = 65_532;
const AT_ONCE: usize = 3;
/// Extra time for the guard, more than it needs to clean up.
const GRACE: Duration = Duration::from_secs(15);
const LONGEST_REPORT: u64 = 2 * 1024 * 1024;
/// Exit code of the trial command if it could not see Kai's home.
const KEPT_IN: i32 = 42;
const TRY_OUT: &str = "ls \"$HIDDEN\" > /dev/null 2>&1 && exit 1; exit 42";

impl Guarded {
    pub fn new(bubblewrap: Option<PathBuf>, scratch: PathBuf, home: PathBuf) -> Self {
        Self { bubblewrap, scratch, home, found: OnceCell::new(), room: Semaphore::new(AT_ONCE) }
    }

    async fn chosen(&self) -> &Chosen {
        self.found.get_or_init(|| self.choose()).await
    }

    /// Chooses the first way that works.
    async fn choose(&self) -> Chosen {
        let without = match self.bubblewrap.clone().map(Way::Bubblewrap) {
            Some(way) => match self.try_out(&way).await {
                Ok(()) => return Chosen { way, found: Ok("bubblewrap") },
                Err(why) => Some(why),
            },
            None => None,
        };
        let found = match self.try_out(&Way::BuiltIn).await {
            Ok(()) => Ok("built in (Landlock and seccomp)"),
            Err(why) => Err(match without {
                Some(bubblewrap) => said::lacks_sandbox_broken(bubblewrap, why),
                None => said::lacks_sandbox_none(why),
            }),
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

/// Starts a guard and waits for its report. The guard's input stays open until then, because closing it means giving
/// up.
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

/// This program in the given role, without our environment.
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
            chosen
                .found
                .as_ref()
                .map_err(|why| PortError::Failed(why.to_string().trim_end_matches('.').to_owned()))?;
            let _place = self.room.acquire().await.map_err(|e| PortError::Failed(e.to_string()))?;
            self.under_guard(&chosen.way, job).await.map_err(PortError::Failed)
        })
    }
}

/// The environment of a command. `scratch` is its home and temporary folder.
fn environment<'a>(order: &'a Order, scratch: &'a Path) -> BTreeMap<&'a str, &'a str> {
    let scratch = scratch.to_str().unwrap_or("/");
    let ours = [("PATH", system::PATH), ("HOME", scratch), ("TMPDIR", scratch), ("LANG", "C.UTF-8")];
    let theirs = order.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    ours.into_iter().chain(theirs).collect()
}
