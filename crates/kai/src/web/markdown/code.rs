//! Colours for code blocks: finds comments, strings, numbers and keywords. One small scanner serves all languages;
//! what it does not know stays plain.

/// What a piece of code is, as far as colours go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    Comment,
    Text,
    Number,
    Keyword,
}

impl Kind {
    /// The class that gives the piece its colour.
    pub(super) fn class(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Comment => Some("c"),
            Self::Text => Some("s"),
            Self::Number => Some("n"),
            Self::Keyword => Some("k"),
        }
    }
}

/// How a language writes comments and strings, and its keywords.
struct Language {
    line: &'static [&'static str],
    block: Option<(&'static str, &'static str)>,
    quotes: &'static [&'static str],
    keywords: &'static str,
    /// Are its keywords the same in capitals?
    any_case: bool,
}

const RUST: Language = Language {
    line: &["//"],
    block: Some(("/*", "*/")),
    quotes: &["\""],
    keywords: "as async await break const continue dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while",
    any_case: false,
};

const BRACES: Language = Language {
    line: &["//"],
    block: Some(("/*", "*/")),
    quotes: &["\"", "'", "`"],
    keywords: "abstract async await bool boolean break case catch char class const continue default defer delete do double else enum export extends false final finally float for fun func function go if implements import in instanceof int interface let long new nil null override package private protected public range return short static string struct super switch template this throw throws true try type typedef typeof undefined union unsigned using val var virtual void while yield",
    any_case: false,
};

const PYTHON: Language = Language {
    line: &["#"],
    block: None,
    quotes: &["\"\"\"", "'''", "\"", "'"],
    keywords: "False None True and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield",
    any_case: false,
};

const SHELL: Language = Language {
    line: &["#"],
    block: None,
    quotes: &["\"", "'"],
    keywords: "alias break case cd continue do done echo elif else esac exit export fi for function if in local return set source sudo then unset until while",
    any_case: false,
};

const RUBY: Language = Language {
    line: &["#"],
    block: None,
    quotes: &["\"", "'"],
    keywords: "alias and begin break case class def do else elsif end ensure false for if in module next nil not or raise rescue return self super then true unless until when while yield",
    any_case: false,
};

const DATA: Language = Language {
    line: &["#"],
    block: None,
    quotes: &["\"", "'"],
    keywords: "true false null yes no on off",
    any_case: false,
};

const SQL: Language = Language {
    line: &["--"],
    block: Some(("/*", "*/")),
    quotes: &["'", "\""],
    keywords: "add all alter and as asc begin between by case check commit create cross default delete desc distinct drop else end exists foreign from full group having in index inner insert into is join key left like limit not null offset on or order outer primary references right rollback select set table then union unique update values view when where with",
    any_case: true,
};

const LUA: Language = Language {
    line: &["--"],
    block: Some(("--[[", "]]")),
    quotes: &["\"", "'"],
    keywords: "and break do else elseif end false for function goto if in local nil not or repeat return then true until while",
    any_case: false,
};

const STYLE: Language =
    Language { line: &[], block: Some(("/*", "*/")), quotes: &["\"", "'"], keywords: "", any_case: false };

const MARKUP: Language =
    Language { line: &[], block: Some(("<!--", "-->")), quotes: &["\""], keywords: "", any_case: false };

/// The language that a code block names behind its fence.
fn language(info: &str) -> Option<&'static Language> {
    let name = info.split([' ', ',', '{']).next().unwrap_or_default().to_ascii_lowercase();
    Some(match name.as_str() {
        "rust" | "rs" => &RUST,
        "c" | "cpp" | "c++" | "h" | "hpp" | "cs" | "csharp" | "java" | "js" | "javascript" | "jsx"
        | "mjs" | "ts" | "typescript" | "tsx" | "go" | "golang" | "kotlin" | "kt" | "swift" | "dart"
        | "php" | "scala" | "json" | "jsonc" | "json5" | "groovy" | "zig" => &BRACES,
        "python" | "py" | "python3" => &PYTHON,
        "sh" | "bash" | "zsh" | "fish" | "shell" | "console" | "dockerfile" | "docker" | "make"
        | "makefile" => &SHELL,
        "ruby" | "rb" | "elixir" | "ex" | "perl" | "pl" | "r" => &RUBY,
        "yaml" | "yml" | "toml" | "ini" | "conf" | "properties" => &DATA,
        "sql" | "sqlite" | "postgres" | "postgresql" | "mysql" => &SQL,
        "lua" => &LUA,
        "css" | "scss" | "less" => &STYLE,
        "html" | "xml" | "svg" | "vue" => &MARKUP,
        _ => return None,
    })
}

/// Longer code stays plain: nobody reads it in a chat, and the page would double in size.
const LONGEST: usize = 20_000;

/// The code in pieces. Joined, they are the code again.
pub(super) fn pieces<'a>(code: &'a str, info: &str) -> Vec<(Kind, &'a str)> {
    match language(info) {
        Some(language) if code.len() <= LONGEST => Scanner { language, code, at: 0 }.scan(),
        _ => vec![(Kind::Plain, code)],
    }
}

