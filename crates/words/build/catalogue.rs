//! Reads the language files and checks them against the English one. Shared by the build script and the tests.

use std::collections::BTreeMap;
use std::fmt;

/// The plural categories of CLDR, in the order in which a plural's texts are stored.
pub(crate) const FORMS: [&str; 6] = ["zero", "one", "two", "few", "many", "other"];

/// The plural categories that each rule uses. `src/plural.rs` says which number belongs to which.
pub(crate) const RULES: &[(&str, &[&str])] = &[
    ("none", &["other"]),
    ("one", &["one", "other"]),
    ("zero-one", &["one", "other"]),
    ("czech", &["one", "few", "other"]),
    ("polish", &["one", "few", "many"]),
    ("east-slavic", &["one", "few", "many"]),
    ("arabic", &["zero", "one", "two", "few", "many", "other"]),
];

/// One language file.
#[derive(Debug)]
pub(crate) struct Catalogue {
    /// The language's code, from the file's name: `de`.
    pub(crate) code: String,
    /// What the file's first lines say about the language: `name`, `plural`, `thousands`, `decimal`, `direction`.
    pub(crate) head: BTreeMap<String, String>,
    pub(crate) entries: BTreeMap<String, Entry>,
}

/// A text by its key, or the texts of a plural by their categories.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Does only the foss edition contain it?
    pub(crate) foss: bool,
    pub(crate) line: usize,
    /// By plural category; the key of a text without plural is the empty string.
    pub(crate) texts: BTreeMap<String, String>,
}

impl Entry {
    pub(crate) fn is_plural(&self) -> bool {
        !self.texts.contains_key("")
    }

    /// The placeholders of all its texts, in the order of their first appearance. A plural goes by `n`: if no text
    /// shows it, it comes last.
    pub(crate) fn placeholders(&self) -> Vec<Placeholder> {
        let mut found: Vec<Placeholder> = vec![];
        for placeholder in self.texts.values().flat_map(|text| placeholders(text)) {
            if !found.contains(&placeholder) {
                found.push(placeholder);
            }
        }
        let n = Placeholder { name: "n".to_owned(), takes: Takes::Number };
        if self.is_plural() && !found.contains(&n) {
            found.push(n);
        }
        found
    }
}

/// A place in a text that a value fills.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Placeholder {
    pub(crate) name: String,
    pub(crate) takes: Takes,
}

/// What fills a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Takes {
    /// `{name}`: anything that can be written.
    Text,
    /// `{#bytes}`: a number, written the language's way.
    Number,
    /// `{@why}`: another sentence, put into the same language.
    Sentence,
}

pub(crate) fn placeholders(text: &str) -> Vec<Placeholder> {
    let opened = text.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    let read = |(inside, _): (&str, &str)| {
        let (name, takes) = match inside.split_at_checked(1) {
            Some(("#", name)) => (name, Takes::Number),
            Some(("@", name)) => (name, Takes::Sentence),
            _ => (inside, Takes::Text),
        };
        Placeholder { name: name.to_owned(), takes }
    };
    opened.map(read).collect()
}

/// What is wrong with a language file, and where.
#[derive(Debug)]
pub(crate) struct Mistake {
    file: String,
    line: usize,
    what: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lang/{}.txt:{}: {}", self.file, self.line, self.what)
    }
}

