//! Keeps the house straight: no file of any crate imports, over others, itself, and the rooms of the roof stand on floors,
//! each of which uses only what is below it. Reads the imports, so that a circle or an arrow that runs back up fails
//! here before anyone has to argue about it.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod editions;
mod imports;
mod texts;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use imports::Crate;

const CRATES: [&str; 7] = ["words", "codes", "llm", "local", "assistant", "bridges", "kai"];

/// The rooms of `crates/kai` from the ground up. One floor's rooms do not know each other.
const ROOF: &[&[&str]] = &[
    &["asking", "caller_env", "failure", "places", "terminal"],
    &["crash", "logs", "machine"],
    &["home"],
    &["call", "erase"],
    &["phones"],
    &["app"],
    &["wire"],
    &["commands"],
    &["demo"],
    &["answer"],
    &["socket"],
    &["caller"],
    &["web"],
    &["daemon", "guests"],
    &["cli"],
    &["main"],
];

fn sources_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src")
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    for name in CRATES {
        let house = Crate::read(&sources_of(name));
        if let Some(circle) = circle(&arrows(&house)) {
            panic!("crates/{name}: a circle of imports: {}", circle.join(" -> "));
        }
    }
}

#[test]
fn the_roof_stands_on_its_floors() {
    let up = back_arrows(&Crate::read(&sources_of("kai")), ROOF);
    assert!(up.is_empty(), "ARCHITECTURE.md says what may use what:\n{}", up.join("\n"));
}

/// What differs between the editions is a module, a field or a row of a table; what a function does is the same in both.
#[test]
fn no_function_differs_between_the_editions() {
    for name in CRATES {
        for source in Crate::read(&sources_of(name)).sources.values() {
            let found = editions::inside_functions(&source.code);
            let file = format!("crates/{name}/src/{}", source.name);
            assert!(
                found.is_empty(),
                "{file}: this belongs into a module with a twin:\n{}",
                found.join("\n")
            );
        }
    }
}

/// What people read stands in the language files, so that it can be translated.
#[test]
fn the_page_holds_no_text_of_its_own() {
    let house = Crate::read(&sources_of("kai"));
    let page = house.sources.values().filter(|source| source.name.starts_with("web/"));
    let page = page.filter(|source| !texts::OF_OTHER_LANGUAGES.contains(&source.name.as_str()));
    let found: Vec<String> = page
        .flat_map(|source| {
            texts::for_people(&source.code).into_iter().map(|text| format!("{}: {text}", source.name))
        })
        .collect();
    assert!(found.is_empty(), "these belong into crates/words/lang:\n{}", found.join("\n"));
}

/// Every import that leads to the same floor or further up, and every room that has no floor.
fn back_arrows(house: &Crate, floors: &[&[&str]]) -> Vec<String> {
    let room = |file: &str| file.split(['/', '.']).next().unwrap().to_owned();
    let floor = |room: &str| floors.iter().position(|rooms| rooms.contains(&room));
    let mut found = vec![];
    for source in house.sources.values() {
        let from = room(&source.name);
        let Some(stands) = floor(&from) else {
            found.push(format!("{} has no floor", source.name));
            continue;
        };
        for (file, path) in house.imports(source) {
            let to = room(file);
            if to != from && floor(&to).is_none_or(|below| below >= stands) {
                found.push(format!("{} uses {path}", source.name));
            }
        }
    }
    found
}

/// Which file imports which. Module files hold the files below them together, so importing those makes no circle.
fn arrows(house: &Crate) -> BTreeMap<&str, Vec<&str>> {
    let from = |source: &imports::Source| {
        let below = format!("{}/", source.module.join("/"));
        let is_below = |file: &str| source.module.is_empty() || file.starts_with(&below);
        let all = house.sources.values();
        let names: Vec<&str> = house.imports(source).into_keys().filter(|file| !is_below(file)).collect();
        all.map(|other| other.name.as_str()).filter(|name| names.contains(name)).collect()
    };
    house.sources.values().map(|source| (source.name.as_str(), from(source))).collect()
}

/// A way from a file back to itself, if there is one.
fn circle<'a>(arrows: &BTreeMap<&'a str, Vec<&'a str>>) -> Option<Vec<&'a str>> {
    let mut done: Vec<&str> = vec![];
    arrows.keys().find_map(|start| walk(start, arrows, &mut vec![], &mut done))
}

fn walk<'a>(
    file: &'a str,
    arrows: &BTreeMap<&'a str, Vec<&'a str>>,
    way: &mut Vec<&'a str>,
    done: &mut Vec<&'a str>,
) -> Option<Vec<&'a str>> {
    if let Some(seen) = way.iter().position(|before| *before == file) {
        return Some([&way[seen..], &[file]].concat());
    }
    if done.contains(&file) {
        return None;
    }
    way.push(file);
    let found = arrows.get(file).into_iter().flatten().find_map(|next| walk(next, arrows, way, done));
    way.pop();
    done.push(file);
    found
}

/// The test can fail: what imports each other is found, also over a module that hands something on or has code of its own.
#[test]
fn a_circle_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::create_dir(folder.path().join("b")).unwrap();
    write("lib.rs", "mod a;\nmod b;\n");
    write("b/mod.rs", "mod c;\npub use c::{C, D};\n");
    write("b/c.rs", "use crate::a::{self, A};\n");
    write("a.rs", "pub struct A;\n");
    assert_eq!(circle(&arrows(&Crate::read(folder.path()))), None);
    write("a.rs", "use crate::b::{\n    C,\n    D as E,\n};\npub struct A;\n");
    let found = Crate::read(folder.path());
    assert_eq!(circle(&arrows(&found)), Some(vec!["a.rs", "b/c.rs", "a.rs"]));
    write("a.rs", "use crate::b::f;\npub struct A;\n");
    write("b/mod.rs", "mod c;\npub fn f(_: crate::a::A) {}\n");
    write("b/c.rs", "use super::f;\n");
    assert_eq!(circle(&arrows(&Crate::read(folder.path()))), Some(vec!["a.rs", "b/mod.rs", "a.rs"]));
    write("b/mod.rs", "mod c;\npub use c::{C, D};\n");
    write("b/c.rs", "use crate::a::{self, A};\n");
    write("a.rs", "pub struct A;\n#[cfg(test)]\nmod tests {\n    use crate::b::C;\n}\n");
    assert_eq!(circle(&arrows(&Crate::read(folder.path()))), None, "tests may import whom they like");
}

/// The test can fail: one import that runs back up is found.
#[test]
fn a_back_arrow_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::create_dir(folder.path().join("above")).unwrap();
    let floors: &[&[&str]] = &[&["below"], &["above"], &["main"]];
    write("main.rs", "mod above;\nmod below;\n");
    write("above/mod.rs", "use crate::below::B;\npub struct A;\n");
    write("below.rs", "pub struct B;\n");
    assert_eq!(back_arrows(&Crate::read(folder.path()), floors), Vec::<String>::new());
    write("below.rs", "pub struct B;\nfn deliberate(_: crate::above::A) {}\n");
    assert_eq!(back_arrows(&Crate::read(folder.path()), floors), ["below.rs uses above::A"]);
    write("beside.rs", "");
    assert_eq!(back_arrows(&Crate::read(folder.path()), floors).len(), 2, "a room without a floor is told");
}
