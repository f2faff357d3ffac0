//! Translated names and descriptions for the user interface, by key, from text files per language.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The texts of one language, by key.
#[derive(Debug)]
pub struct Words(BTreeMap<&'static str, &'static str>);

const ENGLISH_FILES: &[&str] = &[
    include_str!("../words/en.txt"),
    // In separate files, because the store edition must not even contain these names.
    #[cfg(feature = "notifications")]
    include_str!("../words/en.notifications.txt"),
    #[cfg(feature = "sms")]
    include_str!("../words/en.sms.txt"),
];
static ENGLISH: LazyLock<Words> = LazyLock::new(|| Words::parse(ENGLISH_FILES));
const GERMAN_FILES: &[&str] = &[
    include_str!("../words/de.txt"),
    #[cfg(feature = "notifications")]
    include_str!("../words/de.notifications.txt"),
    #[cfg(feature = "sms")]
    include_str!("../words/de.sms.txt"),
];
static GERMAN: LazyLock<Words> = LazyLock::new(|| Words::parse(GERMAN_FILES));

impl Words {
    /// The texts for a language or a locale such as `de_AT.UTF-8`; English if there are none for it.
    pub fn of(locale: &str) -> &'static Self {
        match locale.split(['_', '.', '-', '@']).next() {
            Some("de") => &GERMAN,
            _ => &ENGLISH,
        }
    }

    /// The texts for the value of the setting `language`, where "system" means the locale.
    pub fn chosen(language: &str, locale: &str) -> &'static Self {
        Self::of(if language == "system" { locale } else { language })
    }

    fn parse(files: &[&'static str]) -> Self {
        let lines = files.iter().flat_map(|text| text.lines()).filter(|line| !line.starts_with('#'));
        Self(lines.filter_map(|line| line.split_once('=')).map(|(k, v)| (k.trim(), v.trim())).collect())
    }

    /// The text for `key`. If it is missing, the key itself: ugly, but never wrong.
    pub fn get<'a>(&'a self, key: &'a str) -> &'a str {
        self.0.get(key).copied().unwrap_or(key)
    }

    /// The name of a tool; an unknown tool is shown under the name it was called by.
    pub fn tool_name(&self, tool: &str) -> String {
        self.0.get(format!("tool.{tool}").as_str()).map_or_else(|| tool.to_owned(), |name| (*name).to_owned())
    }

    pub fn tool_about(&self, tool: &str) -> String {
        self.get(&format!("tool.{tool}.about")).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_every_word() {
        let keys = |words: &Words| words.0.keys().copied().collect::<Vec<_>>();
        assert_eq!(keys(&ENGLISH), keys(&GERMAN));
        assert!(ENGLISH.0.values().chain(GERMAN.0.values()).all(|word| !word.is_empty()));
    }

    #[test]
    fn a_locale_chooses_the_language() {
        for (locale, expected) in [
            ("de_AT.UTF-8", "Ortszeit"),
            ("de", "Ortszeit"),
            ("en_GB.UTF-8", "Local time"),
            ("C", "Local time"),
            ("", "Local time"),
            ("den", "Local time"),
        ] {
            assert_eq!(Words::of(locale).tool_name("get_local_time"), expected, "{locale}");
            assert_eq!(Words::of(locale).tool_name("made_up"), "made_up");
        }
    }
}