/// Reads a language file: `key = text` lines below `[section]` lines, with what describes the language above the first
/// section. A section's name is the beginning of its keys; `[section, foss]` is left out of the store edition.
pub(crate) fn parse(code: &str, text: &str) -> Result<Catalogue, Mistake> {
    let mut catalogue = Catalogue { code: code.to_owned(), head: BTreeMap::new(), entries: BTreeMap::new() };
    let mut section: Option<(String, bool)> = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let mistake = |what: String| Mistake { file: code.to_owned(), line: number + 1, what };
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(inside) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let (name, edition) = inside.split_once(',').unwrap_or((inside, ""));
            section = Some((name.trim().to_owned(), edition.trim() == "foss"));
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            return Err(mistake("expected `key = text`, `[section]` or `# comment`".to_owned()));
        };
        let (key, value) = (key.trim(), value.trim());
        match &section {
            None => _ = catalogue.head.insert(key.to_owned(), value.to_owned()),
            Some((section, foss)) => {
                add(&mut catalogue, section, *foss, number + 1, key, value).map_err(mistake)?;
            }
        }
    }
    Ok(catalogue)
}

fn add(
    catalogue: &mut Catalogue,
    section: &str,
    foss: bool,
    line: usize,
    key: &str,
    value: &str,
) -> Result<(), String> {
    let (key, form) = match key.split_once('[') {
        Some((key, form)) => (key.trim(), form.trim_end_matches(']')),
        None => (key, ""),
    };
    if !form.is_empty() && !FORMS.contains(&form) {
        return Err(format!("`{form}` is not a plural category; there are {}", FORMS.join(", ")));
    }
    let key = format!("{section}_{key}");
    if !key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_') {
        return Err(format!("`{key}` may hold only a-z, 0-9 and _"));
    }
    if value.is_empty() {
        return Err(format!("`{key}` has no text"));
    }
    let entry =
        catalogue.entries.entry(key.clone()).or_insert_with(|| Entry { foss, line, texts: BTreeMap::new() });
    let mixed = !entry.texts.is_empty() && entry.is_plural() == form.is_empty();
    if mixed || entry.texts.insert(form.to_owned(), value.to_owned()).is_some() {
        return Err(format!("`{key}` stands here twice"));
    }
    Ok(())
}

/// What is wrong with a translation, given the English catalogue. A missing text is not: English takes its place.
pub(crate) fn mistakes(english: &Catalogue, other: &Catalogue) -> Vec<Mistake> {
    let mut found = vec![];
    let mut mistake = |line, what| found.push(Mistake { file: other.code.clone(), line, what });
    let Some(forms) = forms(other) else {
        let known: Vec<&str> = RULES.iter().map(|(name, _)| *name).collect();
        mistake(1, format!("`plural = …` has to name one of {}", known.join(", ")));
        return found;
    };
    for (key, entry) in &other.entries {
        let Some(original) = english.entries.get(key) else {
            mistake(entry.line, format!("the English file has no `{key}`"));
            continue;
        };
        if original.is_plural() != entry.is_plural() || original.foss != entry.foss {
            mistake(entry.line, format!("`{key}` has a plural or an edition in one language only"));
        }
        for form in entry.texts.keys().filter(|form| !form.is_empty() && !forms.contains(&form.as_str())) {
            mistake(entry.line, format!("`{key}[{form}]`: this language's rule has no such category"));
        }
        let sorted = |entry: &Entry| {
            let mut names = entry.placeholders();
            names.sort();
            names
        };
        if sorted(original) != sorted(entry) {
            mistake(entry.line, format!("`{key}` has other placeholders than in English"));
        }
    }
    found
}

/// The keys that a language has no text for, or lacks a plural category of.
pub(crate) fn missing(english: &Catalogue, other: &Catalogue) -> Vec<String> {
    let forms = forms(other).unwrap_or_default();
    let lacks = |key: &str, original: &Entry| match other.entries.get(key) {
        None => true,
        Some(entry) => original.is_plural() && forms.iter().any(|form| !entry.texts.contains_key(*form)),
    };
    let keys = english.entries.iter().filter(|(key, original)| lacks(key, original));
    keys.map(|(key, _)| key.clone()).collect()
}

fn forms(catalogue: &Catalogue) -> Option<&'static [&'static str]> {
    let rule = catalogue.head.get("plural")?;
    RULES.iter().find(|(name, _)| name == rule).map(|(_, forms)| *forms)
}
