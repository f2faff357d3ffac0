//! Reduces a JSON Schema to the subset that Gemini accepts. Pure. Gemini rejects a whole request because of one
//! unknown keyword.

use serde_json::{Map, Value, json};

/// Keywords that mean the same to Gemini. All others are dropped: the schema only guides the model, and the tool
/// itself checks the arguments it gets.
const SAME: &[&str] =
    &["description", "nullable", "minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength"];

/// Deepest nesting that is followed, because references can be circular.
const DEEPEST: usize = 12;

/// The schema of a tool's parameters; `None` if it has none, because Gemini rejects an object without properties.
pub(super) fn subset(schema: &Value) -> Option<Value> {
    schema.as_object().is_some_and(has_properties).then(|| part(schema, schema, 0))
}

fn has_properties(fields: &Map<String, Value>) -> bool {
    fields.get("properties").and_then(Value::as_object).is_some_and(|all| !all.is_empty())
}

fn part(schema: &Value, root: &Value, depth: usize) -> Value {
    let Some(fields) = schema.as_object().filter(|_| depth < DEEPEST) else {
        return json!({"type": "string"});
    };
    if let Some(target) = referred(fields, root) {
        return part(target, root, depth + 1);
    }
    let mut kept: Map<String, Value> = Map::new();
    for name in SAME {
        if let Some(value) = fields.get(*name) {
            kept.insert((*name).to_owned(), value.clone());
        }
    }
    // Beside properties, alternatives mostly say which of them belong together, and Gemini would lose the properties.
    if let Some(all) = alternatives(fields).filter(|_| !has_properties(fields)) {
        let parts: Vec<Value> =
            all.iter().filter(|one| !is_null(one)).map(|one| part(one, root, depth + 1)).collect();
        if all.iter().any(is_null) {
            kept.insert("nullable".to_owned(), Value::Bool(true));
        }
        return with_alternatives(kept, parts);
    }
    typed(&mut kept, fields, root, depth);
    Value::Object(kept)
}

fn typed(kept: &mut Map<String, Value>, fields: &Map<String, Value>, root: &Value, depth: usize) {
    let (kind, nullable) = kind(fields);
    if nullable {
        kept.insert("nullable".to_owned(), Value::Bool(true));
    }
    match kind {
        "object" => object(kept, fields, root, depth),
        "array" => {
            let items = fields
                .get("items")
                .map_or_else(|| json!({"type": "string"}), |items| part(items, root, depth + 1));
            kept.insert("items".to_owned(), items);
        }
        "string" => {
            if let Some(choices) = choices(fields) {
                kept.insert("enum".to_owned(), choices);
            }
        }
        _ => {}
    }
    kept.insert("type".to_owned(), Value::String(kind.to_owned()));
}

fn object(kept: &mut Map<String, Value>, fields: &Map<String, Value>, root: &Value, depth: usize) {
    let Some(properties) = fields.get("properties").and_then(Value::as_object).filter(|all| !all.is_empty())
    else {
        return;
    };
    let mut parts = Map::new();
    for (name, schema) in properties {
        parts.insert(name.clone(), part(schema, root, depth + 1));
    }
    kept.insert("properties".to_owned(), Value::Object(parts));
    let required = fields.get("required").and_then(Value::as_array).into_iter().flatten();
    let required: Vec<Value> = required
        .filter(|name| name.as_str().is_some_and(|name| properties.contains_key(name)))
        .cloned()
        .collect();
    if !required.is_empty() {
        kept.insert("required".to_owned(), Value::Array(required));
    }
}

/// The type of a value, and whether `null` is allowed as well.
fn kind(fields: &Map<String, Value>) -> (&str, bool) {
    let listed: Vec<&str> = match fields.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let stated = listed.iter().copied().find(|kind| *kind != "null");
    let guessed = || match () {
        () if fields.contains_key("properties") => "object",
        () if fields.contains_key("items") => "array",
        () => "string",
    };
    (stated.unwrap_or_else(guessed), listed.contains(&"null"))
}

