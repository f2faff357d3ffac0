//! Splits a command line into words, as people write it: blanks separate, quotes keep together. Pure.

/// The words of a command line. `None` if a quote is not closed.
pub(super) fn words(line: &str) -> Option<Vec<String>> {
    let (mut all, mut word, mut quote) = (vec![], None::<String>, None);
    let mut left = line.chars();
    while let Some(c) = left.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(left.next()),
            (c, None) if c.is_whitespace() => all.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    all.extend(word);
    quote.is_none().then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_words_together() {
        for (line, expected) in [
            ("uvx mcp-server-time", Some(vec!["uvx", "mcp-server-time"])),
            ("  a  'b c' \"d 'e'\" f\\ g '' ", Some(vec!["a", "b c", "d 'e'", "f g", ""])),
            ("a\"b\"'c'", Some(vec!["abc"])),
            ("'\\' \"\\\"\"", Some(vec!["\\", "\""])),
            ("", Some(vec![])),
            ("a 'b", None),
            ("a \"b", None),
        ] {
            assert_eq!(
                words(line),
                expected.map(|all| all.into_iter().map(str::to_owned).collect()),
                "{line}"
            );
        }
    }
}
