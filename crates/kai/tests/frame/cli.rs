//! What a command takes from its caller's process: the home, the language, and the end of a pipe.

use std::process::{Command, Stdio};

use crate::kit::{Done, Home, kai};

#[test]
fn the_home_is_the_flag_then_the_variable_then_the_data_folder() {
    let (flag, variable, data) = (Home::new(), Home::new(), Home::new());
    let status = |command: &mut Command| {
        Done::from(command.args(["status", "--json"]).output().unwrap()).json()["home"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let real = |home: &Home| std::fs::canonicalize(home.path()).unwrap().display().to_string();
    let set = kai(variable.path());
    assert_eq!(status(kai(variable.path()).arg("--home").arg(flag.path())), real(&flag), "the flag");
    assert_eq!(status(&mut { set }), real(&variable), "the variable");
    let from_data = status(kai(variable.path()).env_remove("KAI_HOME").env("XDG_DATA_HOME", data.path()));
    assert_eq!(from_data, format!("{}/kai", real(&data)), "the data folder");
    let from_home = status(kai(variable.path()).env_remove("KAI_HOME").env("HOME", data.path()));
    assert_eq!(from_home, format!("{}/.local/share/kai", real(&data)), "the usual data folder");
    let lost = kai(variable.path()).env_remove("KAI_HOME").arg("status").output().unwrap();
    Done::from(lost).refused(3, "--home DIR");

    // A mistyped one is new, and that is said once.
    let typed = variable.path().join("kia");
    let asked = || -> Done {
        let mut command = kai(variable.path());
        command.args(["--home", typed.to_str().unwrap(), "memory", "list"]).output().unwrap().into()
    };
    let first = asked();
    let is_said = first.err.contains("kia did not exist, so Kai created a new, empty home there.");
    assert!(first.code == 0 && is_said, "{first:?}");
    assert_eq!(asked().err, "", "a new home is said to be new once");
    let by_name = Done::from(kai(&variable.path().join("aik")).args(["memory", "list"]).output().unwrap());
    assert!(by_name.err.contains("aik did not exist"), "{by_name:?}");
    let file = variable.path().join("file");
    std::fs::write(&file, "x").unwrap();
    Done::from(kai(&file).arg("status").output().unwrap()).refused(3, "cannot be used");
}

#[test]
fn a_command_speaks_its_callers_language_and_a_closed_pipe_or_a_bug_ends_it_well() {
    let home = Home::new();
    let title = |locale: &str| {
        let done = Done::from(
            kai(home.path()).env("LANG", locale).args(["tools", "list", "--json"]).output().unwrap(),
        );
        done.json()[0]["title"].as_str().unwrap().to_owned()
    };
    assert_eq!((title("de_DE.UTF-8").as_str(), title("en_GB.UTF-8").as_str()), ("Ortszeit", "Local time"));
    let daemon = home.start();
    assert_eq!(title("de_DE.UTF-8"), "Ortszeit", "the caller's locale counts, not the daemon's");
    drop(daemon);
    home.run(&["settings", "set", "language", "de"]);
    assert_eq!(title("en_GB.UTF-8"), "Ortszeit", "the chosen language comes before the locale");

    let mut listing = kai(home.path())
        .args(["settings", "list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(listing.stdout.take());
    let done = Done::from(listing.wait_with_output().unwrap());
    assert_eq!((done.code, done.err.as_str()), (0, ""), "a closed pipe is no failure and no panic");

    #[cfg(debug_assertions)]
    a_bug_ends_in_a_sentence_and_a_file(&home);
}

#[cfg(debug_assertions)]
fn a_bug_ends_in_a_sentence_and_a_file(home: &Home) {
    let done = home.run(&["__panic"]);
    done.refused(1, "ran into a bug");
    let file = done.err.split("are in ").nth(1).unwrap().split(';').next().unwrap();
    let report = std::fs::read_to_string(file).unwrap();
    assert!(report.contains("cli/mod.rs:"), "{report}");
    assert!(!report.contains("on purpose"), "what a panic says may quote a message: {report}");
}
