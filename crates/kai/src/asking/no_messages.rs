//! The store edition's twin of `messages.rs`: it has no such tools.

use kai_words::Lang;

use super::Words;

pub(super) fn words<'n>(_: &str, _: Lang) -> Option<Words<'n>> {
    None
}
