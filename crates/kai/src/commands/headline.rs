//! The first sentence of a report, by which a banner says what happened. Pure.

use super::announce::{plain, shortened};

/// The most characters in a headline.
const LONGEST: usize = 140;

/// The first sentence of a report in Markdown, as plain text; `None` if the report says nothing.
pub(crate) fn headline(report: &str) -> Option<String> {
    let text = plain(&without_heading(report));
    let mut lines = text.lines();
    let first = lines.next()?;
    let begun = match lines.next() {
        // What a list is about says little without its first item.
        Some(second) if first.ends_with(':') => format!("{first} {second}"),
        _ => first.to_owned(),
    };
    Some(shortened(sentence(&begun), LONGEST))
}

/// The report without the headings that it begins with: they seldom say what happened.
fn without_heading(report: &str) -> String {
    let is_heading = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with('#');
    let rest: Vec<&str> = report.lines().skip_while(is_heading).collect();
    if rest.is_empty() { report.to_owned() } else { rest.join("\n") }
}

fn sentence(line: &str) -> &str {
    let mut marks = line.char_indices().filter(|(_, c)| ".!?…。！？".contains(*c));
    let ends = |(at, mark): (usize, char)| {
        let after = at + mark.len_utf8();
        is_end(&line[..at], mark, &line[after..]).then_some(after)
    };
    marks.find_map(ends).map_or(line, |end| &line[..end])
}

/// Words that end with a point inside a sentence.
const ABBREVIATED: &[&str] = &[
    "Dr", "Mr", "Mrs", "Ms", "St", "Prof", "vs", "e.g", "i.e", "approx", "bzw", "ca", "Hr", "Fr", "Nr",
    "Str", "usw",
];

/// Whether a sentence ends with this mark. In doubt it goes on: a headline of two sentences is no harm.
fn is_end(before: &str, mark: char, after: &str) -> bool {
    if "。！？".contains(mark) {
        return true;
    }
    if after.chars().next().is_some_and(|next| !next.is_whitespace()) {
        return false;
    }
    let word = before.rsplit([' ', '(']).next().unwrap_or_default();
    let is_number = word.bytes().all(|b| b.is_ascii_digit());
    mark != '.' || !(is_number || word.chars().count() == 1 || ABBREVIATED.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_headline_is_the_first_sentence() {
        for (report, expected) in [
            ("**Alice** asks about dinner. Bob is late.", "Alice asks about dinner."),
            ("Alice asks: are you coming? She waits.", "Alice asks: are you coming?"),
            ("Three new messages", "Three new messages"),
            ("## Messages\n\nAlice wrote. Soon.", "Alice wrote."),
            ("## Messages", "Messages"),
            ("Two new:\n- Alice asks about dinner. Soon.\n- Bob", "Two new: Alice asks about dinner."),
            ("New:", "New:"),
            ("Dr. Smith moved it to the 8. of May. Please answer.", "Dr. Smith moved it to the 8. of May."),
            ("Pay 4.50 at shop.example today. Now.", "Pay 4.50 at shop.example today."),
            ("Anna (z. B. morgen) fragt. Ja.", "Anna (z. B. morgen) fragt."),
            ("明日の夕食。アリスより。", "明日の夕食。"),
            ("See [the plan](https://a.example/x). It is new.", "See the plan."),
        ] {
            assert_eq!(headline(report).as_deref(), Some(expected), "{report:?}");
        }
        assert_eq!(headline(" \n\n"), None);
        let long = headline(&"word ".repeat(100)).unwrap();
        assert!(long.chars().count() <= LONGEST && long.ends_with("word…"), "{long}");
    }
}
