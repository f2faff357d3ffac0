//! The store edition's twin of `messages.rs`: it has no such tools.

pub(super) fn words<'n>(_: &str) -> Option<(String, Vec<&'n str>, &'static str)> {
    None
}
