//! A model that Kai runs itself, as its user meets it: the small one of `crates/local`, in the real program.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::kit::{Daemon, Done, Home, kai, wait_for};
use crate::sms::{ALICE, ready};

const TINY: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/models/smollm2-135m-instruct-q4_1.gguf");

fn tiny() -> Option<PathBuf> {
    let file = PathBuf::from(TINY);
    if file.is_file() {
        return Some(file);
    }
    let missing = "\n!! The small model is not here, so it was NOT TRIED in Kai: run scripts/test, which fetches it.\n\n";
    // Past the test harness, which would swallow it.
    let _ = std::io::Write::write_all(&mut std::io::stderr(), missing.as_bytes());
    None
}

/// Keeps everything that this test starts on one core. The engine takes all it may use, and its threads wait for each
/// other in vain where other tests have the cores.
fn on_one_core() {
    let thread = std::fs::read_link("/proc/thread-self").unwrap();
    let thread = thread.file_name().unwrap();
    let told = Command::new("taskset").args(["-pc", "0"]).arg(thread).stdout(Stdio::null()).status();
    // Without it, the test only takes longer.
    drop(told);
}

#[test]
fn a_model_on_this_computer_is_added_asked_killed_and_stopped() {
    let Some(file) = tiny() else { return };
    on_one_core();
    let home = with_model(&file);
    it_answers_without_a_daemon(&home);
    let daemon = home.start();
    a_killed_worker_is_a_sentence_and_the_next_question_is_answered(&home, &daemon);
    the_worker_reads_nothing_of_the_home(&home, &daemon);
    an_idle_worker_ends(&home, &daemon);
    a_question_is_stopped_and_the_worker_stays(&home, &daemon);
    a_worker_ends_with_kai(&home, daemon);
    removing_it_leaves_the_file_of_its_user(&home, &file);
}

fn with_model(file: &Path) -> Home {
    let home = Home::new();
    let no_model = home.path().join("no_model.gguf");
    std::fs::write(&no_model, "no model").unwrap();
    home.run(&["models", "add", "local", "--file", no_model.to_str().unwrap()]).refused_last(1, "GGUF");
    home.run(&["models", "add", "local", "--file", "/nowhere.gguf"])
        .refused_last(1, "There is no file /nowhere.gguf.");
    let added = home.run(&["models", "add", "local", "--name", "tiny", "--file", file.to_str().unwrap()]);
    assert_eq!(added.code, 0, "{added:?}");
    // A heartbeat of the daemon would start a worker at its own time.
    home.run(&["settings", "set", "heartbeat_enabled", "false"]);
    home
}

fn asked(home: &Home) -> Done {
    home.run(&["ask", "Say hello in one short sentence."])
}

fn it_answers_without_a_daemon(home: &Home) {
    let answer = asked(home);
    assert!(answer.code == 0 && !answer.out.trim().is_empty(), "{answer:?}");
    let listed = home.run(&["models", "list"]).out;
    assert!(listed.contains("on this computer"), "{listed}");
    let told = home.run(&["ledger", "show"]).out;
    assert!(told.lines().all(|line| !line.contains("Sent ") || line.contains("stayed here")), "{told}");
    let records = home.run(&["ledger", "show", "--json"]).json();
    let requests = records.as_array().unwrap().iter().filter(|record| record["what"] == "request");
    assert!(
        requests.clone().count() > 0 && requests.clone().all(|record| record["here"] == true),
        "{records}"
    );
}

/// The worker processes of a daemon.
fn workers(daemon: &Daemon) -> Vec<u32> {
    let children = format!("/proc/{0}/task", daemon.pid());
    let of_thread = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("children")).ok();
    let children: Vec<String> =
        std::fs::read_dir(children).unwrap().flatten().filter_map(of_thread).collect();
    let is_worker = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.windows(7).any(|part| part == b"__model"))
    };
    children.join(" ").split_whitespace().filter_map(|pid| pid.parse().ok()).filter(is_worker).collect()
}

