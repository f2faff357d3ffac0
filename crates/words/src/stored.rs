//! How a sentence is kept in the store, so that it can be shown in any language later.
//!
//! A text from elsewhere is kept as it is. A sentence of ours is kept as `MARK` and JSON: its key, its values, and its
//! English text for the case that a later version no longer has the key. A text that begins with the mark itself is kept
//! as JSON too, so nobody else can write something that is read as a sentence of ours.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::sentence::{Arg, Kind, Said};
use super::{KEYS, place_of};

const MARK: &str = "said:";

impl Said {
    /// The form in which the store keeps the sentence.
    pub fn stored(&self) -> String {
        match &self.0 {
            Kind::Foreign(text) if !text.starts_with(MARK) => text.clone(),
            Kind::Foreign(_) => format!("{MARK}{}", nested(self)),
            Kind::Keyed { .. } => {
                let mut kept = nested(self);
                kept["en"] = self.to_string().into();
                format!("{MARK}{kept}")
            }
        }
    }

    /// Reads what [`Said::stored`] wrote. Anything else, such as the plain text of an older version, is a text from
    /// elsewhere.
    pub fn from_stored(kept: &str) -> Self {
        let json = kept.strip_prefix(MARK).and_then(|json| serde_json::from_str::<Value>(json).ok());
        let Some(json) = json else { return kept.into() };
        let english = || json.get("en").and_then(Value::as_str).map(Self::from);
        read(&json).or_else(english).unwrap_or_else(|| kept.into())
    }
}

/// For `#[serde(with = "kai_words::stored")]` on a field of a type that the store keeps as JSON.
pub fn serialize<S: Serializer>(said: &Option<Said>, to: S) -> Result<S::Ok, S::Error> {
    said.as_ref().map(Said::stored).serialize(to)
}

pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Said>, D::Error> {
    let kept = Option::<String>::deserialize(from)?;
    Ok(kept.map(|kept| Said::from_stored(&kept)))
}

fn nested(said: &Said) -> Value {
    match &said.0 {
        Kind::Foreign(text) => json!({ "text": text }),
        Kind::Keyed { at, args } => {
            let key = &KEYS[*at];
            let mut values = Map::new();
            for (name, arg) in key.placeholders.iter().zip(args) {
                values.insert((*name).to_owned(), value(arg));
            }
            json!({ "key": key.name, "with": values })
        }
    }
}

fn value(arg: &Arg) -> Value {
    match arg {
        Arg::Text(text) => text.as_str().into(),
        Arg::Number(number) => (*number).into(),
        Arg::Sentence(said) => nested(said),
    }
}

/// The sentence, or `None` if this version does not know its key, or knows it with other placeholders.
fn read(json: &Value) -> Option<Said> {
    if let Some(text) = json.get("text") {
        return text.as_str().map(Said::from);
    }
    let at = place_of(json.get("key")?.as_str()?)?;
    let (names, values) = (KEYS[at].placeholders, json.get("with")?.as_object()?);
    let args: Option<Vec<Arg>> = names.iter().map(|name| arg(values.get(*name)?)).collect();
    (values.len() == names.len()).then_some(Said::keyed(at, args?))
}

fn arg(value: &Value) -> Option<Arg> {
    match value {
        Value::String(text) => Some(Arg::Text(text.clone())),
        Value::Number(number) => number.as_u64().map(Arg::Number),
        Value::Object(_) => read(value).map(Arg::Sentence),
        Value::Null | Value::Bool(_) | Value::Array(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lang, said};

    fn german(kept: &str) -> String {
        Said::from_stored(kept).to(Lang::of("de"))
    }

    #[test]
    fn what_is_stored_is_read_back_in_any_language() {
        let why = said::models_failed(said::memory_too_long(2_000_u32));
        for said in [
            said::turn_no_text(),
            said::heartbeat_tokens(1_u32),
            said::memory_waiting(1_234_u32),
            said::transfer_detail("mine", &why),
            said::transfer_detail("said:mine", "said:{\"key\":\"turn_no_text\",\"with\":{}}"),
            Said::from("the phone said: no"),
            Said::from(""),
            // A stranger's text that looks like a stored sentence stays a stranger's text.
            Said::from("said:{\"key\":\"turn_no_text\",\"with\":{}}"),
        ] {
            assert_eq!(Said::from_stored(&said.stored()), said, "{}", said.stored());
        }
        let kept = said::transfer_detail("mine", &why).stored();
        assert_eq!(
            german(&kept),
            "mine: Es funktioniert nicht. Eine Erinnerung hat höchstens 2.000 Zeichen. \
             Kürzen Sie sie."
        );
    }

    #[test]
    fn what_cannot_be_read_is_shown_in_english_or_as_it_is() {
        for (kept, shown) in [
            ("It took longer than an hour.", "It took longer than an hour."),
            (r#"said:{"key":"no_such_key","with":{},"en":"It failed."}"#, "It failed."),
            (r#"said:{"key":"transfer_detail","with":{"name":"m"},"en":"m failed."}"#, "m failed."),
            (r#"said:{"key":"turn_no_text","with":{"more":"m"},"en":"No text."}"#, "No text."),
            (r#"said:{"key":"turn_empty","with":{"model":[1]},"en":"m failed."}"#, "m failed."),
            (r#"said:{"key":"#, r#"said:{"key":"#),
            ("said: nothing", "said: nothing"),
            ("said:7", "said:7"),
        ] {
            assert_eq!(german(kept), shown);
        }
    }
}
