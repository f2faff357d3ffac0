//! Which messages a request holds. Pure: read from the results of the tools that tell them, so that "who saw it?" has an
//! exact answer.

use kai_llm::{CallId, Message};
use serde_json::Value;

/// The identities of all messages that the results in `sent` tell. `all` holds the same results whole: what was fitted
/// into a window may be cut, and then counts as if it had been told whole.
pub(super) fn mentions(all: &[Message], sent: &[Message]) -> Vec<String> {
    let there = |wanted: &CallId| {
        sent.iter().any(|message| matches!(message, Message::Tool { call, .. } if call == wanted))
    };
    let mut seen: Vec<String> = all
        .iter()
        .filter_map(|message| match message {
            Message::Tool { call, tool, result } if there(call) => Some(told(tool, result)),
            _ => None,
        })
        .flatten()
        .collect();
    seen.sort_unstable();
    seen.dedup();
    seen
}

#[cfg_attr(
    not(any(feature = "sms", feature = "notifications")),
    expect(unused_variables, reason = "no tool tells messages")
)]
fn told(tool: &str, result: &str) -> Vec<String> {
    let result: Value = serde_json::from_str(result).unwrap_or_default();
    match tool {
        #[cfg(feature = "sms")]
        "check_sms" | "search_sms" => each(&result["messages"], sms),
        #[cfg(feature = "sms")]
        "read_sms" => sms(&result).into_iter().collect(),
        #[cfg(feature = "notifications")]
        "check_notifications" | "search_notifications" => each(&result["notifications"], notification),
        #[cfg(feature = "notifications")]
        "read_notification" => notification(&result).into_iter().collect(),
        _ => vec![],
    }
}

#[cfg(any(feature = "sms", feature = "notifications"))]
fn each(list: &Value, identity: fn(&Value) -> Option<String>) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(identity).collect()
}

/// Ids are re-used, so date and sender belong to it.
#[cfg(feature = "sms")]
fn sms(told: &Value) -> Option<String> {
    let (id, date, from) = (told["id"].as_i64()?, told["date"].as_i64()?, told["from"].as_str()?);
    Some(crate::sms::identity_name(id, date, from))
}

#[cfg(feature = "notifications")]
fn notification(told: &Value) -> Option<String> {
    Some(format!("notification {}", told["id"].as_str()?))
}

#[cfg(all(test, feature = "sms", feature = "notifications"))]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(call: &str, tool: &str, result: &Value) -> Message {
        Message::Tool { call: CallId(call.to_owned()), tool: tool.to_owned(), result: result.to_string() }
    }

    #[test]
    fn what_was_told_is_named() {
        let sms = |id: i64| json!({"id": id, "date": 1, "from": "+1"});
        let all = [
            Message::User { text: "read sms 99".to_owned() },
            result("a", "check_sms", &json!({"messages": [sms(1), sms(2)]})),
            result("b", "read_sms", &sms(2)),
            result("c", "read_sms", &sms(3)),
            result("d", "check_notifications", &json!({"notifications": [{"id": "0|x"}]})),
            result("e", "read_notification", &json!({"id": "0|y"})),
            result("f", "web_search", &json!({"id": 5})),
            result("g", "read_sms", &json!({"success": false, "error": "no"})),
        ];
        let sent: Vec<Message> = all
            .iter()
            .filter(|m| !matches!(m, Message::Tool { call, .. } if call.0 == "c"))
            .cloned()
            .collect();
        assert_eq!(
            mentions(&all, &sent),
            ["notification 0|x", "notification 0|y", "sms 1 1 +1", "sms 2 1 +1"]
        );
        assert!(mentions(&all, &[]).is_empty());
    }
}
