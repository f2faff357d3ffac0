//! Tests the tool with a fake sandbox: which jobs it passes on, and what the model is told.

use std::sync::Mutex;

use serde_json::{Value, json};

use super::*;
use crate::tool::{AnyTool, Lack, execute};

/// A fake sandbox that records its jobs and ends as it is told to.
struct Stage {
    found: Found,
    end: End,
    jobs: Mutex<Vec<Job>>,
}

impl Sandbox for Stage {
    fn probe(&self) -> Probing<'_> {
        Box::pin(async { &self.found })
    }

    fn seen(&self) -> Option<&Found> {
        Some(&self.found)
    }

    fn run<'a>(&'a self, job: &'a Job) -> Ending<'a> {
        self.jobs.lock().unwrap().push(job.clone());
        let mut out = printed::Collector::default();
        out.add(b"hello\n");
        let ran = Ran { stdout: out.printed(), stderr: Printed::default(), end: self.end.clone() };
        Box::pin(async move {
            if job.command == "wait" {
                tokio::time::sleep(job.patience).await;
            }
            Ok(ran)
        })
    }
}

fn shell(found: Found, end: End) -> (ShellCommand, Arc<Stage>) {
    let stage = Arc::new(Stage { found, end, jobs: Mutex::default() });
    let db = Db::in_memory(crate::MIGRATIONS).unwrap();
    (ShellCommand { db, sandbox: Some(Arc::clone(&stage) as _), home: PathBuf::from("/kai") }, stage)
}

async fn called(tool: &ShellCommand, arguments: &Value) -> Value {
    let result = execute(Ok(tool), &Values::default(), &arguments.to_string(), &Run::BY_HAND).await;
    serde_json::from_str(&result.text).unwrap()
}

#[tokio::test]
async fn what_is_out_of_bounds_never_reaches_the_sandbox() {
    let (tool, stage) = shell(Ok("a stage"), End::Exited(0));
    for (arguments, word) in [
        (json!({}), "\"command\" must be a string"),
        (json!({"command": " \n"}), "must not be empty"),
        (json!({"command": "x".repeat(100_001)}), "at most 100000 bytes"),
        (json!({"command": "echo a\0b"}), "NUL"),
        (json!({"command": "id", "timeout": 0}), "from 1 to 120"),
        (json!({"command": "id", "timeout": 121}), "from 1 to 120"),
        (json!({"command": "id", "env": "A=b"}), "\"env\" must be a JSON object"),
        (json!({"command": "id", "env": {"A": "b\0"}}), "NUL"),
        (json!({"command": "id", "env": {"A=B": "c"}}), "not a valid variable name"),
        (json!({"command": "id", "env": {"": "c"}}), "not a valid variable name"),
        (json!({"command": "id", "env": {"1A": "c"}}), "not a valid variable name"),
        (json!({"command": "id", "env": {"A\nB": "c"}}), "not a valid variable name"),
        (json!({"command": "id", "env": {"A": "x".repeat(32_000)}}), "at most 32000 bytes"),
        (json!({"command": "id", "working_dir": "/usr"}), "that the user allowed (none so far)"),
    ] {
        let said = called(&tool, &arguments).await;
        assert!(said["error"].as_str().unwrap().contains(word), "{word}: {said}");
    }
    assert_eq!(*stage.jobs.lock().unwrap(), []);
}

#[tokio::test]
async fn the_job_is_what_was_asked() {
    let (tool, stage) = shell(Ok("a stage"), End::Exited(3));
    tool.db.write(|tx| settings::store(tx, "shell_folders", "/usr")).await.unwrap();
    let asked = json!({"command": "echo\nhi", "timeout": "5", "working_dir": " /usr/bin ", "env": {"LD_PRELOAD": "x"}});
    let said = called(&tool, &asked).await;
    assert_eq!(
        said,
        json!({"success": true, "stdout": "hello\n", "stderr": "", "exit_code": 3, "timed_out": false})
    );
    let env = BTreeMap::from([("LD_PRELOAD".to_owned(), "x".to_owned())]);
    let folder = Some(std::fs::canonicalize("/usr/bin").unwrap());
    let job = Job { command: "echo\nhi".to_owned(), env, folder, patience: Duration::from_secs(5) };
    assert_eq!(*stage.jobs.lock().unwrap(), [job]);
}

#[tokio::test]
async fn what_ended_it_is_said() {
    let loud = "The command was stopped: it was loud.";
    for (end, code, timed_out, error, note) in [
        (End::Exited(0), 0, false, Value::Null, Value::Null),
        (End::TimedOut, 137, true, json!("The command was stopped after 30 s."), Value::Null),
        (End::Stopped("it was loud".to_owned()), 137, false, Value::Null, json!(loud)),
    ] {
        let (tool, _) = shell(Ok("a stage"), end);
        let said = called(&tool, &json!({"command": "id"})).await;
        assert_eq!((&said["exit_code"], &said["timed_out"]), (&json!(code), &json!(timed_out)));
        assert_eq!((&said["error"], &said["note"]), (&error, &note));
        assert_eq!((&said["success"], &said["stdout"]), (&json!(!timed_out), &json!("hello\n")), "{said}");
        let arguments = json!({"command": "id"}).to_string();
        let result = execute(Ok(&tool), &Values::default(), &arguments, &Run::BY_HAND).await;
        assert_eq!(result.success, !timed_out, "the ledger and the page say the same");
    }
}

/// A timeout in the call extends the executor's if it is longer, and the tool reports it before the executor does.
#[tokio::test(start_paused = true)]
async fn its_own_time_extends_the_executors() {
    let (tool, _) = shell(Ok("a stage"), End::TimedOut);
    for seconds in [json!(120), json!("120"), json!(1), Value::Null] {
        let said = called(&tool, &json!({"command": "wait", "timeout": seconds})).await;
        assert_eq!(said["timed_out"], true, "{said}");
    }
}

#[test]
fn a_loud_command_leaves_room_for_what_matters() {
    let loud = |byte: u8, size: usize| {
        let mut printed = printed::Collector::default();
        printed.add(&vec![byte; size]);
        printed.printed()
    };
    for (out, err) in [(0, 20_000), (20_000, 0), (20_000, 20_000), (300_000, 10), (3_000, 3_000)] {
        let ran = Ran { stdout: loud(b'o', out), stderr: loud(b'\n', err), end: End::TimedOut };
        let told = shell_output(&ran, Duration::from_secs(1), 7_700);
        let json = serde_json::to_string(&told).unwrap();
        assert!(json.len() <= 8_000 - 20, "{out} and {err}: {}", json.len());
        assert!(json.len() > 5_000, "{out} and {err}: {}", json.len());
        assert_eq!(told.stderr.is_empty(), err == 0);
    }
}

#[tokio::test]
async fn without_a_sandbox_nothing_is_run() {
    let (none, stage) = shell(Err("It is broken.".into()), End::Exited(0));
    assert_eq!(
        (AnyTool::lacks(&none), AnyTool::note(&none)),
        (Some(Lack::Other("It is broken.".into())), None)
    );
    assert_eq!(*stage.jobs.lock().unwrap(), []);
    let bare = ShellCommand { sandbox: None, ..none };
    assert_eq!(AnyTool::lacks(&bare), Some(said::lacks_sandbox().into()));
    assert_eq!(called(&bare, &json!({"command": "id"})).await["error"], said::lacks_sandbox().to_string());
    let (good, _) = shell(Ok("a stage"), End::Exited(0));
    assert_eq!((AnyTool::lacks(&good), AnyTool::note(&good)), (None, Some("sandbox: a stage".to_owned())));
}
