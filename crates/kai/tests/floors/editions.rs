//! Finds `cfg(feature …)` inside functions.

/// The lines inside functions that go by a feature. Relies on rustfmt: a function's last brace stands under its
/// beginning.
pub(crate) fn inside_functions(code: &str) -> Vec<&str> {
    let mut found = vec![];
    // How far the function that is being read is indented.
    let mut within: Option<&str> = None;
    for line in code.lines() {
        within = within.or_else(|| begins_function(line));
        let Some(indent) = within else { continue };
        if line.contains("feature = \"") {
            found.push(line.trim());
        }
        if ends_function(line, indent) {
            within = None;
        }
    }
    found
}

/// The indentation of a line that begins a function.
fn begins_function(line: &str) -> Option<&str> {
    let (before, _) = line.split_once("fn ")?;
    let is_qualifier = |word: &str| {
        ["const", "async", "unsafe", "in"].contains(&word) || word.starts_with("pub") || word.ends_with(')')
    };
    before.split_whitespace().all(is_qualifier).then(|| &line[..line.len() - line.trim_start().len()])
}

/// Whether a line ends the function that is indented this far: its last brace, or a signature without a body.
fn ends_function(line: &str, indent: &str) -> bool {
    let Some(rest) = line.strip_prefix(indent) else { return false };
    rest == "}" || (!rest.starts_with(' ') && (rest.ends_with(';') || rest.ends_with("{}")))
}

/// The test can fail: each way to go by a feature inside a function is found, and none outside.
#[test]
fn a_function_that_differs_is_found() {
    let statement = "fn a() {\n    #[cfg(feature = \"foss\")]\n    b();\n}\n";
    let nested = "impl A {\n    pub(in crate::a) async fn a(\n        b: B,\n    ) -> C {\n        c(cfg!(feature = \"sms\"))\n    }\n}\n";
    let spread = "fn a() {\n    let b = 1;\n    #[cfg(any(\n        feature = \"sms\",\n        test\n    ))]\n    c();\n}\n";
    for (code, line) in [
        (statement, "#[cfg(feature = \"foss\")]"),
        (nested, "c(cfg!(feature = \"sms\"))"),
        (spread, "feature = \"sms\","),
    ] {
        assert_eq!(inside_functions(code), [line], "{code}");
    }
    for code in [
        "fn a() {}\n#[cfg(feature = \"foss\")]\nmod b;\n",
        "trait A {\n    fn a(\n        &self,\n    ) -> B;\n    #[cfg(feature = \"foss\")]\n    fn b();\n}\n",
        "fn a() {\n    if b {\n        c();\n    }\n}\nstruct A {\n    #[cfg(feature = \"foss\")]\n    a: fn (B) -> C,\n}\n",
    ] {
        assert_eq!(inside_functions(code), Vec::<&str>::new(), "{code}");
    }
}
