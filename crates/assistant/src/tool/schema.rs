//! Generates the schema that a model reads from a Rust type, and fits the model's arguments to that schema.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};

/// The description of a tool (its input's doc comment) and the schema of its arguments.
pub(super) fn describe<T: JsonSchema>() -> (String, Value) {
    let settings = SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    let description = schema.get("description").and_then(Value::as_str).map(unwrapped).unwrap_or_default();
    if let Some(root) = schema.as_object_mut() {
        root.remove("description");
        root.entry("properties").or_insert_with(|| json!({}));
    }
    strip(&mut schema);
    (description, schema)
}

/// Removes parts of the schema that cost tokens and tell a model nothing.
fn strip(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for noise in ["$schema", "title", "format"] {
                // A parameter may itself be called "title". Its entry is an object; the noise is a string.
                if fields.get(noise).is_some_and(Value::is_string) {
                    fields.remove(noise);
                }
            }
            if let Some(Value::String(text)) = fields.get_mut("description") {
                *text = unwrapped(text);
            }
            if let Some(kinds) = fields.get_mut("type") {
                without_null(kinds);
            }
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// Joins the lines of a doc comment, which are wrapped for readers of the source and not for the model.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Removes `null` from a list of types. A parameter is optional if it is not required, so `null` adds nothing.
fn without_null(kinds: &mut Value) {
    if let Value::Array(list) = kinds {
        list.retain(|kind| kind != "null");
        if let [only] = list.as_slice() {
            *kinds = only.clone();
        }
    }
}

/// Converts the arguments to the types that the schema asks for, or returns one sentence that names the wrong
/// parameter.
pub(super) fn fit(schema: &Value, mut arguments: Map<String, Value>) -> Result<Map<String, Value>, String> {
    let required = |name: &str| {
        schema.get("required").and_then(Value::as_array).is_some_and(|all| all.iter().any(|r| r == name))
    };
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Ok(arguments) };
    for (name, wanted) in properties {
        let given = arguments.remove(name);
        match given {
            None | Some(Value::Null) if !required(name) => {}
            given => {
                let fitted =
                    value(wanted, given.clone()).ok_or_else(|| complaint(name, wanted, given.as_ref()))?;
                arguments.insert(name.clone(), fitted);
            }
        }
    }
    Ok(arguments)
}

fn value(wanted: &Value, given: Option<Value>) -> Option<Value> {
    let given = given?;
    let fitted = match (wanted.get("type").and_then(Value::as_str), given) {
        (Some("string"), Value::Number(n)) if n.is_i64() || n.is_u64() => Value::String(n.to_string()),
        (Some("integer"), given) => integer(&given)?,
        (Some("number"), Value::String(s)) => json!(s.trim().parse::<f64>().ok().filter(|n| n.is_finite())?),
        (Some("boolean"), Value::String(s)) => json!(s.trim().parse::<bool>().ok()?),
        (Some("array"), Value::Array(items)) => {
            let item = wanted.get("items").unwrap_or(&Value::Null);
            Value::Array(items.into_iter().map(|i| value(item, Some(i))).collect::<Option<_>>()?)
        }
        (_, given) => given,
    };
    let right = match wanted.get("type").and_then(Value::as_str) {
        Some("string") => fitted.is_string(),
        Some("integer") => fitted.is_i64() || fitted.is_u64(),
        Some("number") => fitted.is_number(),
        Some("boolean") => fitted.is_boolean(),
        Some("array") => fitted.is_array(),
        Some("object") => fitted.is_object(),
        _ => true,
    };
    let fitted = as_listed(wanted, fitted);
    let listed = wanted.get("enum").and_then(Value::as_array).is_none_or(|allowed| allowed.contains(&fitted));
    (right && listed).then_some(fitted)
}

/// The allowed value that differs from the given one only in case or surrounding blanks, if there is exactly one.
fn as_listed(wanted: &Value, given: Value) -> Value {
    let Some(allowed) = wanted.get("enum").and_then(Value::as_array) else { return given };
    let same = |one: &&Value| {
        one.as_str().zip(given.as_str()).is_some_and(|(one, given)| one.eq_ignore_ascii_case(given.trim()))
    };
    let mut like = allowed.iter().filter(same);
    match (like.next(), like.next()) {
        (Some(one), None) if !allowed.contains(&given) => one.clone(),
        _ => given,
    }
}

/// A non-negative integer, given as a number or a string.
pub(super) fn whole(given: &Value) -> Option<u64> {
    integer(given)?.as_u64()
}