fn signalled(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

/// Acts while a question is answered by a worker that was started for it, and tells what came of the question.
fn while_answering(home: &Home, daemon: &Daemon, act: impl FnOnce(u32, u32)) -> Done {
    let mut command = kai(home.path());
    let asking = command
        .args(["ask", "Tell a very long story about the sea."])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("a worker", || !workers(daemon).is_empty());
    act(asking.id(), workers(daemon)[0]);
    asking.wait_with_output().unwrap().into()
}

fn a_killed_worker_is_a_sentence_and_the_next_question_is_answered(home: &Home, daemon: &Daemon) {
    let told = while_answering(home, daemon, |_, worker| signalled("-KILL", worker));
    told.refused_last(1, "tiny");
    assert!(!told.err.contains("panicked"), "{told:?}");
    let answer = asked(home);
    assert!(answer.code == 0 && !answer.out.trim().is_empty(), "{answer:?}");
}

fn a_question_is_stopped_and_the_worker_stays(home: &Home, daemon: &Daemon) {
    let mut before = 0;
    let told = while_answering(home, daemon, |asking, worker| {
        before = worker;
        signalled("-INT", asking);
    });
    told.refused_last(1, "Cancelled");
    let answer = asked(home);
    assert!(answer.code == 0 && !answer.out.trim().is_empty(), "{answer:?}");
    assert_eq!(workers(daemon), [before]);
}

/// What the kernel says of the worker: it has no privileges to gain, a filter of system calls, and no file of the home.
fn the_worker_reads_nothing_of_the_home(home: &Home, daemon: &Daemon) {
    let worker = workers(daemon)[0];
    let status = std::fs::read_to_string(format!("/proc/{worker}/status")).unwrap();
    for confined in ["NoNewPrivs:\t1", "Seccomp:\t2"] {
        assert!(status.contains(confined), "{status}");
    }
    let open = std::fs::read_dir(format!("/proc/{worker}/fd")).unwrap().flatten();
    let files = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    let of_home: Vec<PathBuf> = files.filter(|file| file.starts_with(home.path())).collect();
    assert!(of_home.is_empty(), "{of_home:?}");
}

fn an_idle_worker_ends(home: &Home, daemon: &Daemon) {
    home.run(&["settings", "set", "local_idle_minutes", "0"]);
    assert_eq!(asked(home).code, 0);
    wait_for("the end of the idle worker", || workers(daemon).is_empty());
    home.run(&["settings", "set", "local_idle_minutes", "5"]);
}

fn a_worker_ends_with_kai(home: &Home, daemon: Daemon) {
    assert_eq!(asked(home).code, 0);
    let worker = workers(&daemon)[0];
    assert_eq!(daemon.stop("-TERM").0, Some(0));
    wait_for("the end of the worker", || !Path::new(&format!("/proc/{worker}")).exists());
}

fn removing_it_leaves_the_file_of_its_user(home: &Home, file: &Path) {
    let removed = home.run(&["models", "remove", "tiny"]);
    assert!(removed.code == 0 && file.is_file(), "{removed:?}");
}

/// With *private first*, a heartbeat asks the model on this computer, although another one is first and chosen. Whatever
/// leaves is recorded before it does, so the ledger shows that nothing did.
#[test]
fn a_private_heartbeat_sends_nothing_elsewhere() {
    let Some(file) = tiny() else { return };
    on_one_core();
    let phone = ready();
    let far = ["--name", "far", "--base-url", "https://far.invalid/v1", "--model", "m"];
    let near = ["--name", "tiny", "--file", file.to_str().unwrap()];
    for (preset, model) in [("openai-compatible", &far[..]), ("local", &near)] {
        let added = phone.run(&[&["models", "add", preset], model].concat());
        assert_eq!(added.code, 0, "{added:?}");
    }
    for (name, value) in [("heartbeat_model", "far"), ("heartbeat_local_first", "true")] {
        assert_eq!(phone.run(&["settings", "set", name, value]).code, 0);
    }
    phone.inbox(&[(41, ALICE, "before"), (42, ALICE, "Can you pick up the kids at 5 today?")]);
    assert_eq!(phone.run(&["sms", "poll"]).code, 0);
    let ran = phone.run(&["heartbeat", "run", "--force"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let records = phone.run(&["ledger", "show", "--json"]).json();
    let requests: Vec<&Value> =
        records.as_array().unwrap().iter().filter(|record| record["what"] == "request").collect();
    assert!(requests.iter().any(|record| record["seen"].to_string().contains("42")), "{records}");
    assert!(requests.iter().all(|record| record["here"] == true && record["model"] == "tiny"), "{records}");
}
