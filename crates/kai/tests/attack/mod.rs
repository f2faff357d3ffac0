//! Kai under attack, with its real wiring: Termux's programs played by scripts that note what they were told, a model that
//! does what the attacker wants, and an internet that is one server on loopback.
//!
//! Two numbers are kept apart. [`tools`]: what a model that has been won over can do. [`texts`]: what a text can do to the
//! prompts and pages it gets into. Each counter is also shown something broken, to see that it counts. Both are tried
//! again with a paired phone in an attacker's hands ([`pocket`]), with a mailbox to which the attacker writes ([`post`]; the
//! texts are in [`mail_texts`], written by [`letters`]), and with an MCP server that lies ([`liar`]; its texts are in [`server_texts`]).
//!
//! The tests take our own texts. `scripts/attack` takes public collections as well, through `KAI_ATTACK_TEXTS`, a file with
//! one JSON string a line.
//!
//! It is a module of the binary (`main.rs` includes it), because a binary's rooms cannot be entered from outside.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod counts;
mod house;
mod letters;
mod liar;
mod mail_texts;
mod pocket;
mod post;
mod server_texts;
mod texts;
mod tools;
