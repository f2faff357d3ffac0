//! What a server says of a tool: bounded, made harmless to read, and compared by a hash. Pure.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::hex;
use crate::legible::hides_something;
use crate::untrusted::Untrusted;

/// The most characters of a description that are kept and offered.
pub const LONGEST_DESCRIPTION: usize = 1_000;
/// The most characters of a tool's name at its server.
pub const LONGEST_NAME: usize = 128;
/// The most bytes of a schema, and how deep it may be nested. A larger one is left out with its tool.
const LARGEST_SCHEMA: usize = 16_384;
const DEEPEST_SCHEMA: usize = 24;
/// The most characters of each description inside a schema.
const LONGEST_PART: usize = 300;

/// A tool as its server describes it. All of it is a stranger's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolText {
    pub name: String,
    pub description: String,
    pub schema: Value,
    /// The server announces that the tool only reads.
    #[serde(default)]
    pub read_only: bool,
    /// The hash of everything that the server said, before anything was cut.
    pub whole: String,
}

/// Why a tool of a server cannot be offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfit {
    /// It has no name, or one that is too long or cannot be shown.
    Name,
    /// Its schema is not an object's, too large, or nested too deeply.
    Schema,
}

impl ToolText {
    /// Bounds and folds what a server said.
    pub fn read(name: &str, description: &str, schema: &Value, read_only: bool) -> Result<Self, Unfit> {
        let is_plain = Untrusted::new(name).line(LONGEST_NAME + 1) == name && !hides_something(name);
        if name.is_empty() || name.chars().count() > LONGEST_NAME || !is_plain {
            return Err(Unfit::Name);
        }
        let written = schema.to_string();
        let is_object = schema.get("type").is_none_or(|kind| kind == "object") && schema.is_object();
        if !is_object || written.len() > LARGEST_SCHEMA || depth(schema) > DEEPEST_SCHEMA {
            return Err(Unfit::Schema);
        }
        Ok(Self {
            name: name.to_owned(),
            description: Untrusted::new(description).line(LONGEST_DESCRIPTION),
            schema: harmless(schema),
            read_only,
            whole: hash(&[name, description, &written, if read_only { "reads" } else { "" }]),
        })
    }

    /// The hash by which an approval knows the text. It covers what was cut too.
    pub fn digest(&self) -> String {
        let schema = self.schema.to_string();
        hash(&[
            &self.whole,
            &self.name,
            &self.description,
            &schema,
            if self.read_only { "reads" } else { "" },
        ])
    }
}

fn hash(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hex::encode(&hash.finalize())
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

/// The schema with its texts on one bounded line each, and its references to itself put in where they fit.
fn harmless(schema: &Value) -> Value {
    let mut clean = folded(&inlined(schema, schema, 0));
    if let Value::Object(fields) = &mut clean {
        for noise in ["$schema", "$defs", "definitions", "$id"] {
            fields.remove(noise);
        }
        fields.insert("type".to_owned(), "object".into());
        fields.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    clean
}

/// How deep references are followed. One that refers to itself would never end.
const DEEPEST_REFERENCE: usize = 8;
/// The most bytes that references may make of a schema.
const LARGEST_INLINED: usize = 4 * LARGEST_SCHEMA;

/// Puts in what `$ref` refers to, because not every provider follows references. What is nested too deeply becomes
/// "anything".
fn inlined(value: &Value, root: &Value, deep: usize) -> Value {
    let mut left = LARGEST_INLINED;
    inline(value, root, deep, &mut left)
}

fn inline(value: &Value, root: &Value, deep: usize, left: &mut usize) -> Value {
    let Some(rest) = left.checked_sub(8) else { return Value::Object(Map::new()) };
    *left = rest;
    match value {
        Value::Object(fields) => {
            if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
                let found = target.strip_prefix('#').and_then(|path| root.pointer(path));
                return match found {
                    Some(found) if deep < DEEPEST_REFERENCE => inline(found, root, deep + 1, left),
                    _ => Value::Object(Map::new()),
                };
            }
            let kept = fields.iter().filter(|(name, _)| !["$defs", "definitions"].contains(&name.as_str()));
            let kept = kept.map(|(name, value)| {
                *left = left.saturating_sub(name.len());
                (name.clone(), inline(value, root, deep, left))
            });
            Value::Object(kept.collect())
        }
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| inline(item, root, deep, left)).collect())
        }
        Value::String(text) => {
            *left = left.saturating_sub(text.len());
            value.clone()
        }
        other => other.clone(),
    }
}

