//! The store edition's twin of `messages.rs`: no tool reads messages, and there is no demo.

use std::sync::Arc;

use kai_assistant::clock::Clock;
use kai_assistant::toolbox::Entry;

use super::Parts;
use crate::app::Role;
use crate::machine::Machine;

/// The tools that draft, besides those of both editions: none.
pub(super) const DRAFTING: &[&str] = &[];

pub(super) fn tools(_: &Parts<'_>) -> Vec<Entry> {
    vec![]
}

pub(super) fn simulated(_: Role, _: &Arc<dyn Clock>) -> Machine {
    Machine::default()
}
