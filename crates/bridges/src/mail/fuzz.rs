//! Tests the reading of what mail servers and strangers send with mutated examples, and the writing of mails with hostile
//! fields.

#![expect(clippy::unwrap_used, reason = "a check may fail loudly")]

use kai_assistant::email::port::{BEGINNING, Mailbox};
use kai_assistant::outbox::mail::{Envelope, Mail};
use kai_assistant::untrusted::Untrusted;
use mail_parser::MessageParser;

use super::compose::{Readers, compose};
use super::headers::{Headers, decoded, file_name};
use super::imap::{Contents, Reply, listed};
use super::mime::first_text;
use super::sign_in::token;
use super::smtp::Spoken;

/// Checks that any bytes are a reply of an IMAP server or none, and that a mail in one is bounded.
pub fn imap(bytes: &[u8]) {
    let Reply::Fetched(fetched) = Reply::read(bytes) else { return };
    if let Some(contents) = fetched.structure.as_ref().map(Contents::read) {
        assert!(contents.texts.len() <= 20 && contents.attachments.len() <= 200);
        for attachment in contents.attachments {
            is_line(&attachment.name, 200);
            assert!(attachment.kind.as_written().chars().count() <= 100);
        }
    }
    let Some(header) = listed(&fetched) else { return };
    assert_eq!(Some(header.uid), fetched.uid);
    assert!(header.beginning.as_written().chars().count() <= BEGINNING);
    is_line(&header.subject, 1_000);
    is_mailbox(&header.from);
}

/// Checks that any line is one of a reply of an SMTP server or none.
pub fn smtp(line: &[u8]) {
    if let Some(spoken) = Spoken::read(line) {
        assert!((200..600).contains(&spoken.code) && spoken.words.len() <= line.len() * 3);
        assert!(spoken.is_last || line[3] == b'-');
    }
}

/// Checks that any bytes have headers and a text, which may be empty.
pub fn message(bytes: &[u8]) {
    let headers = Headers::read(bytes);
    is_mailbox(&headers.from());
    for list in [headers.to(), headers.cc(), headers.reply_to()] {
        assert!(list.len() <= 100);
        list.iter().for_each(is_mailbox);
    }
    is_line(&headers.subject(), 1_000);
    let ids: Vec<Untrusted> = headers.references().into_iter().chain(headers.message_id()).collect();
    assert!(ids.len() <= 101);
    for id in &ids {
        is_line(id, 1_000);
    }
    let _ = (headers.written(), headers.is_bulk());
    for at in [0, bytes.len() / 2, bytes.len()] {
        let (head, body) = bytes.split_at(at);
        assert!(!first_text(head, body).contains(['\0', '\r']), "texts are clean");
    }
    let text = String::from_utf8_lossy(bytes);
    let _ = (decoded(&text), token(&text).inspect(|token| assert!(token.is_ascii())));
    if let Some(name) = file_name(&[("filename*".to_owned(), text.clone().into_owned())]) {
        is_line(&Untrusted::new(name), 200);
    }
    let _ = file_name(&[("filename*0*".to_owned(), text.clone().into()), ("name".to_owned(), text.into())]);
}

/// Checks that a mail is refused, or says what it was made of and nothing else. The bytes are its fields, which the byte
/// 0x1f separates.
pub fn compose_fields(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut fields = text.split('\u{1f}').map(str::to_owned);
    let mut next = || fields.next().unwrap_or_default();
    let envelope = Envelope {
        from: format!("me{}@example.org", next()),
        cc: vec![format!("cc{}@example.org", next())],
        bcc: vec!["hidden@example.org".to_owned()],
        subject: next(),
        message_id: format!("id{}@example.org", next()),
        in_reply_to: Some(next()),
        references: vec![next()],
        quote: None,
    };
    let mail = Mail { to: vec!["you@example.org".to_owned()], envelope, text: next(), date: 0 };
    let Ok(composed) = compose(&mail, Readers::Recipients) else { return };
    assert!(composed.bytes.is_ascii(), "servers understand it");
    let read = MessageParser::default().parse(&composed.bytes).unwrap();
    let known =
        ["From", "To", "Cc", "Subject", "Date", "Message-ID", "In-Reply-To", "References", "MIME-Version"];
    for header in read.headers() {
        let name = header.name().to_ascii_lowercase();
        assert!(
            name.starts_with("content-") || known.iter().any(|one| name.eq_ignore_ascii_case(one)),
            "{name}"
        );
    }
    let lines = composed.bytes.split(|byte| *byte == b'\n');
    assert!(lines.clone().all(|line| line.len() <= 998), "no server breaks a line");
    assert!(!lines.clone().any(|line| line == b".\r"), "nothing ends the mail early");
    assert_eq!(compose(&mail, Readers::Recipients).unwrap(), composed, "every attempt sends the same");
}

