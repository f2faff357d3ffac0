//! Joins an answer that the user stopped with what the model said when it went on. Pure.

/// Asks a model to go on with an answer that was stopped. It is part of the request and never stored.
pub(super) const GO_ON: &str = "The user stopped your last answer and now wants the rest of it. Continue exactly where it ends. Do not repeat any of it, and say nothing about having been stopped.";

/// A longer word is none that a model would begin again.
const LONGEST_WORD: usize = 80;

/// The text of a stopped answer without the word in which it was stopped: half a word cannot be continued in a way that
/// everybody understands alike, so the model says it again.
pub fn whole_words(stopped: &str) -> &str {
    let word = stopped.rsplit(char::is_whitespace).next().unwrap_or_default();
    let is_only = word.len() == stopped.len();
    let is_half = word.ends_with(char::is_alphanumeric) && !word.contains(writes_without_blanks);
    if is_half && !is_only && word.chars().count() <= LONGEST_WORD {
        &stopped[..stopped.len() - word.len()]
    } else {
        stopped
    }
}

/// Both parts as one answer.
pub fn joined(stopped: &str, rest: &str) -> String {
    let before = whole_words(stopped);
    if before.ends_with(char::is_whitespace) {
        return format!("{before}{}", rest.trim_start());
    }
    let blank =
        before.ends_with(['.', '!', '?', '…', ',', ';', ':']) && rest.starts_with(char::is_alphanumeric);
    format!("{before}{}{rest}", if blank { " " } else { "" })
}

/// Is this a character of a script that puts no blanks between words?
fn writes_without_blanks(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{2e80}'..='\u{a4cf}'
        | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_goes_on_as_if_nobody_had_stopped_it() {
        for (name, stopped, rest, expected) in [
            ("between words", "The weather is ", "nice.", "The weather is nice."),
            ("both have the blank", "The weather is ", " nice.", "The weather is nice."),
            ("in a word that is said again", "The wea", "weather is nice.", "The weather is nice."),
            ("after a sentence", "It rains.", "Take a coat.", "It rains. Take a coat."),
            ("after a sentence, with the blank", "It rains.", " Take a coat.", "It rains. Take a coat."),
            ("in the last word", "So it rain", "rains.", "So it rains."),
            ("in a word with an apostrophe", "I don’t", "don’t know.", "I don’t know."),
            ("a list", "- one\n- tw", "two\n- three", "- one\n- two\n- three"),
            ("a list that begins its line again", "- one\n", "- two", "- one\n- two"),
            ("code", "if x {\n    y", "y();\n}", "if x {\n    y();\n}"),
            ("no blanks at all", "今日は天", "気がいいです。", "今日は天気がいいです。"),
            ("one word", "Supercalifragilistic", "expialidocious", "Supercalifragilisticexpialidocious"),
            (
                "in a link",
                "See https://kai.example/a",
                "https://kai.example/about",
                "See https://kai.example/about",
            ),
            ("nothing more", "The end.", "", "The end."),
        ] {
            assert_eq!(joined(stopped, rest), expected, "{name}");
        }
    }

    #[test]
    fn what_is_said_so_far_ends_with_a_whole_word() {
        for (stopped, expected) in [
            ("The wea", "The "),
            ("The weather.", "The weather."),
            ("Wea", "Wea"),
            ("", ""),
            ("今日は天", "今日は天"),
            ("안녕하세요 세", "안녕하세요 "),
        ] {
            assert_eq!(whole_words(stopped), expected);
        }
        let long = format!("a {}", "x".repeat(LONGEST_WORD + 1));
        assert_eq!(whole_words(&long), long);
    }
}
