//! The store edition's twin of `messages.rs`: `kai status` says nothing about messages.

use crate::call::messages::{NotificationsPart, SmsPart};

pub(super) fn status(_: &SmsPart, _: &NotificationsPart) -> Vec<(String, String)> {
    vec![]
}
