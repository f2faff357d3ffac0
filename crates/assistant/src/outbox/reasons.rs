//! Which reasons for the status of a draft are Kai's own. Every other reason has words that a phone or a server
//! chose. Pure.

use kai_words::{Said, said};

const OURS: [fn() -> Said; 14] = [
    said::draft_reason_found,
    said::draft_reason_died,
    said::draft_reason_died_mail,
    said::draft_reason_cut_off_mail,
    said::draft_reason_no_account,
    said::draft_reason_no_answer_mail,
    said::draft_reason_gone,
    said::draft_reason_other_chat,
    said::draft_reason_used,
    said::draft_reason_busy,
    said::draft_reason_cut_off,
    said::draft_reason_not_seen,
    said::draft_reason_phone_failed,
    said::draft_reason_sending_off,
];

/// How older versions said some of them. They stored the text.
const OLDER: [&str; 3] = [
    "Kai stopped while sending it. It may have been sent.",
    "The connection broke while Kai handed it to the phone. It may have been sent: check the phone.",
    "The phone did not list it within a minute. It may have been sent: check the phone.",
];

/// Whether Kai itself gave this reason, so that nobody else can have chosen its words.
pub(super) fn is_ours(reason: &Said) -> bool {
    let text = reason.to_string();
    OURS.iter().any(|own| own().to_string() == text) || OLDER.contains(&text.as_str())
}
