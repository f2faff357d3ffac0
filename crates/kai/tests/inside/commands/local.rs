//! `kai models get`, `add local` and `remove`: a model is fetched from a hub on this machine, added, and given up.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use serde_json::Value;

use super::kit::Home;
use crate::inside::hub::{Does, PlayedHub, gguf};

/// A home that knows this hub alone.
fn home(hub: &PlayedHub) -> Home {
    let mut home = Home::new();
    Arc::get_mut(&mut home.app).unwrap().downloads = hub.downloads();
    home
}

fn names(home: &Home) -> Vec<String> {
    let rows = home.run(&["models", "list", "--json"]).json();
    rows.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_catalogue_says_what_fits_and_what_is_here() {
    let hub = PlayedHub::start();
    let home = home(&hub);
    let listed = home.run(&["models", "get"]);
    for said in [
        "This computer: 16.0 GB memory, 8 cores, 100.0 GB free. Recommended: kai models get tiny\n",
        "tiny  1 MB; needs 1.7 GB memory; short answers and simple tools; Apache-2.0; recommended\n",
        "not tried with Kai yet; does not fit: It needs",
    ] {
        assert!(listed.code == 0 && listed.out.contains(said), "{said}: {listed:?}");
    }
    assert_eq!(home.run(&["models", "get", "tiny"]).code, 0);
    let rows = home.run(&["models", "get", "--json"]).json()["models"].clone();
    assert_eq!((&rows[0]["downloaded"], &rows[0]["used_by"][0]), (&Value::from(true), &Value::from("tiny")));
    assert_eq!((&rows[1]["downloaded"], &rows[1]["recommended"]), (&Value::from(false), &Value::from(false)));
}

#[test]
fn a_model_is_downloaded_checked_and_added_and_not_fetched_twice() {
    let hub = PlayedHub::start();
    let home = home(&hub);
    let row = home.run(&["models", "get", "tiny", "--json"]).json();
    assert_eq!(
        (&row["name"], &row["preset"], &row["local"]),
        (&"tiny".into(), &"local".into(), &true.into())
    );
    let file = home.path().canonicalize().unwrap().join("models/tiny.gguf");
    assert_eq!(row["base_url"], format!("file://{}", file.display()));
    assert_eq!(row["context"], 2048, "it was trained with less than Kai assumes");
    assert_eq!(std::fs::read(&file).unwrap(), hub.file());
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(home.run(&["models", "list"]).out.contains("on this computer"), "lists say where it is");
    assert_eq!(home.run(&["models", "get", "tiny"]).code, 0);
    assert_eq!(hub.heard().len(), 1, "it is here already");
    assert!(hub.heard()[0].starts_with("GET /kai/tiny/resolve/main/tiny.gguf "));
    home.run(&["models", "get", "nope"]).refused(2, "no model called nope");
}

#[test]
fn a_cut_download_goes_on_and_a_forged_one_leaves_nothing() {
    let hub = PlayedHub::start();
    let home = home(&hub);
    hub.does(Does::Cut);
    home.run(&["models", "get", "tiny"]).refused(1, "The connection was lost.");
    assert_eq!(names(&home), Vec::<String>::new(), "nothing half is added");
    let received = &home.run(&["models", "get", "--json"]).json()["models"][0]["received"];
    assert_eq!(received, &Value::from(hub.file().len() / 2));
    hub.does(Does::Forge);
    home.run(&["models", "get", "tiny"]).refused(1, "isn’t the one that Kai knows");
    assert!(std::fs::read_dir(home.path().join("models")).unwrap().next().is_none(), "nothing is left");
    hub.does(Does::Cut);
    home.run(&["models", "get", "tiny"]).refused(1, "The connection was lost.");
    hub.does(Does::Serve);
    assert_eq!(home.run(&["models", "get", "tiny"]).code, 0);
    assert_eq!(names(&home), ["tiny"]);
    let last = hub.heard().pop().unwrap().to_lowercase();
    assert!(last.contains(&format!("range: bytes={}-", hub.file().len() / 2)), "{last}");
}

#[test]
fn a_daemon_downloads_for_the_command() {
    let hub = PlayedHub::start();
    let mut home = home(&hub);
    home.serving = Some(home.serve());
    let got = home.run(&["models", "get", "tiny"]);
    assert!(got.code == 0 && got.out.contains("on this computer"), "{got:?}");
    assert_eq!(names(&home), ["tiny"]);
}

#[test]
fn a_removed_model_keeps_its_file_unless_it_is_to_go() {
    let hub = PlayedHub::start();
    let home = home(&hub);
    let file = home.path().join("models/tiny.gguf");
    assert_eq!(home.run(&["models", "get", "tiny"]).code, 0);
    let again = ["models", "add", "local", "--file", file.to_str().unwrap(), "--name", "again"];
    assert_eq!(home.run(&again).code, 0);
    let gone = home.run(&["models", "remove", "tiny", "--delete-file"]);
    assert!(
        gone.code == 0 && gone.out == "Removed tiny.\n" && file.exists(),
        "another model uses it: {gone:?}"
    );
    let gone = home.run(&["models", "remove", "again"]);
    assert!(gone.code == 0 && gone.err.contains("Its file was kept: ") && file.exists(), "{gone:?}");
    assert_eq!(home.run(&["models", "get", "tiny"]).code, 0);
    let gone = home.run(&["models", "remove", "tiny", "--delete-file", "--json"]).json();
    assert_eq!((&gone["removed"], &gone["file_deleted"]), (&"tiny".into(), &true.into()));
    assert!(!file.exists());
}

#[test]
fn any_model_file_can_be_added_and_nothing_else() {
    let hub = PlayedHub::start();
    let home = home(&hub);
    let file = home.path().join("My Model.gguf");
    std::fs::write(&file, gguf()).unwrap();
    let path = file.to_str().unwrap();
    let row = home.run(&["models", "add", "local", "--file", path, "--context", "1024", "--json"]).json();
    assert_eq!(
        (&row["name"], &row["context"], &row["local"]),
        (&"My Model".into(), &1024.into(), &true.into())
    );
    let gone = home.run(&["models", "remove", "My Model", "--delete-file"]);
    assert!(gone.code == 0 && file.exists(), "a file elsewhere is the user's own");
    let other = home.file("notes.txt", "hello");
    for (words, code, said) in [
        (vec!["--file", other.as_str()], 1, "isn’t a GGUF file"),
        (vec!["--file", "/nowhere/model.gguf"], 1, "There is no file"),
        (vec![], 2, "--file FILE.gguf"),
    ] {
        home.run(&[&["models", "add", "local"], &words[..]].concat()).refused(code, said);
    }
    home.run(&["models", "add", "ollama", "--model", "m", "--file", path]).refused(2, "Only a model");
}
