//! The imports of a crate, read from its text: which file takes something from which.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// One file of a crate, without its tests.
pub(crate) struct Source {
    /// The path below the crate's `src`, as people write it.
    pub(crate) name: String,
    /// The module it holds; empty for the root.
    pub(crate) module: Vec<String>,
    pub(crate) code: String,
}

/// A crate's files by the module that each holds.
pub(crate) struct Crate {
    pub(crate) sources: BTreeMap<Vec<String>, Source>,
}

impl Crate {
    pub(crate) fn read(root: &Path) -> Self {
        let mut sources = BTreeMap::new();
        for file in files(root) {
            let name = file.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if is_only_tests(&name) {
                continue;
            }
            let module = module_of(&name);
            let code = code(&fs::read_to_string(&file).unwrap());
            sources.insert(module.clone(), Source { name, module, code });
        }
        Self { sources }
    }

    /// The files that a file takes something from, each with the path by which it does.
    pub(crate) fn imports(&self, source: &Source) -> BTreeMap<&str, String> {
        let paths = paths(&source.code, &source.module);
        let found = paths.iter().filter_map(|path| Some((self.home_of(path)?, path.join("::"))));
        found.filter(|(home, _)| *home != source.name).collect()
    }

    /// The file in which the item at a path stands, through what modules hand on.
    fn home_of(&self, path: &[String]) -> Option<&str> {
        let depth = (0..=path.len()).rev().find(|depth| self.sources.contains_key(&path[..*depth]))?;
        let source = &self.sources[&path[..depth]];
        let handed_on = path.get(depth).and_then(|item| self.handed_on(source, item));
        handed_on.or(Some(source.name.as_str()))
    }

    /// The file below `source` that holds `item`, where `source` hands it on with `pub use`.
    fn handed_on(&self, source: &Source, item: &str) -> Option<&str> {
        let uses = statements(&source.code).into_iter().filter(|said| said.starts_with("pub"));
        let trees = uses.filter_map(|said| said.split_once("use ").map(|(_, tree)| tree.to_owned()));
        let mut paths = trees.flat_map(|tree| leaves(&tree));
        let path = paths.find(|path| path.last().is_some_and(|last| last == item))?;
        let path =
            absolute(&path, &source.module).unwrap_or_else(|| [source.module.clone(), path.clone()].concat());
        let longer =
            path.len() > source.module.len() + 1 && self.sources.contains_key(&path[..=source.module.len()]);
        if longer { self.home_of(&path) } else { None }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let all = entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] });
    all.filter(|path| path.extension().is_some_and(|ending| ending == "rs")).collect()
}

fn is_only_tests(name: &str) -> bool {
    ["tests.rs", "fuzz.rs"].iter().any(|only| name.ends_with(only)) || name.contains("/tests/")
}

fn module_of(name: &str) -> Vec<String> {
    let mut module: Vec<String> = name.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        module.pop();
    }
    module
}

/// The part of a file that is neither test nor remark.
fn code(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let opens_tests = |from: usize| {
        let item = lines[from..].iter().find(|line| !line.starts_with("#["));
        item.is_some_and(|line| line.ends_with('{') && (line.contains("mod ") || line.starts_with("impl ")))
    };
    let is_tests =
        |at: &usize| lines[*at].starts_with("#[cfg(") && lines[*at].contains("test") && opens_tests(*at);
    let end = (0..lines.len()).find(is_tests).unwrap_or(lines.len());
    lines[..end]
        .iter()
        .filter(|line| !line.trim_start().starts_with("//"))
        .copied()
        .collect::<Vec<_>>()
        .join("\n")
}

/// Everything from a line that begins a `use` to its semicolon, on one line.
fn statements(code: &str) -> Vec<String> {
    let begins = |line: &str| {
        let line = line.trim_start();
        line.starts_with("use ")
            || (line.starts_with("pub") && line.contains("use ") && !line.contains("fn "))
    };
    let (mut all, mut open) = (vec![], None::<String>);
    for line in code.lines() {
        if open.is_none() && begins(line) {
            open = Some(String::new());
        }
        let Some(said) = &mut open else { continue };
        said.push_str(line.trim());
        said.push(' ');
        if line.contains(';') {
            all.push(open.take().unwrap_or_default());
        }
    }
    all
}

/// Every path of our own crate that a file names, in its `use` lines and in between.
fn paths(code: &str, module: &[String]) -> BTreeSet<Vec<String>> {
    let uses = statements(code);
    let trees = uses.iter().filter_map(|said| said.split_once("use ")).flat_map(|(_, tree)| leaves(tree));
    let starts = ["crate::", "super::"].into_iter().flat_map(|start| code.match_indices(start));
    let inline = starts.filter(|(at, _)| !code[..*at].ends_with([':', '_'])).map(|(at, _)| {
        let path: String =
            code[at..].chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':')).collect();
        path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    });
    // What stands before a brace names nothing yet.
    let named = trees.chain(inline).filter_map(|path| absolute(&path, module));
    named.filter(|path| !path.is_empty()).collect()
}

/// A path from the root of the crate; `None` for one that leads to another crate.
fn absolute(path: &[String], module: &[String]) -> Option<Vec<String>> {
    let ups = path.iter().take_while(|part| *part == "super").count();
    match path.first().map(String::as_str)? {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some([module, &path[1..]].concat()),
        "super" => Some([&module[..module.len().checked_sub(ups)?], &path[ups..]].concat()),
        _ => None,
    }
}

/// Each path that a `use` tree names: `a::{b, c::{self, d as e}}` is `a::b`, `a::c` and `a::c::d`.
fn leaves(tree: &str) -> Vec<Vec<String>> {
    let tree = tree.trim().trim_end_matches(';').trim();
    let Some((before, inside)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        let parts = path.split("::").map(str::trim).filter(|part| !part.is_empty());
        return vec![parts.map(str::to_owned).collect()];
    };
    let inside = inside.trim_end().strip_suffix('}').unwrap_or(inside);
    let start: Vec<String> =
        before.split("::").map(str::trim).filter(|p| !p.is_empty()).map(str::to_owned).collect();
    let with_start = |leaf: Vec<String>| {
        let rest = if leaf.first().is_some_and(|first| first == "self") { &leaf[1..] } else { &leaf[..] };
        [&start[..], rest].concat()
    };
    branches(inside).into_iter().flat_map(leaves).map(with_start).collect()
}

/// What stands between the commas that are not inside braces.
fn branches(inside: &str) -> Vec<&str> {
    let (mut depth, mut from, mut all) = (0_usize, 0, vec![]);
    for (at, c) in inside.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                all.push(&inside[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    all.push(&inside[from..]);
    all.retain(|branch| !branch.trim().is_empty());
    all
}
