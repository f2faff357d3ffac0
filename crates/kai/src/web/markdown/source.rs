//! The text before it is parsed: some models put formulas between `\(` and `\)`, which Markdown takes for brackets.

use std::borrow::Cow;
use std::ops::Range;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

/// The text with `$…$` for `\(…\)` and `$$…$$` for `\[…\]`, except in code.
pub(super) fn with_dollars(text: &str) -> Cow<'_, str> {
    if !text.contains("\\(") && !text.contains("\\[") {
        return Cow::Borrowed(text);
    }
    let code = code_in(text);
    let mut out = String::with_capacity(text.len());
    let mut rest = 0;
    while let Some((open, close, dollars)) = next_formula(text, rest) {
        let in_code = code.iter().any(|range| range.contains(&open) || range.contains(&close));
        let inside = &text[open + 2..close];
        // A formula ends in its paragraph.
        if in_code || inside.contains("\n\n") || inside.contains('$') {
            out.push_str(&text[rest..open + 2]);
            rest = open + 2;
            continue;
        }
        out.push_str(&text[rest..open]);
        out.extend([dollars, inside.trim(), dollars]);
        rest = close + 2;
    }
    out.push_str(&text[rest..]);
    Cow::Owned(out)
}

/// Where the next formula opens and closes, and the signs that Markdown knows it by.
fn next_formula(text: &str, from: usize) -> Option<(usize, usize, &'static str)> {
    let found =
        [("\\(", "\\)", "$"), ("\\[", "\\]", "$$")].into_iter().filter_map(|(open, close, dollars)| {
            let open = from + text[from..].find(open)?;
            let close = open + 2 + text[open + 2..].find(close)?;
            Some((open, close, dollars))
        });
    found.min_by_key(|(open, ..)| *open)
}

fn code_in(text: &str) -> Vec<Range<usize>> {
    let mut ranges = vec![];
    let mut begun = 0;
    for (event, range) in Parser::new(text).into_offset_iter() {
        match event {
            Event::Code(_) => ranges.push(range),
            Event::Start(Tag::CodeBlock(_)) => begun = range.start,
            Event::End(TagEnd::CodeBlock) => ranges.push(begun..range.end),
            _ => {}
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_get_dollars_and_code_stays() {
        for (text, expected) in [
            ("a \\(x^2\\) b \\[ y \\] c", "a $x^2$ b $$y$$ c"),
            ("`\\(x\\)` \\(y\\)", "`\\(x\\)` $y$"),
            ("```\n\\(x\\)\n```\n", "```\n\\(x\\)\n```\n"),
            ("\\(never closed", "\\(never closed"),
            ("\\(a\n\nb\\)", "\\(a\n\nb\\)"),
            ("\\(costs $5\\)", "\\(costs $5\\)"),
            ("plain", "plain"),
        ] {
            assert_eq!(with_dollars(text), expected, "{text}");
        }
    }
}
