//! The words of a search. Pure. They are the user's or a model's, and stay strings whatever they contain.

use super::command::Command;

/// How many words count, and how many characters of each.
const MOST_WORDS: usize = 10;
const LONGEST_WORD: usize = 100;

/// The words of a text. Quotes around them do not count.
pub(super) fn words(text: &str) -> Vec<String> {
    let clean = |word: &str| -> String {
        let word = word.trim_matches(|c: char| matches!(c, '"' | '\u{201c}' | '\u{201d}' | '\u{201e}'));
        word.chars().filter(|c| !c.is_control()).take(LONGEST_WORD).collect()
    };
    let words = text.split(|c: char| c.is_whitespace() || c == '\0').map(clean);
    words.filter(|word| !word.is_empty()).take(MOST_WORDS).collect()
}

/// Searches for mails with all of these words.
pub(super) fn command(words: &[String]) -> Command {
    let is_ascii = words.iter().all(|word| word.is_ascii());
    let command = Command::new(if is_ascii { "UID SEARCH" } else { "UID SEARCH CHARSET UTF-8" });
    let each = |command: Command, word: &String| command.text(" TEXT ").string(word.as_bytes());
    words.iter().fold(command, each).searches()
}

/// What is left of the words in ASCII.
pub(super) fn plain(words: &[String]) -> Vec<String> {
    let pieces = words.iter().flat_map(|word| word.split(|c: char| !c.is_ascii()));
    pieces.filter(|piece| piece.len() > 1).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let pieces = command(&words(text)).pieces("k1");
        pieces.into_iter().map(|piece| String::from_utf8(piece).unwrap()).collect()
    }

    #[test]
    fn words_cannot_become_commands() {
        for (text, expected) in [
            ("rent Berlin", "k1 UID SEARCH TEXT \"rent\" TEXT \"Berlin\"\r\n"),
            ("\"rent\"", "k1 UID SEARCH TEXT \"rent\"\r\n"),
            ("a\" ALL", "k1 UID SEARCH TEXT \"a\" TEXT \"ALL\"\r\n"),
            ("a\"b\\c", "k1 UID SEARCH TEXT \"a\\\"b\\\\c\"\r\n"),
            (
                "a\r\nk2 DELETE INBOX",
                "k1 UID SEARCH TEXT \"a\" TEXT \"k2\" TEXT \"DELETE\" TEXT \"INBOX\"\r\n",
            ),
            ("a\0b", "k1 UID SEARCH TEXT \"a\" TEXT \"b\"\r\n"),
            ("Grüße", "k1 UID SEARCH CHARSET UTF-8 TEXT {7}\r\nGrüße\r\n"),
            ("{5}", "k1 UID SEARCH TEXT \"{5}\"\r\n"),
        ] {
            assert_eq!(written(text), expected);
        }
        assert!(words(" \" \u{7} \r\n").is_empty());
        assert_eq!(words(&"x ".repeat(100)).len(), MOST_WORDS);
        assert_eq!(plain(&words("Grüße Köln x")), ["Gr", "ln"]);
    }
}
