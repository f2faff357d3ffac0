//! Fuzzes tool arguments. Malformed arguments are refused with one sentence, or fitted to the schema; fitted ones stay
//! the same however often they are serialised, parsed and fitted again.

#![expect(clippy::unwrap_used, reason = "a check may fail loudly")]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::executor::{execute, parse};
use super::schema::{describe, fit};
use super::{Run, Tool, ToolError, ToolOutput};
use crate::settings::Values;

/// One parameter of every kind that our tools have.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct EveryKindInput {
    id: i64,
    to: String,
    count: Option<u32>,
    #[serde(default)]
    share: Option<f64>,
    loud: Option<bool>,
    tags: Option<Vec<String>>,
    kind: Option<Kind>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
enum Kind {
    Small,
    Large,
}

struct EveryKind;

impl Tool for EveryKind {
    const NAME: &'static str = "every_kind";
    type Input = EveryKindInput;
    type Output = EveryKindInput;

    async fn run(&self, input: EveryKindInput, _: &Run) -> Result<ToolOutput<EveryKindInput>, ToolError> {
        Ok(ToolOutput::own(input))
    }
}

fn again(fields: &Map<String, Value>) -> Map<String, Value> {
    parse(&Value::Object(fields.clone()).to_string()).unwrap()
}

/// Takes any bytes as the arguments that a model wrote for a tool.
pub fn arguments(bytes: &[u8]) {
    let written = String::from_utf8_lossy(bytes);
    check_fitting(&written);
    check_result(&written);
}

fn check_fitting(written: &str) {
    let (_, schema) = describe::<EveryKindInput>();
    let Ok(arguments) = parse(written) else { return };
    match fit(&schema, arguments) {
        Ok(fitted) => {
            assert_eq!(&again(&fitted), &fitted, "written and read");
            assert_eq!(&fit(&schema, fitted.clone()).unwrap(), &fitted, "fitted again");
        }
        Err(said) => assert!(said.chars().count() <= 200, "{said}"),
    }
}

/// Every call returns a result that a model can read.
fn check_result(written: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let result = runtime.block_on(execute(Ok(&EveryKind), &Values::default(), written, &Run::BY_HAND));
    assert!(result.text.chars().count() <= 8_100);
    if let Ok(read) = serde_json::from_str::<Value>(&result.text) {
        assert_eq!(&read["success"], &Value::Bool(result.success));
        assert!(result.success || read["error"].is_string());
    } else {
        assert!(result.text.contains("\n[Cut off: "), "{}", result.text);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WRITTEN: [&str; 5] = [
        r#"{"id":42,"to":"+15550100","count":3,"share":0.5,"loud":true,"tags":["a","b"],"kind":"Small"}"#,
        r#"{"id":"42","to":4915112345678,"count":"7","share":"1e3","loud":"false","tags":[7,8],"kind":"Large"}"#,
        r#"{"id":42.0,"to":"x","count":null,"loud":null}"#,
        "null",
        "",
    ];

    proptest! {
        #[test]
        fn accepted_arguments_stay_as_they_are(written in kai_mutate::text(WRITTEN.map(str::to_owned).to_vec())) {
            check_fitting(&written);
        }

        #[test]
        fn every_call_has_a_result_that_can_be_read(written in kai_mutate::text(WRITTEN.map(str::to_owned).to_vec())) {
            check_result(&written);
        }
    }
}
