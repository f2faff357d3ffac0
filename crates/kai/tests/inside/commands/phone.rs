//! A phone without a phone: Termux, as far as Kai sees it, is a folder of programs.

use std::sync::Arc;

use kai_bridges::termux::Termux;
use serde_json::{Value, json};

use super::kit::{Done, Home, Programs};
use crate::app::Role;
use crate::machine::Machine;
use crate::machine::messages::{Messages, PhoneParts};

pub(super) const ALICE: &str = "+15550100";

/// Lists the whole inbox, as an old script does that knows no selection; Kai selects itself.
const LIST: &str = r#"case "$*" in *--help*) echo 'usage: termux-sms-list [-t type]'; exit 1;; *'-t sent'*) echo '[]';; *) cat "$DIR/inbox.json";; esac"#;
/// Notes the number and, byte for byte, the text.
const SEND: &str = r#"text=$(cat; echo x); printf '%s|%s\n' "$2" "${text%x}" >> "$DIR/left""#;

/// A home on a phone with SMS.
pub(super) struct Phone {
    pub(super) home: Home,
    programs: Programs,
}

impl Phone {
    /// Nothing is in its inbox.
    pub(super) fn with_sms() -> Self {
        let programs = Programs::new(&[("termux-sms-list", LIST), ("termux-sms-send", SEND)]);
        let termux = Arc::new(Termux::in_folder(programs.path().to_owned()));
        let parts = PhoneParts { bridge: "termux", reader: termux.clone(), sender: termux };
        let messages = Messages { phone: Some(parts), ..Messages::default() };
        let home = Home::on(Machine { messages, ..Machine::default() }, Role::Command);
        let phone = Self { home, programs };
        phone.inbox(&[]);
        phone
    }

    pub(super) fn program(&self, name: &str, script: &str) {
        self.programs.write(name, script);
    }

    /// What lies in the inbox: id, sender, text; received in that order, a second apart.
    pub(super) fn inbox(&self, messages: &[(i64, &str, &str)]) {
        let row = |(n, (id, from, text)): (usize, &(i64, &str, &str))| {
            json!({"_id": id, "type": "inbox", "read": false, "address": from, "number": from, "threadid": 1,
                   "received": format!("2026-03-09 12:{:02}:{:02}", n / 60, n % 60), "body": text})
        };
        let rows: Vec<Value> = messages.iter().enumerate().map(row).collect();
        std::fs::write(self.programs.path().join("inbox.json"), Value::from(rows).to_string()).unwrap();
    }

    /// What `termux-sms-send` was given: `number|text` and a line end each.
    pub(super) fn left(&self) -> String {
        self.programs.read("left")
    }

    pub(super) fn run(&self, words: &[&str]) -> Done {
        self.home.run(words)
    }
}

/// A phone that reads and drafts, with one message that was there before.
pub(super) fn ready() -> Phone {
    let phone = Phone::with_sms();
    phone.inbox(&[(41, ALICE, "before")]);
    assert_eq!(phone.run(&["settings", "set", "sms_enabled", "true"]).out, "sms_enabled = true\n");
    assert_eq!(phone.run(&["settings", "set", "sms_send_enabled", "true"]).code, 0);
    phone
}

pub(super) fn draft(phone: &Phone, to: &str, body: &str) -> i64 {
    let arguments = json!({"to": to, "body": body}).to_string();
    phone.run(&["tools", "call", "send_sms", &arguments]).json()["draft_id"].as_i64().unwrap()
}
