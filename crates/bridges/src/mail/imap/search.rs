//! The words of a search, and the numbers that it finds. Pure. The words are the user's or a model's, and stay strings
//! whatever they contain.

use super::command::Command;

/// How many words count, and how many characters of each.
const MOST_WORDS: usize = 10;
const LONGEST_WORD: usize = 100;
/// How many numbers of a search are kept.
const MOST_FOUND: usize = 1_000_000;

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

/// Which numbers a search is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted {
    /// Those after this one. If they are too many, the lowest are kept: the mark moves past everything below the last
    /// one that is delivered, and the next search finds what is above.
    After(u32),
    /// All. If they are too many, the highest are kept.
    Newest,
}

/// The numbers that a search found. A server may spread them over several lines, in any order.
#[derive(Debug)]
pub(super) struct Hits {
    uids: Vec<u32>,
    wanted: Wanted,
    most: usize,
}

impl Hits {
    pub(super) fn of(wanted: Wanted) -> Self {
        Self { uids: vec![], wanted, most: MOST_FOUND }
    }

    /// Adds what one line names.
    pub(super) fn add(&mut self, line: &[u32]) {
        let after = match self.wanted {
            Wanted::After(uid) => uid,
            Wanted::Newest => 0,
        };
        self.uids.extend(line.iter().copied().filter(|uid| *uid > after));
        // Sorting only now and then keeps the work small if there are many short lines.
        if self.uids.len() >= 2 * self.most {
            self.tidy();
        }
    }

    /// All of them in their order, each once.
    pub(super) fn sorted(mut self) -> Vec<u32> {
        self.tidy();
        self.uids
    }

    fn tidy(&mut self) {
        self.uids.sort_unstable();
        self.uids.dedup();
        let surplus = self.uids.len().saturating_sub(self.most);
        match self.wanted {
            Wanted::After(_) => self.uids.truncate(self.most),
            Wanted::Newest => drop(self.uids.drain(..surplus)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_in_several_lines_is_one_and_too_many_are_cut_where_nothing_is_lost() {
        for (name, wanted, most, lines, expected) in [
            ("nothing", Wanted::After(0), 9, vec![], vec![]),
            ("several lines", Wanted::After(1), 9, vec![vec![2, 4], vec![3, 5]], vec![2, 3, 4, 5]),
            ("unordered, twice", Wanted::Newest, 9, vec![vec![7, 2], vec![2, 1], vec![7]], vec![1, 2, 7]),
            ("not after it", Wanted::After(5), 9, vec![vec![5], vec![0, 4]], vec![]),
            ("no number", Wanted::Newest, 9, vec![vec![0, 1]], vec![1]),
            ("the lowest", Wanted::After(1), 2, vec![vec![9, 8], vec![7, 6, 1], vec![3]], vec![3, 6]),
            ("the highest", Wanted::Newest, 2, vec![vec![9, 8], vec![1, 2, 3], vec![7]], vec![8, 9]),
            ("one long line", Wanted::After(0), 2, vec![vec![5, 4, 3, 2, 1]], vec![1, 2]),
        ] {
            let mut hits = Hits { most, ..Hits::of(wanted) };
            for line in &lines {
                hits.add(line);
                assert!(hits.uids.len() < 2 * most, "{name}: it keeps too many");
            }
            assert_eq!(hits.sorted(), expected, "{name}");
        }
    }

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
