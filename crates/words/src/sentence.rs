//! A sentence whose language is chosen when it is shown.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::plural::Category;
use super::{KEYS, Key, Lang};

/// A sentence from the catalogue with its values, or a text from elsewhere, such as a server's error message. `Display`
/// writes it in English, and so does serde: commands and exports speak English. [`Said::stored`] keeps it for later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said(pub(crate) Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A sentence from the catalogue: the place of its key, and a value per placeholder.
    Keyed {
        at: usize,
        args: Vec<Arg>,
    },
    Foreign(String),
}

impl Default for Kind {
    fn default() -> Self {
        Self::Foreign(String::new())
    }
}

/// The value of a placeholder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arg {
    Text(String),
    Number(u64),
    /// Another sentence, such as the reason in "Kai can't use it: …".
    Sentence(Said),
}

/// A piece of a sentence: our words, or the value of a placeholder, which the page may mark up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Words(Cow<'static, str>),
    Value(String),
}

/// A whole number that is not negative.
pub trait Count: Copy {
    fn count(self) -> u64;
}

macro_rules! counts {
    ($($kind:ty),*) => { $(impl Count for $kind {
        fn count(self) -> u64 {
            u64::try_from(self).unwrap_or_default()
        }
    })* };
}
counts!(u16, u32, u64, usize, i32, i64);

impl Said {
    pub(crate) fn keyed(at: usize, args: Vec<Arg>) -> Self {
        Self(Kind::Keyed { at, args })
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, Kind::Foreign(text) if text.is_empty())
    }

    /// The sentence in this language.
    pub fn to(&self, lang: Lang) -> String {
        let text = |part| match part {
            Part::Words(words) => words.into_owned(),
            Part::Value(value) => value,
        };
        self.parts(lang).into_iter().map(text).collect()
    }

    /// The sentence in this language, in pieces.
    pub fn parts(&self, lang: Lang) -> Vec<Part> {
        match &self.0 {
            Kind::Foreign(text) => vec![Part::Words(text.clone().into())],
            Kind::Keyed { at, args } => split(&KEYS[*at], args, lang),
        }
    }

    /// The text of a sentence without placeholders.
    pub(crate) fn fixed(&self, lang: Lang) -> &'static str {
        match &self.0 {
            Kind::Keyed { at, .. } => lang.text(KEYS[*at].slot),
            Kind::Foreign(_) => "",
        }
    }
}

/// The text to fill in. A plural goes by its placeholder `n`.
fn template(key: &Key, args: &[Arg], lang: Lang) -> &'static str {
    let n = key.placeholders.iter().zip(args).find_map(|(name, arg)| match arg {
        Arg::Number(n) if *name == "n" => Some(*n),
        _ => None,
    });
    let place = |lang: Lang| key.slot + lang.plural().category(n.unwrap_or_default()) as u16;
    let own = |lang: Lang| lang.0.texts[usize::from(place(lang))];
    match key.plural {
        false => lang.text(key.slot),
        true if own(lang).is_empty() => own(Lang::ENGLISH),
        true => own(lang),
    }
}

fn split(key: &Key, args: &[Arg], lang: Lang) -> Vec<Part> {
    let filled = |name: &str| {
        let name = name.trim_start_matches(['#', '@']);
        let found = key.placeholders.iter().zip(args).find(|(known, _)| **known == name);
        found.map(|(_, arg)| value(arg, lang)).unwrap_or_default()
    };
    let mut parts = vec![];
    let mut rest = template(key, args, lang);
    while let Some((words, (name, behind))) =
        rest.split_once('{').and_then(|(words, after)| Some((words, after.split_once('}')?)))
    {
        parts.push(Part::Words(words.into()));
        parts.extend(filled(name));
        rest = behind;
    }
    parts.push(Part::Words(rest.into()));
    parts
}

/// What stands in a placeholder's place. A sentence within a sentence is our words, unless it came from elsewhere.
fn value(arg: &Arg, lang: Lang) -> Vec<Part> {
    match arg {
        Arg::Text(text) | Arg::Sentence(Said(Kind::Foreign(text))) => vec![Part::Value(text.clone())],
        Arg::Number(number) => vec![Part::Value(lang.number(*number))],
        Arg::Sentence(said) => said.parts(lang),
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to(Lang::ENGLISH))
    }
}

impl From<String> for Said {
    fn from(text: String) -> Self {
        Self(Kind::Foreign(text))
    }
}

impl From<&String> for Said {
    fn from(text: &String) -> Self {
        text.clone().into()
    }
}

impl From<&str> for Said {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<&Self> for Said {
    fn from(said: &Self) -> Self {
        said.clone()
    }
}

impl Serialize for Said {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Said {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(Self::from)
    }
}

// The categories are the places of a plural's texts.
const _: () = assert!(Category::Zero as u16 == 0 && Category::Other as u16 == 5);
