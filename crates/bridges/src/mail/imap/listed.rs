//! What lists show of a mail, from what its server told. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::fmt::strtime;
use kai_assistant::email::port::{BEGINNING, Header, Why};
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

/// The mails of a list, as they arrive.
#[derive(Debug, Default)]
pub(super) struct Listing {
    known: BTreeMap<u32, Header>,
    /// About so many of the mails that are asked about, the server has said all that it can.
    told: usize,
}

impl Listing {
    pub(super) fn add(&mut self, header: Header) {
        self.known.entry(header.uid).or_insert(header);
    }

    pub(super) fn has(&self, uid: u32) -> bool {
        self.known.contains_key(&uid)
    }

    /// Notes that the server has said all that it can about the next mails, so many of them.
    pub(super) fn told(&mut self, count: usize) {
        self.told += count;
    }

    /// The mails in their order.
    pub(super) fn all(self) -> Vec<Header> {
        self.known.into_values().collect()
    }

    /// The mails in their order that came before the trouble: none after the first that is missing, because a mark
    /// would move over that one. Of an answer that makes no sense, nothing counts.
    pub(super) fn before(mut self, why: &Why, uids: &[u32]) -> Vec<Header> {
        let asked = uids.get(self.told..).unwrap_or_default();
        let missing =
            if *why == Why::Nonsense { asked.first() } else { asked.iter().find(|uid| !self.has(**uid)) };
        if let Some(missing) = missing {
            self.known.retain(|uid, _| uid < missing);
        }
        self.all()
    }
}

/// The headers that were fetched, in one block. What a mail does not have comes as an empty line, which would end the
/// block before the headers after it.
pub(in crate::mail) fn headers(fetched: &Fetched<'_>) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, bytes) in &fetched.sections {
        let (is_header, bytes) =
            (name.get(..6).is_some_and(|name| name.eq_ignore_ascii_case("HEADER")), bytes.trim_ascii());
        if is_header && !bytes.is_empty() {
            block.extend_from_slice(bytes);
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
    fn what_came_before_a_trouble_counts_up_to_the_first_that_is_missing() {
        for (name, told, arrived, why, expected) in [
            ("nothing", 0, vec![], Why::Broken, vec![]),
            ("in order", 0, vec![2, 3], Why::Silent, vec![2, 3]),
            ("with a gap", 0, vec![8, 5, 2], Why::Broken, vec![2]),
            ("not the first", 0, vec![3, 5], Why::Broken, vec![]),
            ("one that is gone", 2, vec![2, 5], Why::Broken, vec![2, 5]),
            ("makes no sense", 2, vec![2, 3, 5], Why::Nonsense, vec![2, 3]),
            ("makes no sense at once", 0, vec![2, 3, 5], Why::Nonsense, vec![]),
            ("only the end is missing", 0, vec![2, 3, 5, 8], Why::Silent, vec![2, 3, 5, 8]),
            ("told about all", 4, vec![2, 8], Why::Silent, vec![2, 8]),
        ] {
            let mut listing = Listing::default();
            listing.told(told);
            for uid in arrived {
                let line = format!("* 1 FETCH (UID {uid})\r\n");
                let Reply::Fetched(fetched) = Reply::read(line.as_bytes()) else { panic!() };
                listing.add(listed(&fetched).unwrap());
            }
            let mails = listing.before(&why, &[2, 3, 5, 8]);
            let uids: Vec<u32> = mails.iter().map(|mail| mail.uid).collect();
            assert_eq!(uids, expected, "{name}");
        }
    }

    #[test]
    fn a_header_that_is_missing_takes_no_other_along() {
        let none = "{2}\r\n\r\n";
        let reply = format!(
            "* 1 FETCH (UID 9 BODY[HEADER.FIELDS (FROM)]<0> {none} BODY[HEADER.FIELDS (SUBJECT)]<0> {{12}}\r\nSubject: A\r\n \
             BODY[HEADER.FIELDS (DATE)] {none} BODY[HEADER.FIELDS (CONTENT-TYPE)]<0> {{27}}\r\nContent-Type: text/html\r\n\r\n \
             BODY[TEXT]<0> {{8}}\r\n<b>B</b>)\r\n"
        );
        let Reply::Fetched(fetched) = Reply::read(reply.as_bytes()) else { panic!() };
        let header = listed(&fetched).unwrap();
        assert_eq!((header.subject.as_written(), header.beginning.as_written()), ("A", "B"));
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
