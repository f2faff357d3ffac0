//! One-time codes that were once shown to a model, and are not to be any more. Pure.

use kai_llm::Message;
use serde_json::Value;

use crate::codes;

/// What was said, without the codes in what tools brought and in what the model made of it. The person's own words stay.
pub(crate) fn without_codes(message: Message) -> Message {
    match message {
        Message::User { .. } => message,
        Message::Assistant { text, mut calls, signature } => {
            for call in &mut calls {
                call.arguments = of_json(&call.arguments);
            }
            Message::Assistant { text: codes::redact(&text), calls, signature }
        }
        Message::Tool { call, tool, result } => Message::Tool { call, tool, result: of_json(&result) },
    }
}

/// Each text alone, where no escape stands before a code; then all together, since one field may say what another is.
fn of_json(text: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(text) else { return codes::redact(text) };
    hide(&mut value);
    codes::redact(&value.to_string())
}

fn hide(value: &mut Value) {
    match value {
        Value::String(text) => *text = codes::redact(text),
        Value::Array(items) => items.iter_mut().for_each(hide),
        Value::Object(fields) => fields.values_mut().for_each(hide),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use kai_llm::{CallId, ToolCall};

    use super::*;

    #[test]
    fn codes_go_from_results_calls_and_answers_but_not_from_what_the_person_said() {
        let call = || CallId("1".to_owned());
        let read =
            serde_json::json!({"from": "+15550100", "body": "Hi\n482913 is your login code"}).to_string();
        let drafted = serde_json::json!({"to": "+15550100", "body": "My login code is 482913"}).to_string();
        let calls =
            vec![ToolCall { id: call(), name: "send_sms".to_owned(), arguments: drafted, signature: None }];
        let said = [
            Message::Tool { call: call(), tool: "read_sms".to_owned(), result: read },
            Message::Assistant { text: "Your login code is 482913.".to_owned(), calls, signature: None },
            Message::Tool {
                call: call(),
                tool: "t".to_owned(),
                result: "login code: 482913 [cut".to_owned(),
            },
        ];
        for message in said {
            let hidden = serde_json::to_string(&without_codes(message)).unwrap();
            assert!(!hidden.contains("482913") && hidden.contains("[code]"), "{hidden}");
        }
        let mine = Message::User { text: "Is my login code 482913?".to_owned() };
        assert_eq!(without_codes(mine.clone()), mine);
    }
}
