//! Keeps the floors of the house: who may know whom. Reads the `use` lines and the manifests, so a wrong
//! import fails here before anyone has to argue about it.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::fs;
use std::path::{Path, PathBuf};

/// From the ground up: a module may use what stands before it, and nothing after it. Features stand on one
/// floor and do not know each other.
const FLOORS: &[&[&str]] = &[
    &["hex", "lock", "manifest", "legible", "moment", "secret"],
    &["access", "clock", "source", "indexed"],
    &["untrusted"],
    &["gate"],
    &["home"],
    &["db"],
    &["phones", "terms"],
    &["settings", "ledger", "lease", "pending"],
    &["guests"],
    &["outbox"],
    &["tool"],
    &["inbox"],
    &[
        "attachments",
        "mcp",
        "memory",
        "device",
        "models",
        "web",
        "sms",
        "notifications",
        "tasks",
        "email",
        "drafts",
    ],
    &["toolbox"],
    &["agent"],
    &["heartbeat"],
    &["errands"],
    &["transfer"],
];
/// Files that decide without looking: no waiting, no store, no clock.
const PURE: &[&str] = &[
    "tool/schema.rs",
    "tool/eyes.rs",
    "settings/mod.rs",
    "manifest.rs",
    "gate.rs",
    "guests/rules.rs",
    "inbox/place.rs",
    "legible.rs",
    "untrusted.rs",
    "outbox/address.rs",
    "outbox/body.rs",
    "outbox/edit.rs",
    "outbox/mail.rs",
    "outbox/number.rs",
    "outbox/reasons.rs",
    "outbox/remarks.rs",
    "outbox/route.rs",
    "outbox/segments.rs",
    "sms/archive/words.rs",
    "sms/due.rs",
    "sms/fill.rs",
    "sms/mark.rs",
    "sms/search.rs",
    "email/due.rs",
    "email/presets.rs",
    "email/reply.rs",
    "email/search.rs",
    "email/seen.rs",
    "errands/prompt.rs",
    "heartbeat/digest.rs",
    "heartbeat/due.rs",
    "heartbeat/prompt.rs",
    "heartbeat/triage/mod.rs",
    "heartbeat/triage/words.rs",
    "device/ics.rs",
    "device/when.rs",
    "moment.rs",
    "tasks/cron.rs",
    "tasks/describe.rs",
    "tasks/due.rs",
    "notifications/filter.rs",
    "notifications/record.rs",
    "notifications/view.rs",
    "web/encoding.rs",
    "web/guard.rs",
    "web/html.rs",
    "web/readable.rs",
    "web/results.rs",
    "attachments/name.rs",
    "attachments/picture.rs",
    "attachments/sent.rs",
    "attachments/text.rs",
    "mcp/finding.rs",
    "mcp/naming.rs",
    "mcp/text.rs",
    "models/vision.rs",
    "agent/cause.rs",
    "agent/continued.rs",
    "agent/turn.rs",
    "agent/prompt.rs",
    "agent/fallback.rs",
    "agent/fitting.rs",
    "agent/likely.rs",
    "agent/small/mod.rs",
    "agent/small/sets.rs",
    "agent/small/short.rs",
    "agent/unseen.rs",
    "agent/meanings.rs",
    "agent/older.rs",
    "device/alarm/due.rs",
];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

fn floor(module: &str) -> usize {
    let found = FLOORS.iter().position(|floor| floor.contains(&module));
    found.unwrap_or_else(|| panic!("{module} has no floor: give it one in tests/floors.rs"))
}

/// The part of a file that is not its tests.
fn code(path: &Path) -> String {
    if path.ends_with("tests.rs") || path.ends_with("fuzz.rs") {
        return String::new();
    }
    let text = fs::read_to_string(path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let opens_tests = |from: usize| {
        let item = lines[from..].iter().find(|line| !line.starts_with("#["));
        item.is_some_and(|line| line.ends_with('{') && (line.contains("mod ") || line.starts_with("impl ")))
    };
    let end = (0..lines.len()).find(|at| lines[*at].starts_with("#[cfg(test)]") && opens_tests(*at));
    lines[..end.unwrap_or(lines.len())].join("\n")
}

#[test]
fn modules_use_only_the_floors_below() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for file in sources(&root).iter().filter(|file| !file.ends_with("lib.rs")) {
        let own = file.strip_prefix(&root).unwrap().iter().next().unwrap().to_str().unwrap();
        let own = own.trim_end_matches(".rs");
        for (at, _) in code(file).match_indices("crate::") {
            let used: String =
                code(file)[at + 7..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let allowed = used == own || floor(&used) < floor(own);
            assert!(allowed, "{} uses {used}, which does not stand below {own}", file.display());
        }
    }
}

#[test]
fn pure_files_stay_pure() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let codes = sources(&root.join("../../codes/src"));
    assert!(!codes.is_empty());
    for file in PURE.iter().map(|file| root.join(file)).chain(codes) {
        let (text, file) = (code(&file), file.display());
        for word in ["async ", ".await", "clock::", "Timestamp::now", "Transaction", "rusqlite", "crate::db"]
        {
            assert!(!text.contains(word), "{file} is pure and must not contain {word:?}");
        }
    }
}