fn integer(given: &Value) -> Option<Value> {
    match given {
        Value::String(s) => s.trim().parse::<i64>().ok().map(Value::from),
        Value::Number(n) if n.is_i64() || n.is_u64() => Some(given.clone()),
        // 42.0 is 42; 4.5 is not an integer.
        Value::Number(n) => n.to_string().strip_suffix(".0")?.parse::<i64>().ok().map(Value::from),
        _ => None,
    }
}

fn complaint(name: &str, wanted: &Value, given: Option<&Value>) -> String {
    let kind =
        match (wanted.get("enum").and_then(Value::as_array), wanted.get("type").and_then(Value::as_str)) {
            (Some(allowed), _) => {
                format!("one of {}", allowed.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
            }
            (_, Some("string")) => "a string".to_owned(),
            (_, Some("integer")) => "an integer".to_owned(),
            (_, Some("boolean")) => "true or false".to_owned(),
            (_, Some("array")) => "a list".to_owned(),
            (_, other) => format!("a JSON {}", other.unwrap_or("value")),
        };
    let got = match given {
        None => "it is missing".to_owned(),
        Some(Value::Object(_)) => "it is an object".to_owned(),
        Some(Value::Array(_)) => "it is a list".to_owned(),
        Some(scalar) => format!("it is {}", scalar.to_string().chars().take(60).collect::<String>()),
    };
    format!("The parameter \"{name}\" must be {kind}, but {got}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> Value {
        json!({
            "type": "object",
            "properties": {
                "id": {"type": "integer"},
                "to": {"type": "string"},
                "loud": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "kind": {"type": "string", "enum": ["A", "B"]},
            },
            "required": ["id", "to"],
        })
    }

    #[test]
    fn arguments_are_fitted_or_refused_with_one_sentence() {
        for (given, expected) in [
            (json!({"id": 42, "to": "x"}), Ok(json!({"id": 42, "to": "x"}))),
            (json!({"id": "42", "to": "x"}), Ok(json!({"id": 42, "to": "x"}))),
            (json!({"id": 42.0, "to": "x"}), Ok(json!({"id": 42, "to": "x"}))),
            (json!({"id": 1, "to": 4_915_112_345_678_i64}), Ok(json!({"id": 1, "to": "4915112345678"}))),
            (json!({"id": 1, "to": "x", "loud": "true"}), Ok(json!({"id": 1, "to": "x", "loud": true}))),
            (json!({"id": 1, "to": "x", "loud": null}), Ok(json!({"id": 1, "to": "x"}))),
            (json!({"id": 1, "to": "x", "tags": [7]}), Ok(json!({"id": 1, "to": "x", "tags": ["7"]}))),
            (json!({"id": 4.5, "to": "x"}), Err("The parameter \"id\" must be an integer, but it is 4.5.")),
            (json!({"id": null, "to": "x"}), Err("The parameter \"id\" must be an integer, but it is null.")),
            (json!({"to": "x"}), Err("The parameter \"id\" must be an integer, but it is missing.")),
            (json!({"id": 1, "to": {}}), Err("The parameter \"to\" must be a string, but it is an object.")),
            (json!({"id": 1, "to": true}), Err("The parameter \"to\" must be a string, but it is true.")),
            (
                json!({"id": 1, "to": "x", "loud": 3}),
                Err("The parameter \"loud\" must be true or false, but it is 3."),
            ),
            (json!({"id": 1, "to": "x", "kind": " b"}), Ok(json!({"id": 1, "to": "x", "kind": "B"}))),
            (
                json!({"id": 1, "to": "x", "kind": "C"}),
                Err("The parameter \"kind\" must be one of \"A\", \"B\", but it is \"C\"."),
            ),
        ] {
            let arguments = given.as_object().unwrap().clone();
            let fitted = fit(&wanted(), arguments).map(Value::Object);
            assert_eq!(fitted, expected.map_err(str::to_owned), "{given}");
        }
    }

    /// Look a thing up
    /// in a book.
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is of interest")]
    struct Input {
        /// Name of the
        /// book.
        title: String,
        page: Option<u32>,
    }

    #[test]
    fn a_model_reads_the_doc_comments_and_no_noise() {
        let (description, parameters) = describe::<Input>();
        assert_eq!(description, "Look a thing up in a book.");
        assert_eq!(
            parameters,
            json!({
                "type": "object",
                "properties": {
                    "title": {"type": "string", "description": "Name of the book."},
                    "page": {"type": "integer", "minimum": 0},
                },
                "required": ["title"],
            })
        );
    }
}
