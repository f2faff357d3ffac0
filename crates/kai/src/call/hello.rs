//! The first line of a caller: who is there, and the call as a name and arguments.

use serde::{Deserialize, Serialize, Serializer, ser};
use serde_json::{Map, Value};

use super::Call;
use super::messages::MessagesCall;
use crate::caller_env::CallerEnv;

/// The version of the socket protocol. A daemon with another version says so instead of guessing.
pub(crate) const VERSION: u32 = 1;

/// What a caller sends first over the socket.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Line")]
pub(crate) struct Hello {
    /// Whether there is a person at a terminal who can be asked.
    pub(crate) tty: bool,
    pub(crate) env: CallerEnv,
    pub(crate) call: Call,
}

/// A [`Hello`] as it is written.
///
/// Serde could read a call whose name and arguments are beside each other, but would keep them in a form of its own
/// first. The code that reads calls would be in the program twice, for that form and for JSON.
#[derive(Serialize, Deserialize)]
struct Line {
    v: u32,
    tty: bool,
    #[serde(default)]
    around: CallerEnv,
    cmd: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    args: Value,
}

impl TryFrom<Line> for Hello {
    type Error = serde_json::Error;

    fn try_from(line: Line) -> Result<Self, Self::Error> {
        Ok(Self { tty: line.tty, env: line.around, call: read(line.cmd, line.args)? })
    }
}

impl Serialize for Hello {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let told = match &self.call {
            Call::Messages(call) => serde_json::to_value(call),
            call => serde_json::to_value(call),
        };
        let (cmd, args) = match told.map_err(ser::Error::custom)? {
            Value::Object(told) => told.into_iter().next().unwrap_or_default(),
            told => (told.as_str().unwrap_or_default().to_owned(), Value::Null),
        };
        Line { v: VERSION, tty: self.tty, around: self.env.clone(), cmd, args }.serialize(to)
    }
}

/// Reads a call from its name and its arguments, which are null if it has none.
pub(crate) fn read(cmd: String, args: Value) -> serde_json::Result<Call> {
    let of_foss = MessagesCall::NAMES.contains(&cmd.as_str());
    let told = if args.is_null() { Value::String(cmd) } else { Value::Object(Map::from_iter([(cmd, args)])) };
    if of_foss { MessagesCall::deserialize(told).map(Call::Messages) } else { Call::deserialize(told) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_line_is_as_the_protocol_says() {
        let call = Call::SettingsGet { key: "theme".to_owned() };
        let hello = Hello { tty: false, env: CallerEnv::default(), call: call.clone() };
        let line = serde_json::to_value(hello).unwrap();
        assert_eq!(
            line,
            json!({
                "v": 1, "tty": false, "around": {"locale": "", "keys": []}, "cmd": "settings_get", "args": {"key": "theme"},
            })
        );
        assert_eq!(serde_json::from_value::<Hello>(line).unwrap().call, call);
        let bare: Hello = serde_json::from_str(r#"{"v":1,"cmd":"status","tty":true}"#).unwrap();
        assert_eq!(bare.call, Call::Status);
    }

    #[test]
    fn what_is_no_call_is_refused() {
        for (cmd, args) in [
            ("fly", Value::Null),
            ("", Value::Null),
            ("settings_get", Value::Null),
            ("settings_get", json!({"key": 7})),
            ("status", json!({"key": "theme"})),
            ("messages", json!("sms")),
        ] {
            read(cmd.to_owned(), args).expect_err(cmd);
        }
    }
}
