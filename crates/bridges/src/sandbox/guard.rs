//! `kai __sandbox guard`: starts one command, supervises it, and exits only when none of its processes are left.
//!
//! It waits for four events, each in its own thread: the command ends, its time is up, Kai is gone, or (this thread)
//! it uses too much. Then everything is killed. In the built-in sandbox no process can leave the first one's process
//! group (`setsid` and `setpgid` are denied), so one signal reaches all of them at once, however fast they fork. With
//! bubblewrap they die with the first process of their namespace. Orphaned processes become children of the guard, so
//! when it has no children left, nothing is left.

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
    /// Kai is gone, or has given up on the command.
    Abandoned,
}

const LONGEST_ORDER: u64 = 4 * 1024 * 1024;
/// Shells add this to a signal's number to make an exit code.
const SIGNALLED: i32 = 128;

pub(super) fn serve() -> ExitCode {
    let report: Report = watch_over_one();
    let answer = serde_json::to_vec(&report).unwrap_or_default();
    // Kai may be gone already.
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

/// Closes inherited files. The process that started Kai may have left some open, and a command must not have them.
fn close_what_we_inherited() -> Result<(), String> {
    let open = fs::read_dir("/proc/self/fd").map_err(|e| e.to_string())?;
    let numbers = open.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    // One of them is the directory being read, which is closed by now.
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
            // Inherited by bubblewrap, which reads and closes it.
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
                // If the inmate does not read it, its exit tells why.
                let _ = serde_json::to_vec(&order).map(|order| to.write_all(&order));
            }
            Ok((child, Written::Folder(scratch.0.clone()), Some(scratch)))
        }
    }
}

/// A command without our environment. Variables for the command are set inside the sandbox only.
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

/// Reads all output in a thread, however long, and keeps part of it.
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

/// How the command ended or must be ended; `None` if Kai no longer waits for it.
fn first_to_happen(pid: Pid, patience: Duration, written: &Written) -> Option<End> {
    let (tell, events) = mpsc::channel();
    let (timer, line) = (tell.clone(), tell.clone());
    thread::spawn(move || wait_for_exit(pid, &tell));
    thread::spawn(move || {
        thread::sleep(patience);
        timer.send(Event::TimeUp)
    });
    thread::spawn(move || {
        // Kai sends nothing more; the pipe can only be closed.
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
                reap_orphans(&processes, pid);
                if let Some(why) = usage::too_much(&processes, written) {
                    return Some(End::Stopped(why));
                }
            }
        }
    }
}

/// Reaps dead orphans, because they count against the process limit until then. The command itself is left for the
/// end.
fn reap_orphans(processes: &[Process], first: Pid) {
    let me = getpid().as_raw_pid();
    for orphan in processes.iter().filter(|it| it.dead && it.parent == me && it.pid != first.as_raw_pid()) {
        let _ = waitpid(Pid::from_raw(orphan.pid), WaitOptions::NOHANG);
    }
}

/// Waits for the command to end but does not reap it, so that its pid cannot be reused before everything has been
/// killed.
fn wait_for_exit(pid: Pid, tell: &Sender<Event>) {
    let status = loop {
        match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Err(Errno::INTR) => {}
            other => break other.ok().flatten(),
        }
    };
    let code = status.and_then(|it| it.exit_status().or_else(|| Some(SIGNALLED + it.terminating_signal()?)));
    // The receiver may be gone already.
    let _ = tell.send(Event::Ended(code.unwrap_or(SIGNALLED)));
}

fn end_everything(first: Pid) {
    // Both: the process may have ended already, or may not have created its group yet.
    let _ = kill_process_group(first, Signal::KILL);
    let _ = kill_process(first, Signal::KILL);
    while !matches!(wait(WaitOptions::empty()), Err(Errno::CHILD)) {}
}

/// Prints a message on stderr, where the guard collects it as the command's output.
pub(super) fn complain(sentence: &str) {
    let _ = io::stderr().write_all(sentence.as_bytes());
}
