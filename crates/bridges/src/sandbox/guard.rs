//! `kai __sandbox guard`: starts one command, watches over it, and is not done before nothing of it is left.
//!
//! Four things can happen, and each has a thread that waits for it: the command ends, its time is up, Kai is gone, or
//! (this thread) it uses too much. Then everything is killed. In the built-in way no process can leave the group of the
//! first (`setsid` and `setpgid` are refused), so one signal reaches all at once, however fast they multiply; with
//! bubblewrap they die with the first process of their namespace. Whoever lost its parent becomes a child of the guard,
//! so having no child left means that nothing is.

use std::fs::{self, File};
use std::io::{self, BufRead, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kai_assistant::device::shell::{Collector, End, Printed, Ran};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, kill_process_group,
    set_child_subreaper, wait, waitid, waitpid,
};

use super::scratch::Scratch;
use super::usage::{self, Process, Written};
use super::{OURSELVES, Order, Part, Report, SUBCOMMAND, Way, bubblewrap, calls, limits};

enum Event {
    Ended(i32),
    TimeUp,
    /// Kai is gone, or does not want to know any more.
    Abandoned,
}

const LONGEST_ORDER: u64 = 4 * 1024 * 1024;
/// What a shell adds to the number of a signal.
const SIGNALLED: i32 = 128;

pub(super) fn serve() -> ExitCode {
    let report: Report = watch_over_one();
    let answer = serde_json::to_vec(&report).unwrap_or_default();
    // Kai may be gone.
    let _ = io::stdout().write_all(&answer);
    ExitCode::SUCCESS
}

fn watch_over_one() -> Report {
    close_what_we_inherited()?;
    let mut line = String::new();
    io::stdin().lock().take(LONGEST_ORDER).read_line(&mut line).map_err(|e| e.to_string())?;
    let order: Order = serde_json::from_str(&line).map_err(|e| e.to_string())?;
    set_child_subreaper(Some(getpid())).map_err(|e| e.to_string())?;
    limits::apply(order.patience, usage::tasks_of_this_user())
        .map_err(|e| format!("its limits could not be set: {e}"))?;
    let (mut child, written, scratch) = start(&order)?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or("the command has no number")?;
    let (out, err) = (collect(child.stdout.take()), collect(child.stderr.take()));
    let end = first_to_happen(pid, order.patience, &written);
    end_everything(pid);
    drop(scratch);
    let (stdout, stderr) = (collected(out), collected(err));
    end.map(|end| Ran { stdout, stderr, end }).ok_or_else(|| "nobody waits for it any more".to_owned())
}

/// Whoever started Kai may have left files open for it, and they are none of a command's business.
fn close_what_we_inherited() -> Result<(), String> {
    let open = fs::read_dir("/proc/self/fd").map_err(|e| e.to_string())?;
    let numbers = open.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    // One of them is the list itself, which is closed by then.
    let numbers: Vec<i32> = numbers.filter(|number| *number > 2).collect();
    for number in numbers {
        let _ = nix::unistd::close(number);
    }
    Ok(())
}

fn start(order: &Order) -> Result<(Child, Written, Option<Scratch>), String> {
    let failed = |e: io::Error| format!("it could not be started: {e}");
    match &order.way {
        Way::Bubblewrap(program) => {
            // Open in bubblewrap too, which reads it and closes it.
            let calls = refused_calls().map_err(|e| format!("the system calls could not be listed: {e}"))?;
            let arguments = bubblewrap::arguments(order, &bubblewrap::programs(), calls.as_raw_fd());
            let child = bare(program).args(arguments).stdin(Stdio::null()).spawn().map_err(failed)?;
            Ok((child, Written::Inside(Path::new(bubblewrap::TMP)), None))
        }
        Way::BuiltIn => {
            let scratch =
                Scratch::within(&order.scratch).map_err(|e| format!("it has no scratch folder: {e}"))?;
            let order = Order { scratch: scratch.0.clone(), ..order.clone() };
            let mut inmate = bare(Path::new(OURSELVES));
            let mut child = inmate
                .args([SUBCOMMAND, Part::Inmate.name()])
                .stdin(Stdio::piped())
                .spawn()
                .map_err(failed)?;
            if let Some(mut to) = child.stdin.take() {
                // If it does not listen, its end says why.
                let _ = serde_json::to_vec(&order).map(|order| to.write_all(&order));
            }
            Ok((child, Written::Folder(scratch.0.clone()), Some(scratch)))
        }
    }
}

