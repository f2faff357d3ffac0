//! Every sentence that Kai's page shows, in every language.
//!
//! A language is one file in `lang/`. The build script reads them and makes a function per key, so a sentence that does
//! not exist, or a placeholder that is not filled, does not compile; a translation with other placeholders than the
//! English one does not build. A text that a language lacks is shown in English.

mod plural;
mod sentence;
pub mod stored;

use std::fmt::Display;

use plural::Plural;

pub use sentence::{Arg, Count, Part, Said};

include!(concat!(env!("OUT_DIR"), "/words.rs"));

/// What the generated tables hold for a language.
struct Language {
    code: &'static str,
    name: &'static str,
    /// The name of its plural rule.
    plural: &'static str,
    thousands: &'static str,
    decimal: &'static str,
    rtl: bool,
    missing: &'static [&'static str],
    /// By the place of the key; a plural takes six places. Empty where the text is missing.
    texts: &'static [&'static str],
}

/// What the generated table holds for a key.
struct Key {
    name: &'static str,
    /// The place of its text; a plural takes six places.
    slot: u16,
    plural: bool,
    placeholders: &'static [&'static str],
}

/// A language of the page.
#[derive(Clone, Copy)]
pub struct Lang(&'static Language);

/// The server and the name in the name of an MCP server's tool, `mcp_<server>_<tool>`. Servers' names have no underscore.
pub fn foreign(tool: &str) -> Option<(&str, &str)> {
    tool.strip_prefix("mcp_")?.split_once('_')
}

impl Lang {
    pub const ENGLISH: Self = Self(&LANGUAGES[0]);

    /// All languages there is a file for; English is the first.
    pub fn all() -> impl Iterator<Item = Self> {
        LANGUAGES.iter().map(Self)
    }

    /// The language of a locale such as `de_AT.UTF-8`; English if there is no file for it.
    pub fn of(locale: &str) -> Self {
        let code = locale.split(['_', '.', '-', '@']).next().unwrap_or_default();
        Self::all().find(|language| language.code() == code).unwrap_or(Self::ENGLISH)
    }

    /// The language for the value of the setting `language`, where "system" means the locale.
    pub fn chosen(setting: &str, locale: &str) -> Self {
        Self::of(if setting == "system" { locale } else { setting })
    }

    pub fn code(self) -> &'static str {
        self.0.code
    }

    /// What the language calls itself.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Is it written from right to left?
    pub fn is_rtl(self) -> bool {
        self.0.rtl
    }

    /// The keys that have no text in this language.
    pub fn missing(self) -> &'static [&'static str] {
        self.0.missing
    }

    /// A whole number with the language's separators: 12,345.
    pub fn number(self, number: impl Count) -> String {
        let digits = number.count().to_string();
        let mut out = String::new();
        for (place, digit) in digits.chars().enumerate() {
            if place > 0 && (digits.len() - place).is_multiple_of(3) {
                out.push_str(self.0.thousands);
            }
            out.push(digit);
        }
        out
    }

    /// A number given in tenths, with one digit after the separator: 1.5.
    pub fn tenths(self, tenths: impl Count) -> String {
        let tenths = tenths.count();
        format!("{}{}{}", self.number(tenths / 10), self.0.decimal, tenths % 10)
    }

    /// The text of a key that is only known at run time, such as a tool's name.
    pub fn find(self, key: &str) -> Option<&'static str> {
        Some(self.text(KEYS[place_of(key)?].slot))
    }

    /// The name of a tool; a tool of an MCP server with the name of its server, and an unknown tool under the name it was
    /// called by.
    pub fn tool_name(self, tool: &str) -> String {
        let ours = self.find(&format!("tool_{tool}")).map(str::to_owned);
        let foreign = || foreign(tool).map(|(server, name)| format!("{name} ({server})"));
        ours.or_else(foreign).unwrap_or_else(|| tool.to_owned())
    }

    pub fn tool_about(self, tool: &str) -> &'static str {
        self.find(&format!("tool_{tool}_about")).unwrap_or_default()
    }

    fn plural(self) -> Plural {
        Plural::named(self.0.plural)
    }

    fn text(self, slot: u16) -> &'static str {
        let texts = |language: &Language| language.texts[usize::from(slot)];
        match texts(self.0) {
            "" => texts(&LANGUAGES[0]),
            text => text,
        }
    }
}

/// The place of a key among [`KEYS`].
fn place_of(key: &str) -> Option<usize> {
    KEYS.binary_search_by_key(&key, |known| known.name).ok()
}

impl PartialEq for Lang {
    fn eq(&self, other: &Self) -> bool {
        self.code() == other.code()
    }
}

impl Eq for Lang {}

impl std::fmt::Debug for Lang {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.code())
    }
}

#[cfg(test)]
mod tests;
