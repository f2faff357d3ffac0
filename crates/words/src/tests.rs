use std::path::{Path, PathBuf};

use super::*;

#[path = "../build/catalogue.rs"]
mod catalogue;

use catalogue::{missing, mistakes, parse};

/// The languages that have to be complete. Any other may grow text by text.
const COMPLETE: [&str; 2] = ["en", "de"];

#[test]
fn english_and_german_have_every_text() {
    let lacking: Vec<String> = Lang::all()
        .filter(|lang| COMPLETE.contains(&lang.code()))
        .flat_map(|lang| lang.missing().iter().map(move |key| format!("lang/{}.txt: {key}", lang.code())))
        .collect();
    assert_eq!(lacking, [""; 0], "these have no text yet");
}

/// Prints what a language that is being added still lacks; see CONTRIBUTING.md.
#[test]
#[expect(clippy::print_stdout, reason = "this list is what a translator runs it for")]
fn what_is_missing_in_a_language_is_printed() {
    for lang in Lang::all() {
        println!("{} ({}): {} missing {:?}", lang.name(), lang.code(), lang.missing().len(), lang.missing());
    }
}

/// A key that nobody shows any more would still be translated into every language.
#[test]
fn every_text_is_shown_somewhere() {
    let sources = sources(Path::new("../"));
    let is_used = |key: &str| {
        let by_name = |name: &str| {
            sources.contains(&format!(".{name}(")) || sources.contains(&format!("said::{name}("))
        };
        // Some are found by a name that is known only when Kai runs.
        let at_run_time =
            ["tool_", "argument_", "ledger_field_"].iter().any(|prefix| key.starts_with(prefix));
        // A table may name the function without calling it.
        let in_table = |end: &char| {
            ["Lang", "said"].iter().any(|module| sources.contains(&format!("{module}::{key}{end}")))
        };
        at_run_time || by_name(key) || [',', ')', ';'].iter().any(in_table)
    };
    let unused: Vec<&str> = KEYS.iter().map(|key| key.name).filter(|key| !is_used(key)).collect();
    assert_eq!(unused, [""; 0], "no source calls these");
}

/// The page shows every text, and a page names no command. A command that it has to show comes as a value.
#[test]
fn no_text_names_a_command() {
    let is_command =
        |word: &str| word.starts_with("--") || word.trim_matches(['(', ')', '.', ',', '`']) == "kai";
    for lang in Lang::all() {
        let naming = lang.0.texts.iter().filter(|text| text.split_whitespace().any(is_command));
        assert_eq!(naming.collect::<Vec<_>>(), [&""; 0], "in lang/{}.txt", lang.code());
    }
}

/// All Rust sources of the workspace's crates, joined.
fn sources(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| match path {
        path if path.is_dir() => sources(&path),
        path if path.extension().is_some_and(|kind| kind == "rs") => std::fs::read_to_string(path).unwrap(),
        _ => String::new(),
    };
    entries.map(read).collect()
}

#[test]
fn a_locale_chooses_the_language() {
    for (locale, expected) in
        [("de_AT.UTF-8", "de"), ("de", "de"), ("en_GB.UTF-8", "en"), ("C", "en"), ("", "en"), ("den", "en")]
    {
        assert_eq!(Lang::of(locale).code(), expected, "{locale}");
        assert_eq!(Lang::chosen("system", locale).code(), expected, "{locale}");
        assert_eq!(Lang::chosen("de", locale).code(), "de", "{locale}");
    }
}

#[test]
fn numbers_are_written_as_the_language_does() {
    let (english, german) = (Lang::ENGLISH, Lang::of("de"));
    for (number, in_english, in_german) in [
        (0_u64, "0", "0"),
        (999, "999", "999"),
        (1834, "1,834", "1.834"),
        (1_000_000, "1,000,000", "1.000.000"),
    ] {
        assert_eq!((english.number(number), german.number(number)), (in_english.into(), in_german.into()));
    }
    assert_eq!((english.tenths(15_u64), german.tenths(12_345_u64)), ("1.5".into(), "1.234,5".into()));
}

#[test]
fn a_tool_has_a_name_that_is_found_by_its_key() {
    assert_eq!(Lang::of("de").find("tool_get_local_time"), Some("Ortszeit"));
    assert_eq!(Lang::of("de").find("tool_made_up"), None);
}

const ENGLISH: &str =
    "plural = one\n[a]\nplain = Hello {name}\nmany[one] = {#n} day\nmany[other] = {#n} days\n";

fn wrong(other: &str) -> Vec<String> {
    let english = parse("en", ENGLISH).unwrap();
    match parse("xx", other) {
        Ok(other) => mistakes(&english, &other).iter().map(ToString::to_string).collect(),
        Err(mistake) => vec![mistake.to_string()],
    }
}

#[test]
fn a_wrong_translation_is_found_and_its_line_is_named() {
    for (other, expected) in [
        ("plural = one\n[a]\nplain = Hallo {nmae}\n", "xx.txt:3: `a_plain` has other placeholders"),
        ("plural = one\n[a]\nplain = Hallo {#name}\n", "xx.txt:3: `a_plain` has other placeholders"),
        ("plural = one\n[a]\nextra = Hm\n", "xx.txt:3: the English file has no `a_extra`"),
        ("plural = two\n[a]\n", "xx.txt:1: `plural = …` has to name one of none, one"),
        ("plural = one\n[a]\nmany[few] = {#n}\n", "`a_many[few]`: this language's rule has no such category"),
        ("plural = one\n[a]\nmany = {#n}\n", "`a_many` has a plural or an edition in one language only"),
        ("plural = one\n[a, foss]\nplain = {name}\n", "in one language only"),
        ("plural = one\n[a]\nmany[lots] = {#n}\n", "xx.txt:3: `lots` is not a plural category"),
        ("plural = one\n[a]\nplain = {name}\nplain = {name}\n", "xx.txt:4: `a_plain` stands here twice"),
        ("plural = one\n[a]\nplain =\n", "xx.txt:3: `a_plain` has no text"),
        ("plural = one\n[a]\nPlain = x\n", "may hold only a-z"),
        ("plural = one\n[a]\njust words\n", "xx.txt:3: expected `key = text`"),
    ] {
        let found = wrong(other);
        assert!(found.iter().any(|mistake| mistake.contains(expected)), "{other:?}: {found:?}");
    }
    assert_eq!(wrong("plural = one\n[a]\nplain = {name}, hallo\nmany[one] = {#n} Tag\n"), [""; 0]);
}

#[test]
fn what_a_language_lacks_is_listed() {
    let english = parse("en", ENGLISH).unwrap();
    let lacks = |text: &str| missing(&english, &parse("xx", text).unwrap());
    assert_eq!(lacks("plural = one\n[a]\nmany[one] = {#n} Tag\n"), ["a_many", "a_plain"]);
    assert_eq!(lacks("plural = none\n[a]\nplain = {name}\nmany[other] = {#n}\n"), [""; 0]);
}