struct Scanner<'a> {
    language: &'static Language,
    code: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn scan(mut self) -> Vec<(Kind, &'a str)> {
        let mut pieces: Vec<(Kind, &str)> = vec![];
        let mut plain = 0;
        while self.at < self.code.len() {
            let from = self.at;
            let kind = self.next();
            if kind == Kind::Plain {
                continue;
            }
            pieces.extend((plain < from).then(|| (Kind::Plain, &self.code[plain..from])));
            pieces.push((kind, &self.code[from..self.at]));
            plain = self.at;
        }
        pieces.extend((plain < self.code.len()).then(|| (Kind::Plain, &self.code[plain..])));
        pieces
    }

    /// Moves past the next piece and says what it was.
    fn next(&mut self) -> Kind {
        let rest = &self.code[self.at..];
        if let Some(length) = self.comment(rest) {
            self.at += length;
            return Kind::Comment;
        }
        if let Some(length) = self.text(rest) {
            self.at += length;
            return Kind::Text;
        }
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if word == 0 {
            self.at += rest.chars().next().map_or(1, char::len_utf8);
            return Kind::Plain;
        }
        self.at += word;
        self.word(&rest[..word])
    }

    fn comment(&self, rest: &str) -> Option<usize> {
        if let Some((open, close)) = self.language.block
            && let Some(inside) = rest.strip_prefix(open)
        {
            return Some(inside.find(close).map_or(rest.len(), |end| open.len() + end + close.len()));
        }
        let line = self.language.line.iter().any(|begin| rest.starts_with(begin));
        // In a shell, `$#` and `a#b` are no comments.
        let apart = !rest.starts_with('#')
            || self.code[..self.at].chars().next_back().is_none_or(char::is_whitespace);
        (line && apart).then(|| rest.find('\n').unwrap_or(rest.len()))
    }

    /// The length of the string that begins here. One that does not end in its line is no string, unless its quotes
    /// may span lines.
    fn text(&self, rest: &str) -> Option<usize> {
        let quote = self.language.quotes.iter().find(|quote| rest.starts_with(**quote))?;
        let spans = quote.len() == 3 || *quote == "`";
        let mut escaped = false;
        for (at, c) in rest[quote.len()..].char_indices() {
            let at = quote.len() + at;
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '\n' if !spans => return None,
                _ if rest[at..].starts_with(quote) => return Some(at + quote.len()),
                _ => {}
            }
        }
        spans.then_some(rest.len())
    }

    fn word(&self, word: &str) -> Kind {
        let same = |keyword: &str| {
            if self.language.any_case { keyword.eq_ignore_ascii_case(word) } else { keyword == word }
        };
        if self.language.keywords.split(' ').any(same) {
            Kind::Keyword
        } else if word.starts_with(|c: char| c.is_ascii_digit()) {
            Kind::Number
        } else {
            Kind::Plain
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn coloured(code: &str, info: &str) -> Vec<(Kind, String)> {
        let pieces = pieces(code, info).into_iter();
        pieces.filter(|(kind, _)| *kind != Kind::Plain).map(|(kind, text)| (kind, text.to_owned())).collect()
    }

    #[test]
    fn comments_strings_numbers_and_keywords_are_found() {
        for (info, code, expected) in [
            (
                "rust",
                "let x: &'a str = \"a\\\"b\"; // 5",
                vec![(Kind::Keyword, "let"), (Kind::Text, "\"a\\\"b\""), (Kind::Comment, "// 5")],
            ),
            (
                "python",
                "def f():\n  \"\"\"a\n b\"\"\"\n  return 12",
                vec![
                    (Kind::Keyword, "def"),
                    (Kind::Text, "\"\"\"a\n b\"\"\""),
                    (Kind::Keyword, "return"),
                    (Kind::Number, "12"),
                ],
            ),
            ("sh", "echo $# # it's", vec![(Kind::Keyword, "echo"), (Kind::Comment, "# it's")]),
            (
                "sql",
                "SELECT 'a' FROM t",
                vec![(Kind::Keyword, "SELECT"), (Kind::Text, "'a'"), (Kind::Keyword, "FROM")],
            ),
            ("json", "{\"a\": true}", vec![(Kind::Text, "\"a\""), (Kind::Keyword, "true")]),
            ("js", "don't /* x */", vec![(Kind::Comment, "/* x */")]),
            ("html", "<!-- x --><a href=\"b\">", vec![(Kind::Comment, "<!-- x -->"), (Kind::Text, "\"b\"")]),
            ("", "let x = 1", vec![]),
            ("nonsense", "let x = 1", vec![]),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|(kind, text)| (kind, text.to_owned())).collect();
            assert_eq!(coloured(code, info), expected, "{code}");
        }
        let long = "let ".repeat(LONGEST);
        assert_eq!(pieces(&long, "rust"), [(Kind::Plain, long.as_str())]);
    }

    proptest! {
        #[test]
        fn the_pieces_are_the_code(code in "[a-z0-9\"'`#/*\\-<!ä \n\\\\\\[\\]]{0,60}", info in "(rust|python|sh|sql|lua|html|js|css)") {
            let joined: String = pieces(&code, &info).into_iter().map(|(_, text)| text).collect();
            prop_assert_eq!(joined, code);
        }
    }
}
