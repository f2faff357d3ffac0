//! The words people read that are not the model's: names and descriptions, by key, from one file a language.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// One language's words.
#[derive(Debug)]
pub struct Words(BTreeMap<&'static str, &'static str>);

static ENGLISH: LazyLock<Words> = LazyLock::new(|| Words::parse(include_str!("../words/en.txt")));

impl Words {
    pub fn english() -> &'static Self {
        &ENGLISH
    }

    fn parse(text: &'static str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Self(lines.filter_map(|line| line.split_once('=')).map(|(k, v)| (k.trim(), v.trim())).collect())
    }

    /// The word for `key`; a missing one shows its key, which is ugly but never wrong.
    pub fn get<'a>(&'a self, key: &'a str) -> &'a str {
        self.0.get(key).copied().unwrap_or(key)
    }

    pub fn tool_name(&self, tool: &str) -> String {
        self.get(&format!("tool.{tool}")).to_owned()
    }

    pub fn tool_about(&self, tool: &str) -> String {
        self.get(&format!("tool.{tool}.about")).to_owned()
    }
}