#[test]
fn crates_know_only_the_crates_below() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let below: &[(&str, &[&str])] = &[
        (
            "codes",
            &["kai-llm", "kai-assistant", "kai-bridges", "rusqlite", "axum", "zbus", "tokio", "reqwest"],
        ),
        ("llm", &["kai-codes", "kai-assistant", "kai-bridges", "rusqlite", "axum", "zbus"]),
        ("local", &["kai-codes", "kai-assistant", "kai-bridges", "kai-words", "rusqlite", "axum", "zbus"]),
        ("assistant", &["kai-bridges", "kai-local", "axum", "zbus", "clap"]),
        ("bridges", &["axum", "clap", "rusqlite"]),
    ];
    for (name, forbidden) in below {
        let manifest = fs::read_to_string(crates.join(name).join("Cargo.toml")).unwrap();
        for other in *forbidden {
            let own = manifest.split("[dev-dependencies]").next().unwrap();
            let depends = own.lines().any(|line| line.split(['.', ' ', '=']).next() == Some(other));
            assert!(!depends, "crates/{name} must not depend on {other}");
        }
        let platform = sources(&crates.join(name).join("src")).iter().any(|f| code(f).contains("target_os"));
        assert!(
            !platform || *name == "bridges",
            "only bridges and the binary know their platform, not {name}"
        );
    }
}

/// Who may say so: the door makes approvals, bridges take them, and only where everything is put together does a sender
/// meet the door. A tool that could reach either would be a second way out.
#[test]
fn nothing_but_the_door_and_the_bridges_knows_of_approvals_and_senders() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let allowed: &[(&str, &[&str])] = &[
        (
            "Approved",
            &[
                "assistant/src/outbox/door/",
                "assistant/src/outbox/mod.rs",
                // What mail servers take, and what passes on to them what the door approved.
                "assistant/src/email/port.rs",
                "assistant/src/email/post.rs",
                "bridges/src/",
            ],
        ),
        // The trait alone: `Senders` says who could send, and gives nobody's sender away.
        ("door::Sender;", &["bridges/src/", "kai/src/machine/messages.rs"]),
        (
            "dyn Sender",
            &["assistant/src/outbox/door/", "kai/src/machine/messages.rs", "kai/src/phones/drivers.rs"],
        ),
        // What makes a paired phone send or answer is written by its bridge alone.
        ("Packet::", &["bridges/src/", "kai/src/phones/tests.rs"]),
        // Whoever can tap: commands and the page, through one file; and the room where it is built.
        (
            "Door",
            &[
                "assistant/src/outbox/door/",
                "kai/src/app/messages.rs",
                "kai/src/app/no_messages.rs",
                "kai/src/app/mod.rs",
                "kai/src/wire/mod.rs",
            ],
        ),
        // A door for tests: no real Kai fetches pages of its own machine.
        ("with_stand_ins", &["assistant/src/web/client.rs"]),
        // Nor does one download models from it.
        ("on_loopback", &["local/src/fetch"]),
        (
            "Tap { draft: ",
            &["assistant/src/outbox/door/", "assistant/src/ledger/mod.rs", "kai/src/commands/drafts/mod.rs"],
        ),
    ];
    for (word, files) in allowed {
        for name in ["codes", "llm", "local", "assistant", "bridges", "kai"] {
            for file in sources(&crates.join(name).join("src")) {
                let path = file.strip_prefix(&crates).unwrap().to_str().unwrap().to_owned();
                let says = code(&file)
                    .lines()
                    .any(|line| !line.trim_start().starts_with("//") && line.contains(word));
                let may = files.iter().any(|allowed| path.starts_with(allowed));
                assert!(!says || may, "{path} speaks of {word}");
            }
        }
    }
}
