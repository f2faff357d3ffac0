//! What lists show of a mail, from what its server told. Pure.

use jiff::Timestamp;
use jiff::fmt::strtime;
use kai_assistant::email::port::{BEGINNING, Header};
use kai_assistant::untrusted::Untrusted;

use super::super::headers::Headers;
use super::super::mime::first_text;
use super::reply::Fetched;

/// What is asked about a mail in a list. Every piece is limited: a header of 10 MB is not fetched whole.
pub(super) const ITEMS: &str = "UID FLAGS INTERNALDATE \
    BODY.PEEK[HEADER.FIELDS (FROM)]<0.4096> BODY.PEEK[HEADER.FIELDS (SUBJECT)]<0.8192> \
    BODY.PEEK[HEADER.FIELDS (CONTENT-TYPE CONTENT-TRANSFER-ENCODING CONTENT-DISPOSITION LIST-UNSUBSCRIBE LIST-ID \
    PRECEDENCE AUTO-SUBMITTED)]<0.8192>";
/// What is asked besides for the beginning of its text.
pub(super) const BEGINS: &str = "BODY.PEEK[TEXT]<0.16384>";
/// What is always known.
pub(super) const LEAST: &str = "UID FLAGS INTERNALDATE";

/// The mail as a list shows it; `None` without its number.
pub(in crate::mail) fn listed(fetched: &Fetched<'_>) -> Option<Header> {
    let headers = headers(fetched);
    let body = fetched.section("TEXT").unwrap_or_default();
    let text = first_text(&headers, body);
    let headers = Headers::read(&headers);
    Some(Header {
        uid: fetched.uid?,
        from: headers.from(),
        subject: headers.subject(),
        received: fetched.received.as_deref().and_then(moment).unwrap_or(Timestamp::UNIX_EPOCH),
        beginning: beginning(&text),
        bulk: headers.is_bulk(),
        seen: fetched.seen,
    })
}

/// The headers that were fetched, in one block.
pub(in crate::mail) fn headers(fetched: &Fetched<'_>) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, bytes) in &fetched.sections {
        if name.get(..6).is_some_and(|name| name.eq_ignore_ascii_case("HEADER")) {
            block.extend_from_slice(bytes.trim_ascii_end());
            block.extend_from_slice(b"\r\n");
        }
    }
    block.extend_from_slice(b"\r\n");
    block
}

pub(in crate::mail) fn beginning(text: &str) -> Untrusted {
    Untrusted::new(text.chars().take(BEGINNING).collect::<String>())
}

/// A date such as `17-Jul-1996 02:44:25 -0700`. The day may begin with a blank.
fn moment(text: &str) -> Option<Timestamp> {
    let parsed = strtime::parse("%d-%b-%Y %H:%M:%S %z", text.trim()).ok()?;
    parsed.to_timestamp().ok()
}

#[cfg(test)]
mod tests {
    use super::super::reply::Reply;
    use super::*;

    #[test]
    fn dates_are_read() {
        for (text, expected) in [
            ("17-Jul-1996 02:44:25 -0700", Some("1996-07-17T09:44:25Z")),
            (" 7-Jul-1996 02:44:25 +0000", Some("1996-07-07T02:44:25Z")),
            ("01-Jan-1970 00:00:00 +0000", Some("1970-01-01T00:00:00Z")),
            ("01-Jan-2100 00:00:00 +0000", Some("2100-01-01T00:00:00Z")),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(moment(text), expected.map(|at| at.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn a_mail_without_anything_is_listed_by_its_number() {
        let Reply::Fetched(fetched) = Reply::read(b"* 1 FETCH (UID 9)\r\n") else { panic!() };
        let header = listed(&fetched).unwrap();
        assert_eq!((header.uid, header.received), (9, Timestamp::UNIX_EPOCH));
        let Reply::Fetched(nameless) = Reply::read(b"* 1 FETCH (FLAGS ())\r\n") else { panic!() };
        assert_eq!(listed(&nameless), None);
    }
}
