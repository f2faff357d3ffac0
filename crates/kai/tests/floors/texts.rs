//! Finds texts for people that stand in the sources of the page instead of in the language files.

/// Attributes of elements, and fields of structs, whose values nobody reads.
const TECHNICAL: &[&str] = &[
    "accept",
    "action",
    "autocomplete",
    "class",
    "content",
    "d",
    "data-testid",
    "enctype",
    "for",
    "href",
    "http-equiv",
    "id",
    "inputmode",
    "method",
    "name",
    "pattern",
    "rel",
    "role",
    "src",
    "type",
    "value",
    "viewBox",
];
/// Files whose words are those of programming languages and of formulas.
pub(crate) const OF_OTHER_LANGUAGES: &[&str] = &["web/markdown/code.rs", "web/markdown/math.rs"];
/// Names that are the same in every language.
const NAMES: &[&str] = &["Brave", "Kai", "Tavily"];
/// What the demo's process prints before its link, as Kai does.
const PRINTED: &str = "Open ";
/// How commands, statements and other texts for programs begin.
const FOR_PROGRAMS: &[&str] =
    &["kai", "pkg", "cargo", "DELETE", "SELECT", "noopener", "attachment;", "public,"];

/// The literals that a person would read. Leaves out comments, attributes, log lines and everything from the first test
/// module on.
pub(crate) fn for_people(code: &str) -> Vec<&str> {
    let code = code.split("#[cfg(test)]").next().unwrap_or_default();
    let is_code = |line: &&str| {
        let line = line.trim_start();
        !line.starts_with("//") && !line.starts_with("#[") && !line.contains("tracing::")
    };
    let shown =
        |(before, text): &(&str, &str)| !is_technical(before) && is_language(text) && *text != PRINTED;
    code.lines().filter(is_code).flat_map(literals).filter(shown).map(|(_, text)| text).collect()
}

/// The string literals of a line, each with what stands before it.
fn literals(line: &str) -> Vec<(&str, &str)> {
    let mut found = vec![];
    let (mut start, mut escaped) = (None, false);
    for (at, c) in line.char_indices() {
        match (c, start) {
            _ if escaped => escaped = false,
            ('\\', Some(_)) => escaped = true,
            ('"', None) => start = Some(at),
            ('"', Some(begin)) => {
                found.push((&line[..begin], &line[begin + 1..at]));
                start = None;
            }
            _ => {}
        }
    }
    found
}

fn is_technical(before: &str) -> bool {
    let Some(before) = before.strip_suffix('=') else { return false };
    let name = before.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '-').next();
    name.is_some_and(|name| TECHNICAL.contains(&name))
}

/// Two words, or one with a capital letter.
fn is_language(text: &str) -> bool {
    let is_word = |word: &&str| word.chars().next().is_some_and(char::is_alphabetic);
    let mut words = text.split_whitespace();
    match (words.next(), words.next()) {
        (Some(first), _) if FOR_PROGRAMS.contains(&first) => false,
        (Some(first), Some(second)) => {
            let plain = |word: &str| word.chars().all(|c| c.is_alphabetic() || "’'(“„,.:;?!-…{}".contains(c));
            is_word(&first)
                && plain(first)
                && (is_word(&second) || second.starts_with(['…', '{', '“', '„', '(']))
        }
        (Some(only), None) => {
            let word = only.trim_end_matches(['…', ':', '.', '?']);
            let mut letters = word.chars();
            letters.next().is_some_and(char::is_uppercase)
                && letters.next().is_some()
                && word.chars().skip(1).all(char::is_lowercase)
                && !NAMES.contains(&word)
        }
        (None, _) => false,
    }
}

/// The test can fail: a text is found wherever a template or a handler can hold one, and nothing else is.
#[test]
fn a_text_in_a_template_is_found() {
    for (code, text) in [
        (r#"p { "Nothing is new." }"#, "Nothing is new."),
        (r#"button aria-label="Dismiss" {}"#, "Dismiss"),
        (r#"reply::not_done(&headers, "Try again.")"#, "Try again."),
        (r#"label: "Check automatically","#, "Check automatically"),
        (r#"format!("Sent {n} bytes to {model}")"#, "Sent {n} bytes to {model}"),
        (r#"span { "Loading …" }"#, "Loading …"),
    ] {
        assert_eq!(for_people(code), [text], "{code}");
    }
    for code in [
        r#"div class="card bar" {}"#,
        "// Says \"Nothing is new.\"",
        r#"tracing::warn!("a page could not be shown")"#,
        r#"format!("/c/{id}")"#,
        r#"code { "kai link" }"#,
        "#[cfg(test)]\nmod tests { \"Nothing is new.\" }",
    ] {
        assert_eq!(for_people(code), Vec::<&str>::new(), "{code}");
    }
}
