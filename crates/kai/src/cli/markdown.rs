//! Renders streaming Markdown for a terminal: bold, code, headings, bullets. Anything else is printed as it is.

const BOLD: &str = "\x1b[1m";
const CODE: &str = "\x1b[36m";
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// Turns pieces of Markdown into coloured text. Holds back only characters that could still become markup.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one mark that is open or not")]
pub(super) struct Markdown {
    /// The start of a line, until it is clear what kind of line it is.
    head: Option<String>,
    star: bool,
    bold: bool,
    code: bool,
    fence: bool,
    heading: bool,
}

impl Markdown {
    pub(super) fn new() -> Self {
        Self { head: Some(String::new()), ..Self::default() }
    }

    pub(super) fn push(&mut self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        for c in text.chars() {
            match self.head.take() {
                Some(mut head) => {
                    head.push(c);
                    if undecided(&head) {
                        self.head = Some(head);
                    } else {
                        self.begin(&head, &mut shown);
                    }
                }
                None => self.inline(c, &mut shown),
            }
        }
        shown
    }

    /// Ends the text: returns what was held back and resets the colours.
    pub(super) fn finish(&mut self) -> String {
        let mut shown = String::new();
        if let Some(head) = self.head.take().filter(|head| !head.is_empty()) {
            self.begin(&head, &mut shown);
        }
        self.release_star(&mut shown);
        if self.bold || self.code || self.fence || self.heading {
            shown.push_str(PLAIN);
        }
        *self = Self::new();
        shown
    }

    fn begin(&mut self, head: &str, shown: &mut String) {
        let hashes = head.trim_end_matches(' ');
        if head.starts_with("```") {
            self.fence = !self.fence;
            shown.push_str(if self.fence { DIM } else { PLAIN });
            head.chars().skip(3).for_each(|c| self.inline(c, shown));
        } else if self.fence {
            head.chars().for_each(|c| self.inline(c, shown));
        } else if head.ends_with(' ') && !hashes.is_empty() && hashes.chars().all(|c| c == '#') {
            self.heading = true;
            shown.push_str(BOLD);
        } else if matches!(head, "- " | "* " | "+ ") {
            shown.push_str("• ");
        } else {
            head.chars().for_each(|c| self.inline(c, shown));
        }
    }

    fn inline(&mut self, c: char, shown: &mut String) {
        if c == '\n' {
            return self.end_line(shown);
        }
        if self.fence {
            return push_visible(c, shown);
        }
        match c {
            '*' if !self.code && std::mem::take(&mut self.star) => {
                self.bold = !self.bold;
                self.restyle(shown);
            }
            '*' if !self.code => self.star = true,
            '`' => {
                self.release_star(shown);
                self.code = !self.code;
                self.restyle(shown);
            }
            c => {
                self.release_star(shown);
                push_visible(c, shown);
            }
        }
    }

    fn end_line(&mut self, shown: &mut String) {
        self.release_star(shown);
        if self.heading || self.bold || self.code {
            shown.push_str(PLAIN);
        }
        (self.heading, self.bold, self.code) = (false, false, false);
        shown.push('\n');
        self.head = Some(String::new());
    }

    fn release_star(&mut self, shown: &mut String) {
        if std::mem::take(&mut self.star) {
            shown.push('*');
        }
    }

    fn restyle(&self, shown: &mut String) {
        shown.push_str(PLAIN);
        if self.bold || self.heading {
            shown.push_str(BOLD);
        }
        if self.code {
            shown.push_str(CODE);
        }
    }
}

/// Whether more characters could still make this the start of a heading, a bullet or a fence.
fn undecided(head: &str) -> bool {
    let heading = head.len() <= 6 && head.chars().all(|c| c == '#');
    heading || matches!(head, "-" | "*" | "+" | "`" | "``")
}

/// Appends a character made visible: a model's text must not control the terminal.
fn push_visible(c: char, shown: &mut String) {
    if c == '\t' {
        shown.push(c);
    } else {
        shown.push_str(&crate::terminal::out::visible(c.encode_utf8(&mut [0; 4])));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rendered text, with colour codes replaced by tags.
    fn render(pieces: &[&str]) -> String {
        let mut markdown = Markdown::new();
        let mut shown: String = pieces.iter().map(|piece| markdown.push(piece)).collect();
        shown += &markdown.finish();
        [(BOLD, "<b>"), (CODE, "<c>"), (DIM, "<d>"), (PLAIN, "</>")]
            .iter()
            .fold(shown, |s, (a, b)| s.replace(a, b))
    }

    #[test]
    fn marks_become_colours_however_they_are_cut() {
        for (text, expected) in [
            ("plain", "plain"),
            ("a **b** c", "a </><b>b</> c"),
            ("2 * 3 ** 4", "2 * 3 </><b> 4</>"),
            ("use `x*y` now", "use </><c>x*y</> now"),
            ("## Title\ntext", "<b>Title</>\ntext"),
            ("- one\n* two\n-three", "• one\n• two\n-three"),
            ("```rust\nlet **x** = 1;\n```\ndone", "<d>rust\nlet **x** = 1;\n</>\ndone"),
            ("#hashtag", "#hashtag"),
            ("**open\nnext", "</><b>open</>\nnext"),
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("*", "*"),
        ] {
            assert_eq!(render(&[text]), expected, "{text:?} at once");
            let letters: Vec<String> = text.chars().map(String::from).collect();
            let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
            assert_eq!(render(&letters), expected, "{text:?} letter by letter");
        }
    }
}
