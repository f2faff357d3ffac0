//! Writes the generated Rust: the tables of texts and a function per key.

use std::fmt::Write;

use crate::catalogue::{Catalogue, Entry, FORMS, Placeholder, Takes, missing};

/// The generated source. The first language is English.
pub(crate) fn source(languages: &[Catalogue]) -> String {
    let mut out = String::new();
    let english = &languages[0];
    let mut slot = 0;
    let mut slots = vec![];
    for (key, entry) in &english.entries {
        slots.push((key, entry, slot));
        slot += if entry.is_plural() { FORMS.len() } else { 1 };
    }
    tables(&mut out, languages, &slots);
    out.push_str("impl Lang {\n");
    for (key, entry, _) in &slots {
        method(&mut out, key, entry);
    }
    out.push_str("}\n/// Sentences whose language is chosen when they are shown.\npub mod said {\n    use super::{Arg, Count, Display, Said};\n");
    for (at, (key, entry, _)) in slots.iter().enumerate() {
        sentence(&mut out, key, entry, at);
    }
    out.push_str("}\n");
    out
}

fn tables(out: &mut String, languages: &[Catalogue], slots: &[(&String, &Entry, usize)]) {
    let head = |language: &Catalogue, key: &str| language.head.get(key).cloned().unwrap_or_default();
    out.push_str("static LANGUAGES: &[Language] = &[\n");
    for language in languages {
        let texts: Vec<&str> = slots.iter().flat_map(|(key, entry, _)| texts(language, key, entry)).collect();
        _ = writeln!(
            out,
            "    Language {{ code: {:?}, name: {:?}, plural: {:?}, thousands: {:?}, decimal: {:?}, rtl: {}, missing: &{:?}, texts: &{texts:?} }},",
            language.code,
            head(language, "name"),
            head(language, "plural"),
            separator(&head(language, "thousands")),
            separator(&head(language, "decimal")),
            head(language, "direction") == "rtl",
            missing(&languages[0], language),
        );
    }
    let codes: Vec<&str> =
        ["system"].into_iter().chain(languages.iter().map(|it| it.code.as_str())).collect();
    _ = writeln!(
        out,
        "];\n/// The values of the setting `language`.\npub const CHOICES: &[&str] = &{codes:?};"
    );
    out.push_str("/// Every key, in order.\nstatic KEYS: &[Key] = &[\n");
    for (key, entry, slot) in slots {
        let names: Vec<String> =
            entry.placeholders().into_iter().map(|placeholder| placeholder.name).collect();
        _ = writeln!(
            out,
            "    Key {{ name: {key:?}, slot: {slot}, plural: {}, placeholders: &{names:?} }},",
            entry.is_plural(),
        );
    }
    out.push_str("];\n");
}

/// A separator stands in quotation marks in the file where it is a blank.
fn separator(value: &str) -> &str {
    value.trim_matches('"')
}

/// A key's texts in one language: one, or one per plural category. An empty text means that it is missing.
fn texts<'a>(language: &'a Catalogue, key: &str, original: &Entry) -> Vec<&'a str> {
    let forms: &[&str] = if original.is_plural() { &FORMS } else { &[""] };
    let entry = language.entries.get(key);
    let text = |form: &&str| entry.and_then(|entry| entry.texts.get(*form)).map_or("", String::as_str);
    forms.iter().map(text).collect()
}

fn parameters(entry: &Entry) -> String {
    let kind = |placeholder: &Placeholder| match placeholder.takes {
        Takes::Text => "Display",
        Takes::Number => "Count",
        Takes::Sentence => "Into<Said>",
    };
    let one = |placeholder: &Placeholder| format!("{}: impl {}", placeholder.name, kind(placeholder));
    entry.placeholders().iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The text for the documentation. As code, so that nothing in it counts as markup.
fn example(entry: &Entry) -> String {
    let shown = entry.texts.get("").or_else(|| entry.texts.get("other")).map_or("", String::as_str);
    format!("`{}`", shown.replace('`', "'"))
}

/// The method that gives the text in one language.
fn method(out: &mut String, key: &str, entry: &Entry) {
    let names: Vec<String> = entry.placeholders().into_iter().map(|placeholder| placeholder.name).collect();
    let comma = if names.is_empty() { "" } else { ", " };
    let (gives, how) =
        if names.is_empty() { ("&'static str", "fixed(self)") } else { ("String", "to(self)") };
    _ = writeln!(
        out,
        "    /// {}\n    pub fn {key}(self{comma}{}) -> {gives} {{ said::{key}({}).{how} }}",
        example(entry),
        parameters(entry),
        names.join(", "),
    );
}

/// The function that makes the sentence without choosing a language. `at` is the place of its key.
fn sentence(out: &mut String, key: &str, entry: &Entry, at: usize) {
    let arg = |Placeholder { name, takes }: &Placeholder| match takes {
        Takes::Text => format!("Arg::Text({name}.to_string())"),
        Takes::Number => format!("Arg::Number({name}.count())"),
        Takes::Sentence => format!("Arg::Sentence({name}.into())"),
    };
    let args: Vec<String> = entry.placeholders().iter().map(arg).collect();
    _ = writeln!(
        out,
        "    /// {}\n    pub fn {key}({}) -> Said {{ Said::keyed({at}, vec![{}]) }}",
        example(entry),
        parameters(entry),
        args.join(", "),
    );
}
