//! The store edition's twin of `messages.rs`: `kai status` says nothing about messages.

use crate::call::messages::{NotificationsPart, PhonesPart, SmsPart};

pub(super) fn status(_: &SmsPart, _: &NotificationsPart, _: &PhonesPart) -> Vec<(String, String)> {
    vec![]
}
