//! The store edition's twin of `messages.rs`: it has no other parts.

use crate::web::messages::Label;
use crate::web::settings::Page;

pub(super) const FOUND: &[(Page, &str, Label, Label)] = &[];
