//! Keeps the files of a crate in a straight line: none imports, over others, itself. Reads the imports, so that a circle
//! fails here before anyone has to argue about it. The binary's own files are not held to it yet.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod imports;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use imports::Crate;

const CRATES: [&str; 4] = ["codes", "llm", "assistant", "bridges"];

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

/// Which file imports which. Module files hold the others together, so what they import makes no circle.
fn arrows(house: &Crate) -> BTreeMap<&str, Vec<&str>> {
    let files = house.sources.values().filter(|source| !house.is_module_file(source));
    files.map(|source| (source.name.as_str(), house.imports(source).into_keys().collect())).collect()
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

/// The test can fail: what imports each other is found, also over a module that hands something on.
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
    write("a.rs", "pub struct A;\n#[cfg(test)]\nmod tests {\n    use crate::b::C;\n}\n");
    assert_eq!(circle(&arrows(&Crate::read(folder.path()))), None, "tests may import whom they like");
}
