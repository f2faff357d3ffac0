//! What a server says of a tool: bounded, made harmless to read, and compared by a hash. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::once;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
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

    /// The schema as models' services accept it. They refuse a whole request because of one tool. It is made anew each
    /// time, because an approval covers the schema as it is stored.
    pub fn parameters(&self) -> Value {
        let mut schema = self.schema.clone();
        add_items(&mut schema);
        match schema {
            Value::Object(fields) => Value::Object(without_branches(fields)),
            other => other,
        }
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
            let mut kept = Map::new();
            for (name, value) in fields {
                if !["$defs", "definitions"].contains(&name.as_str()) {
                    *left = left.saturating_sub(name.len());
                    kept.insert(name.clone(), inline(value, root, deep, left));
                }
            }
            Value::Object(kept)
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
            let mut lines = Map::new();
            for (name, value) in fields {
                lines.insert(Untrusted::new(name.as_str()).line(LONGEST_NAME), folded(value));
            }
            Value::Object(lines)
        }
        Value::Array(items) => Value::Array(items.iter().map(folded).collect()),
        Value::String(text) => Value::String(Untrusted::new(text.as_str()).line(LONGEST_PART)),
        other => other.clone(),
    }
}

/// What services refuse at the root of a schema, besides the branches.
const NOT_AT_ROOT: &[&str] = &["not", "enum", "const", "if", "then", "else"];

/// Merges what the branches of a schema say into its root: all their properties, and what is required whichever branch
/// applies. The schema only guides the model, and the server checks the arguments itself.
fn without_branches(mut fields: Map<String, Value>) -> Map<String, Value> {
    let all = branches(&mut fields, &["allOf"]);
    let either = branches(&mut fields, &["anyOf", "oneOf"]);
    for name in NOT_AT_ROOT {
        fields.remove(*name);
    }
    if all.is_empty() && either.is_empty() {
        return fields;
    }
    let shared = either.iter().map(required).reduce(|one, other| &one & &other).unwrap_or_default();
    let needed: BTreeSet<&str> =
        once(&fields).chain(&all).map(required).chain(once(shared)).flatten().collect();
    let needed: Vec<Value> = needed.into_iter().map(Value::from).collect();
    let properties = merged(&fields, &all, &either);
    fields.insert("properties".to_owned(), Value::Object(properties));
    if !needed.is_empty() {
        fields.insert("required".to_owned(), Value::Array(needed));
    }
    fields
}

/// Takes the branches out of a schema. Each is merged with its own.
fn branches(fields: &mut Map<String, Value>, names: &[&str]) -> Vec<Map<String, Value>> {
    let lists = names.iter().filter_map(|name| fields.remove(*name));
    let branches = lists.flat_map(|list| match list {
        Value::Array(branches) => branches,
        _ => vec![],
    });
    let merged = branches.map(|branch| match branch {
        Value::Object(branch) => without_branches(branch),
        _ => Map::new(),
    });
    merged.collect()
}

/// The properties of a schema and its branches. One that several alternatives have may be as any of them says; the
/// schema's own come first.
fn merged(
    own: &Map<String, Value>,
    all: &[Map<String, Value>],
    either: &[Map<String, Value>],
) -> Map<String, Value> {
    let mut merged: Map<String, Value> = Map::new();
    for (name, schema) in once(own).chain(all).flat_map(properties) {
        merged.entry(name.as_str()).or_insert_with(|| schema.clone());
    }
    let mut choices: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for (name, schema) in either.iter().flat_map(properties) {
        let known = choices.entry(name.as_str()).or_default();
        if !known.contains(&schema) {
            known.push(schema);
        }
    }
    for (name, schemas) in choices {
        merged.entry(name).or_insert_with(|| match schemas.as_slice() {
            [only] => Value::clone(only),
            several => json!({"anyOf": several}),
        });
    }
    merged
}

fn properties(fields: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    fields.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn required(fields: &Map<String, Value>) -> BTreeSet<&str> {
    let names = fields.get("required").and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).collect()
}

/// Below these keywords stands a schema for each name, and below those no schemas but values.
const NAMED: &[&str] = &["properties", "patternProperties", "dependentSchemas"];
const VALUES: &[&str] = &["default", "const", "enum", "example", "examples"];

/// Adds `items` to each array of the schema, without which a service refuses it.
fn add_items(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    for (keyword, value) in fields.iter_mut() {
        add_items_below(keyword, value);
    }
    let is_array = fields.get("type").is_some_and(|kind| {
        kind == "array" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "array"))
    });
    if is_array {
        let items = fields.entry("items").or_insert_with(|| json!({}));
        // The old way to give each place its own schema, which services refuse as well.
        if let Value::Array(places) = items {
            *items = if places.is_empty() { json!({}) } else { json!({"anyOf": places}) };
        }
    }
}