fn is_mailbox(mailbox: &Mailbox) {
    is_line(&mailbox.name, 200);
    is_line(&mailbox.address, 320);
}

fn is_line(text: &Untrusted, longest: usize) {
    assert!(text.as_written().chars().count() <= longest, "too long");
    assert!(!text.as_written().contains(char::is_control), "control characters");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const REPLIES: [&str; 9] = [
        "* 12 FETCH (FLAGS (\\Seen) UID 7 RFC822.SIZE 4 INTERNALDATE \"17-Jul-1996 02:44:25 -0700\" BODY[HEADER.FIELDS \
         (\"FROM\")]<0> {13}\r\nFrom: a@b.c\r\n BODY[TEXT]<0> {5}\r\nHello)\r\n",
        "* 1 FETCH (UID 1 BODYSTRUCTURE ((\"text\" \"plain\" (\"charset\" \"utf-8\") NIL NIL \"7bit\" 12 1 NIL NIL NIL \
         NIL)(\"application\" \"pdf\" (\"name\" \"a.pdf\") NIL NIL \"base64\" 78 NIL (\"attachment\" (\"filename*\" \
         \"utf-8''%C3%A4\")) NIL) \"mixed\" (\"boundary\" \"b\") NIL NIL))\r\n",
        "* 1 FETCH (UID 1 BODYSTRUCTURE (\"message\" \"rfc822\" NIL NIL NIL \"7bit\" 5 (NIL \"=?utf-8?q?x?=\" NIL NIL \
         NIL NIL NIL NIL NIL NIL) (\"text\" \"plain\" NIL NIL NIL \"7bit\" 5 1) 12))\r\n",
        "* OK [CAPABILITY IMAP4rev1 STARTTLS AUTH=PLAIN] Ready.\r\n",
        "* LIST (\\Sent) \"/\" {8}\r\nGesendet\r\n",
        "* SEARCH 1 2 3\r\n",
        "* NAMESPACE ((\"INBOX.\" \".\")) NIL NIL\r\n",
        "k1 NO [AUTHENTICATIONFAILED] no\r\n",
        "250-SIZE 1000\r\n",
    ];
    const MAILS: [&str; 4] = [
        "From: =?utf-8?q?J=C3=B6rg?= <j@x.test>\r\nTo: A <a@x.test>, Team: b@x.test;\r\nSubject: =?Shift_JIS?B?grGC8Q==?=\r\n\
         Date: Tue, 1 Jul 2025 10:00:00 +0200\r\nMessage-ID: <i@x>\r\nReferences: <a@x> <b@y>\r\n\r\nHello\r\n",
        "Content-Type: multipart/alternative; boundary=\"b\"\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nHello\r\n--b\r\n\
         Content-Type: text/html; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n<p>Gr=FC=DFe\r\n--b--\r\n",
        "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\
         Content-Transfer-Encoding: base64\r\n\r\nR3LDvMOfZQ==\r\n--c--\r\n--b\r\nContent-Type: message/rfc822\r\n\r\nSubject: x\r\n",
        "List-Unsubscribe: <mailto:x@y>\r\nPrecedence: bulk\r\nAuto-Submitted: no\r\n\r\n",
    ];
    const FIELDS: [&str; 2] = [
        "\u{1f}\u{1f}Grüße\u{1f}1\u{1f}a@x\u{1f}b@y\u{1f}Hello\n.\nFrom me",
        "a\r\nBcc: x\u{1f}>\u{1f}a\nb\u{1f} \u{1f}<x>\u{1f}y\u{1f}こんにちは",
    ];

    fn bytes(examples: &[&str]) -> Vec<Vec<u8>> {
        examples.iter().map(|example| example.as_bytes().to_vec()).collect()
    }

    proptest! {
        #[test]
        fn whatever_a_reading_server_says_is_a_reply_or_none(reply in kai_mutate::bytes(bytes(&REPLIES))) {
            imap(&reply);
        }

        #[test]
        fn whatever_a_sending_server_says_is_a_reply_or_none(line in kai_mutate::bytes(bytes(&REPLIES))) {
            smtp(&line);
        }

        #[test]
        fn whatever_a_stranger_sends_is_a_mail(mail in kai_mutate::bytes(bytes(&MAILS))) {
            message(&mail);
        }

        #[test]
        fn whatever_is_written_says_nothing_else(fields in kai_mutate::bytes(bytes(&FIELDS))) {
            compose_fields(&fields);
        }
    }
}
