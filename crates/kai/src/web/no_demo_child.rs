//! The store edition's twin of `demo_child.rs`: there is no demo to start.

/// Nothing: this edition has no demo.
#[derive(Clone, Default)]
pub(super) struct DemoChild {}