/// Nothing of our environment, least of all what was asked for inside.
fn bare(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().current_dir("/").stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn refused_calls() -> Result<File, String> {
    let file = memfd_create("calls", MemfdFlags::empty()).map_err(|e| e.to_string())?;
    let mut file = File::from(file);
    file.write_all(&calls::bytes(&calls::filter(None)?))
        .and_then(|()| file.rewind())
        .map_err(|e| e.to_string())?;
    Ok(file)
}

/// Reads to the end, however long that is, and keeps a part.
fn collect(from: Option<impl Read + Send + 'static>) -> JoinHandle<Printed> {
    thread::spawn(move || {
        let (mut collector, mut chunk) = (Collector::default(), vec![0; 64 * 1024]);
        let mut from = from;
        while let Some(read) =
            from.as_mut().and_then(|from| from.read(&mut chunk).ok()).filter(|read| *read > 0)
        {
            collector.add(&chunk[..read]);
        }
        collector.printed()
    })
}

fn collected(reader: JoinHandle<Printed>) -> Printed {
    reader.join().unwrap_or_default()
}

/// How it ended or has to end; `None` when nobody wants to know.
fn first_to_happen(pid: Pid, patience: Duration, written: &Written) -> Option<End> {
    let (tell, events) = mpsc::channel();
    let (timer, line) = (tell.clone(), tell.clone());
    thread::spawn(move || await_the_end(pid, &tell));
    thread::spawn(move || {
        thread::sleep(patience);
        timer.send(Event::TimeUp)
    });
    thread::spawn(move || {
        // Nothing more is ever said; it can only be closed.
        while io::stdin().read(&mut [0; 64]).is_ok_and(|read| read > 0) {}
        line.send(Event::Abandoned)
    });
    loop {
        match events.recv_timeout(limits::LOOK) {
            Ok(Event::Ended(code)) => return Some(End::Exited(code)),
            Ok(Event::TimeUp) => return Some(End::TimedOut),
            Ok(Event::Abandoned) | Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {
                let processes = usage::processes();
                bury_orphans(&processes, pid);
                if let Some(why) = usage::too_much(&processes, written) {
                    return Some(End::Stopped(why));
                }
            }
        }
    }
}

/// Dead processes count against the limit until somebody has looked after them. The first is left for the end.
fn bury_orphans(processes: &[Process], first: Pid) {
    let me = getpid().as_raw_pid();
    for orphan in processes.iter().filter(|it| it.dead && it.parent == me && it.pid != first.as_raw_pid()) {
        let _ = waitpid(Pid::from_raw(orphan.pid), WaitOptions::NOHANG);
    }
}

/// Leaves it where it is, so that its number is nobody else's until everything has been killed.
fn await_the_end(pid: Pid, tell: &Sender<Event>) {
    let status = loop {
        match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Err(Errno::INTR) => {}
            other => break other.ok().flatten(),
        }
    };
    let code = status.and_then(|it| it.exit_status().or_else(|| Some(SIGNALLED + it.terminating_signal()?)));
    // The guard may have had enough already.
    let _ = tell.send(Event::Ended(code.unwrap_or(SIGNALLED)));
}

fn end_everything(first: Pid) {
    // Both, since it may have ended, or may not have come so far as to have a group.
    let _ = kill_process_group(first, Signal::KILL);
    let _ = kill_process(first, Signal::KILL);
    while !matches!(wait(WaitOptions::empty()), Err(Errno::CHILD)) {}
}

/// One word on stderr, which the guard takes for the command's.
pub(super) fn complain(sentence: &str) {
    let _ = io::stderr().write_all(sentence.as_bytes());
}
