//! The parts of the settings that only the foss edition has.

use kai_words::Lang;

use crate::web::messages::Label;
use crate::web::settings::Page;

pub(super) const FOUND: &[(Page, &str, Label, Label)] = &[
    (Page::Agent, "sms", Lang::sms_label, Lang::found_by_messages),
    (Page::Agent, "notifications", Lang::notifications_label, Lang::found_by_notifications),
    (Page::Phones, "paired", Lang::paired_label, Lang::found_by_paired),
    (Page::Phones, "pair", Lang::pairing_label, Lang::found_by_pair),
];
