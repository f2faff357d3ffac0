//! A sentence whose language is chosen when it is shown.

use std::borrow::Cow;
use std::fmt;

use super::Lang;
use super::plural::Category;

/// A sentence from the catalogue with its values, or a text from elsewhere, such as a server's error message. `Display`
/// writes it in English.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Keyed { slot: u16, plural: bool, args: Vec<(&'static str, Arg)> },
    Foreign(String),
}

/// The value of a placeholder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arg {
    Text(String),
    Number(u64),
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
    pub(crate) fn keyed(slot: u16, plural: bool, args: Vec<(&'static str, Arg)>) -> Self {
        Self(Kind::Keyed { slot, plural, args })
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
            Kind::Keyed { slot, plural, args } => split(template(*slot, *plural, args, lang), args, lang),
        }
    }

    /// The text of a sentence without placeholders.
    pub(crate) fn fixed(&self, lang: Lang) -> &'static str {
        match &self.0 {
            Kind::Keyed { slot, .. } => lang.text(*slot),
            Kind::Foreign(_) => "",
        }
    }
}

/// The text to fill in. A plural goes by its placeholder `n`.
fn template(slot: u16, plural: bool, args: &[(&str, Arg)], lang: Lang) -> &'static str {
    let n = args.iter().find_map(|(name, arg)| match arg {
        Arg::Number(n) if *name == "n" => Some(*n),
        _ => None,
    });
    let place = |lang: Lang| slot + lang.plural().category(n.unwrap_or_default()) as u16;
    let own = |lang: Lang| lang.0.texts[usize::from(place(lang))];
    match plural {
        false => lang.text(slot),
        true if own(lang).is_empty() => own(Lang::ENGLISH),
        true => own(lang),
    }
}

fn split(template: &'static str, args: &[(&str, Arg)], lang: Lang) -> Vec<Part> {
    let value = |name: &str| {
        let found = args.iter().find(|(known, _)| *known == name.trim_start_matches('#'));
        match found.map(|(_, arg)| arg) {
            Some(Arg::Text(text)) => text.clone(),
            Some(Arg::Number(number)) => lang.number(*number),
            None => String::new(),
        }
    };
    let mut parts = vec![];
    let mut rest = template;
    while let Some((words, (name, behind))) =
        rest.split_once('{').and_then(|(words, after)| Some((words, after.split_once('}')?)))
    {
        parts.extend([Part::Words(words.into()), Part::Value(value(name))]);
        rest = behind;
    }
    parts.push(Part::Words(rest.into()));
    parts
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

impl From<&str> for Said {
    fn from(text: &str) -> Self {
        Self(Kind::Foreign(text.to_owned()))
    }
}

// The categories are the places of a plural's texts.
const _: () = assert!(Category::Zero as u16 == 0 && Category::Other as u16 == 5);