fn add_items_below(keyword: &str, value: &mut Value) {
    match value {
        _ if VALUES.contains(&keyword) => {}
        Value::Object(named) if NAMED.contains(&keyword) => named.values_mut().for_each(add_items),
        Value::Array(list) => list.iter_mut().for_each(add_items),
        other => add_items(other),
    }
}

#[cfg(test)]
mod tests {
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

    fn parameters(schema: &Value) -> Value {
        read("", schema).unwrap().parameters()
    }

    #[test]
    fn branches_at_the_root_become_parameters() {
        let (text, number) = (json!({"type": "string"}), json!({"type": "number"}));
        let id = json!({"properties": {"id": text}, "required": ["id"]});
        let name = json!({"properties": {"name": text, "id": text}, "required": ["name", "id"]});
        let both = json!({"id": text, "name": text});
        for (what, schema, properties, required) in [
            ("either", json!({"anyOf": [id, name]}), both.clone(), json!(["id"])),
            ("one", json!({"oneOf": [id, name]}), both.clone(), json!(["id"])),
            ("all", json!({"allOf": [id, name]}), both.clone(), json!(["id", "name"])),
            ("nothing in common", json!({"anyOf": [id, true]}), json!({"id": text}), json!(null)),
            ("all of either", json!({"allOf": [{"anyOf": [id, name]}]}), both.clone(), json!(["id"])),
            (
                "what its own parameters need",
                json!({"properties": both, "anyOf": [{"required": ["id"]}, {"required": ["name"]}]}),
                both.clone(),
                json!(null),
            ),
            (
                "beside its own",
                json!({"properties": {"id": number}, "required": ["id"], "oneOf": [name]}),
                json!({"id": number, "name": text}),
                json!(["id", "name"]),
            ),
            (
                "two kinds",
                json!({"oneOf": [{"properties": {"a": {"const": 1}}}, {"properties": {"a": {"const": 2}}}]}),
                json!({"a": {"anyOf": [{"const": 1}, {"const": 2}]}}),
                json!(null),
            ),
            (
                "conditions",
                json!({"properties": both, "not": id, "if": id, "then": id, "else": id, "enum": [{}], "const": {}}),
                both.clone(),
                json!(null),
            ),
            (
                "deeper",
                json!({"properties": {"a": {"anyOf": [text, number]}}}),
                json!({"a": {"anyOf": [text, number]}}),
                json!(null),
            ),
        ] {
            let mut expected = json!({"type": "object", "properties": properties});
            if !required.is_null() {
                expected["required"] = required;
            }
            assert_eq!(parameters(&schema), expected, "{what}");
        }
    }

    #[test]
    fn every_array_says_what_is_in_it() {
        let (bare, whole) = (json!({"type": "array"}), json!({"type": "array", "items": {}}));
        for (schema, expected) in [
            (bare.clone(), whole.clone()),
            (json!({"type": ["array", "null"]}), json!({"type": ["array", "null"], "items": {}})),
            (json!({"type": "array", "items": bare}), json!({"type": "array", "items": whole})),
            (json!({"anyOf": [bare, {"type": "string"}]}), json!({"anyOf": [whole, {"type": "string"}]})),
            (json!({"properties": {"default": bare}}), json!({"properties": {"default": whole}})),
            (json!({"type": "array", "items": []}), whole.clone()),
            (
                json!({"type": "array", "items": [{"type": "string"}, bare]}),
                json!({"type": "array", "items": {"anyOf": [{"type": "string"}, whole]}}),
            ),
            (json!({"const": bare, "default": bare}), json!({"const": bare, "default": bare})),
            (json!({"type": "string"}), json!({"type": "string"})),
        ] {
            let given = json!({"type": "object", "properties": {"type": schema}});
            let expected = json!({"type": "object", "properties": {"type": expected}});
            assert_eq!(parameters(&given), expected, "{schema}");
        }
    }

    /// The user approved the schema as the server gives it. What a model is sent must not make that approval void.
    #[test]
    fn what_a_model_is_sent_leaves_the_approved_schema_as_it_is() {
        let schema =
            json!({"type": "object", "properties": {}, "anyOf": [{"properties": {"a": {"type": "array"}}}]});
        let text = read("", &schema).unwrap();
        assert_eq!(text.schema, schema);
        assert_eq!(parameters(&schema)["properties"], json!({"a": {"type": "array", "items": {}}}));
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