fn folded(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fold = |(name, value): (&String, &Value)| {
                (Untrusted::new(name.as_str()).line(LONGEST_NAME), folded(value))
            };
            Value::Object(fields.iter().map(fold).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(folded).collect()),
        Value::String(text) => Value::String(Untrusted::new(text.as_str()).line(LONGEST_PART)),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(description: &str, schema: &Value) -> Result<ToolText, Unfit> {
        ToolText::read("add", description, schema, false)
    }

    #[test]
    fn a_text_is_bounded_and_folded_but_every_change_is_noticed() {
        let schema =
            json!({"type": "object", "properties": {"a": {"type": "number", "description": "one\ntwo"}}});
        let long = "x".repeat(LONGEST_DESCRIPTION + 1);
        let text = read(&format!("{long}y"), &schema).unwrap();
        assert_eq!(text.description.chars().count(), LONGEST_DESCRIPTION);
        assert_eq!(text.schema["properties"]["a"]["description"], "one two");
        let other = read(&format!("{long}z"), &schema).unwrap();
        assert_eq!(text.description, other.description);
        assert_ne!(text.digest(), other.digest(), "what was cut counts too");
        assert_ne!(
            ToolText::read("add", "", &schema, true).unwrap().digest(),
            read("", &schema).unwrap().digest()
        );
        assert_eq!(read("a\u{202e}b\nc", &schema).unwrap().description, "a b c");
    }

    #[test]
    fn what_cannot_be_offered_is_refused() {
        let schema = json!({"type": "object"});
        let named = |name: &str| ToolText::read(name, "", &schema, false).map(|text| text.name);
        for name in ["", "a\nb", "a\u{200b}b", &"n".repeat(LONGEST_NAME + 1)] {
            assert_eq!(named(name), Err(Unfit::Name), "{name:?}");
        }
        assert_eq!(named("get-sum"), Ok("get-sum".to_owned()));
        let mut deep = json!({"type": "string"});
        for _ in 0..=DEEPEST_SCHEMA {
            deep = json!({"type": "object", "properties": {"a": deep}});
        }
        let large = json!({"type": "object", "description": "x".repeat(LARGEST_SCHEMA)});
        for schema in [deep, large, json!({"type": "array"}), json!("object"), json!(null)] {
            assert_eq!(read("", &schema).map(|text| text.name), Err(Unfit::Schema));
        }
    }

    /// A reference is put in, one to itself ends, and many of many do not grow without end.
    #[test]
    fn references_are_put_in_and_end() {
        let tree = json!({
            "type": "object",
            "properties": {"root": {"$ref": "#/$defs/node"}, "gone": {"$ref": "#/nowhere"}},
            "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
        });
        let schema = read("", &tree).unwrap().schema;
        assert_eq!(schema["properties"]["root"]["type"], "object");
        assert_eq!(schema["properties"]["gone"], json!({}));
        assert!(schema.get("$defs").is_none());
        let bomb: Map<String, Value> = (0..8)
            .map(|n| {
                let next = json!({"$ref": format!("#/$defs/{}", n + 1)});
                (
                    n.to_string(),
                    json!({"type": "object", "properties": {"a": next, "b": next, "c": next, "d": next,
                    "e": next, "f": next, "g": next, "h": next, "i": next, "j": next}}),
                )
            })
            .collect();
        let bomb = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/0"}}, "$defs": bomb});
        let size = read("", &bomb).unwrap().schema.to_string().len();
        assert!(size <= 4 * LARGEST_INLINED, "{size}");
    }
}
