//! The schema of a tool's arguments.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// A JSON Schema. It is part of every request of a conversation, so it is written down once, and clones share it.
#[derive(Clone)]
pub struct Schema(Arc<Written>);

struct Written {
    value: Value,
    text: Box<RawValue>,
}

impl Schema {
    /// The schema as it is sent.
    pub fn text(&self) -> &str {
        self.0.text.get()
    }
}

impl From<Value> for Schema {
    fn from(value: Value) -> Self {
        // A value without keys that are no strings always has a text, so this is no way to lose one.
        let text = to_raw_value(&value).unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self(Arc::new(Written { value, text }))
    }
}

impl Deref for Schema {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0.value
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.value == other.0.value
    }
}

impl Eq for Schema {}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.value.fmt(f)
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.text.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_written_as_its_value_is() {
        let value = json!({"type": "object", "properties": {"a": {"enum": ["ü", "\"", 1.5, null]}}});
        let schema = Schema::from(value.clone());
        let text = serde_json::to_string(&value).unwrap();
        assert_eq!(schema.to_string(), text);
        assert_eq!(serde_json::to_string(&[&schema]).unwrap(), format!("[{text}]"));
        assert_eq!(serde_json::to_value(&schema).unwrap(), value);
        assert_eq!(serde_json::from_str::<Schema>(&text).unwrap(), schema);
        assert_eq!(schema["type"], "object");
    }
}