fn choices(fields: &Map<String, Value>) -> Option<Value> {
    let only = || Some(vec![fields.get("const")?.clone()]);
    let listed = fields.get("enum").and_then(Value::as_array).cloned().or_else(only)?;
    let words: Vec<Value> = listed.into_iter().filter(Value::is_string).collect();
    (!words.is_empty()).then_some(Value::Array(words))
}

fn alternatives(fields: &Map<String, Value>) -> Option<&Vec<Value>> {
    ["anyOf", "oneOf", "allOf"]
        .iter()
        .find_map(|name| fields.get(*name)?.as_array())
        .filter(|all| !all.is_empty())
}

fn with_alternatives(mut kept: Map<String, Value>, mut parts: Vec<Value>) -> Value {
    match (parts.len(), parts.pop()) {
        (1, Some(Value::Object(only))) => {
            for (name, value) in only {
                kept.entry(name).or_insert(value);
            }
        }
        (_, Some(last)) => {
            parts.push(last);
            kept.insert("anyOf".to_owned(), Value::Array(parts));
        }
        (_, None) => {
            kept.insert("type".to_owned(), json!("string"));
        }
    }
    Value::Object(kept)
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "null")
}

fn referred<'a>(fields: &Map<String, Value>, root: &'a Value) -> Option<&'a Value> {
    root.pointer(fields.get("$ref")?.as_str()?.strip_prefix('#')?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn property(schema: &Value) -> Value {
        let root = json!({
            "$schema": "x", "type": "object", "additionalProperties": false,
            "properties": {"p": schema}, "required": ["p", "gone"],
            "$defs": {"Name": {"type": "string", "title": "Name"}, "Loop": {"type": "array", "items": {"$ref": "#/$defs/Loop"}}},
        });
        let cut = subset(&root).unwrap();
        assert_eq!(cut["required"], json!(["p"]));
        assert_eq!(cut.as_object().unwrap().len(), 3, "{cut}");
        cut["properties"]["p"].clone()
    }

    #[test]
    fn only_what_gemini_knows_is_left() {
        for (schema, expected) in [
            (json!({"type": "string", "format": "uuid", "pattern": "x"}), json!({"type": "string"})),
            (
                json!({"type": ["integer", "null"], "minimum": 0}),
                json!({"type": "integer", "minimum": 0, "nullable": true}),
            ),
            (json!({"const": "a"}), json!({"type": "string", "enum": ["a"]})),
            (json!({"type": "integer", "enum": [1, 2]}), json!({"type": "integer"})),
            (json!({"type": "object", "additionalProperties": true}), json!({"type": "object"})),
            (json!({"type": "array"}), json!({"type": "array", "items": {"type": "string"}})),
            (json!({"$ref": "#/$defs/Name"}), json!({"type": "string"})),
            (
                json!({"anyOf": [{"type": "number"}, {"type": "null"}], "description": "d"}),
                json!({"type": "number", "nullable": true, "description": "d"}),
            ),
            (
                json!({"oneOf": [{"type": "number"}, {"type": "boolean"}]}),
                json!({"anyOf": [{"type": "number"}, {"type": "boolean"}]}),
            ),
            (
                json!({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
                json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            ),
            (
                json!({"type": "array", "items": {"properties": {"a": {"type": "string"}}, "oneOf": [{"required": ["a"]}, {"type": "null"}]}}),
                json!({"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}}),
            ),
            (json!(true), json!({"type": "string"})),
        ] {
            assert_eq!(property(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn alternatives_beside_the_parameters_do_not_replace_them() {
        for name in ["anyOf", "oneOf", "allOf"] {
            let schema = json!({
                "type": "object", "properties": {"a": {"type": "string"}}, name: [{"required": ["a"]}],
            });
            let expected = json!({"type": "object", "properties": {"a": {"type": "string"}}});
            assert_eq!(subset(&schema), Some(expected), "{name}");
        }
    }

    #[test]
    fn circles_end_and_tools_without_parameters_have_none() {
        let text = property(&json!({"$ref": "#/$defs/Loop"})).to_string();
        assert!(text.len() < 500, "{text}");
        assert_eq!(subset(&json!({"type": "object", "properties": {}})), None);
    }
}
