//! A phone without a phone: Termux, as far as Kai sees it, is a folder of programs.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;

use kai_bridges::termux::Termux;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::kit::{Done, Home};
use crate::app::Role;
use crate::machine::{Machine, PhoneParts};

pub(super) const ALICE: &str = "+15550100";

/// Lists the whole inbox, as an old script does that knows no selection; Kai selects itself.
const LIST: &str = r#"case "$*" in *--help*) echo 'usage: termux-sms-list [-t type]'; exit 1;; *'-t sent'*) echo '[]';; *) cat "$DIR/inbox.json";; esac"#;
/// Notes the number and, byte for byte, the text.
const SEND: &str = r#"text=$(cat; echo x); printf '%s|%s\n' "$2" "${text%x}" >> "$DIR/left""#;

/// A home on a phone with SMS.
pub(super) struct Phone {
    pub(super) home: Home,
    programs: TempDir,
}

impl Phone {
    /// Nothing is in its inbox.
    pub(super) fn with_sms() -> Self {
        let programs = TempDir::new().unwrap();
        let termux = Arc::new(Termux::in_folder(programs.path().to_owned()));
        let parts = PhoneParts { bridge: "termux", reader: termux.clone(), sender: termux };
        let home = Home::on(Machine { phone: Some(parts), ..Machine::default() }, Role::Command);
        let phone = Self { home, programs };
        phone.program("termux-sms-list", LIST);
        phone.program("termux-sms-send", SEND);
        phone.inbox(&[]);
        phone
    }

    /// Written by another process, so that no fork of a neighbouring test holds it open when it is started.
    pub(super) fn program(&self, name: &str, script: &str) {
        let folder = self.programs.path();
        let mut writer = Command::new("sh")
            .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
            .arg(folder.join(name))
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let text = format!("#!/bin/sh\nDIR='{}'\n{script}\n", folder.display());
        writer.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(writer.wait().unwrap().success());
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
        std::fs::read_to_string(self.programs.path().join("left")).unwrap_or_default()
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
