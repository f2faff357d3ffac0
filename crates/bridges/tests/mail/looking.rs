//! What a look finds at servers that are slow, break off, or have an odd idea of their inbox.

use std::time::Duration;

use kai_assistant::email::account::Security;
use kai_assistant::email::port::{Look, MailServers, Mark, Trouble, Why};
use kai_bridges::mail::Limits;

use crate::desk::strangers;
use crate::liar::Act::{Hang, Hear, Say};
use crate::liar::{Act, Liar};
use crate::trouble::{at, short, then};

fn say(words: impl Into<String>) -> Act {
    let words: String = words.into();
    Say(words.leak())
}

/// Opens the inbox, with what the server says about the next number.
fn opened(exists: u32, next: Option<u32>) -> Act {
    let next = next.map(|next| format!("* OK [UIDNEXT {next}] x\r\n")).unwrap_or_default();
    say(format!("* {exists} EXISTS\r\n* OK [UIDVALIDITY 1] x\r\n{next}k2 OK done\r\n"))
}

/// What the server says about these mails in a list.
fn told(uids: impl IntoIterator<Item = u32>) -> String {
    let one = |uid: u32| {
        let subject = format!("Subject: mail {uid}\r\n\r\n");
        let length = subject.len();
        format!("* 1 FETCH (UID {uid} BODY[HEADER.FIELDS (SUBJECT)]<0> {{{length}}}\r\n{subject})\r\n")
    };
    uids.into_iter().map(one).collect()
}

fn uids(look: &Look) -> Vec<u32> {
    for mail in &look.mails {
        assert_eq!(mail.subject.as_written(), format!("mail {}", mail.uid));
    }
    look.mails.iter().map(|mail| mail.uid).collect()
}

const FROM: Mark = Mark { validity: 1, uid: 1 };

/// Looks for what came after the mark at a server that plays this script once signed in. Returns what it was told, too.
async fn look(
    limits: Limits,
    script: &[Act],
    mark: Mark,
    most: usize,
) -> (Result<Look, Trouble>, Vec<String>) {
    let liar = Liar::playing(then(script)).await;
    let look = strangers(limits).newer(&at(liar.port, Security::Plain), Some(mark), most).await;
    (look, liar.heard())
}

/// Opens an inbox in which a search finds the mails 2 to 13, and lists them like this.
fn twelve(listing: &[Act]) -> Vec<Act> {
    let found = Say("* SEARCH 2 3 4 5 6 7 8 9 10 11 12 13\r\nk3 OK done\r\n");
    let begin = [Hear, opened(13, Some(14)), Hear, found, Hear];
    begin.into_iter().chain(listing.iter().cloned()).collect()
}

/// The first ten are told, and the next are asked for.
fn ten() -> [Act; 2] {
    [say(told(2..=11) + "k4 OK done\r\n"), Hear]
}

#[tokio::test]
async fn a_search_result_in_several_lines_is_one() {
    let script = [
        Hear,
        opened(5, Some(7)),
        Hear,
        Say("* SEARCH 6 2\r\n* SEARCH 4 3 4\r\n* SEARCH\r\nk3 OK done\r\n"),
        Hear,
        say(told([4, 3, 2]) + "k4 OK done\r\n"),
        Hear,
    ];
    let (look, heard) = look(Limits::default(), &script, FROM, 3).await;
    let look = look.unwrap();
    assert_eq!((uids(&look), look.mark.uid, look.more), (vec![2, 3, 4], 4, true), "{heard:?}");
}

#[tokio::test]
async fn a_few_mails_are_asked_for_at_a_time() {
    let script = [&ten()[..], &[say(told(12..=13) + "k5 OK done\r\n"), Hear]].concat();
    let (look, heard) = look(Limits::default(), &twelve(&script), FROM, 50).await;
    let look = look.unwrap();
    assert_eq!(
        (uids(&look), look.mark.uid, look.more),
        ((2..=13).collect::<Vec<u32>>(), 13, false),
        "{heard:?}"
    );
    let fetches: Vec<&str> =
        heard.iter().filter_map(|line| line.split_once(" UID FETCH ")?.1.split(' ').next()).collect();
    assert_eq!(fetches, ["2:11", "12:13"]);
}

/// What has arrived before a trouble counts, so that every look gets further. The mark moves no further than the last
/// of it, so the next look begins with what is missing.
#[tokio::test]
async fn what_arrived_before_a_trouble_counts() {
    let second = |acts: &[Act]| [&ten()[..], acts].concat();
    for (name, listing, last) in [
        ("gone after the first ten", second(&[]), 11),
        ("silent after the first ten", second(&[Hang]), 11),
        ("sent away", second(&[Say("* BYE Maintenance\r\n")]), 11),
        ("another's answer", second(&[Say("k77 OK done\r\n"), Hang]), 11),
        (
            "gone after one more",
            second(&[say(told([12]) + "* 1 FETCH (UID 13 BODY[TEXT]<0> {9}\r\nabc")]),
            12,
        ),
        ("the last comes first", second(&[say(told([13]))]), 11),
        ("everything but the end", second(&[say(told([13, 12]))]), 13),
        ("a gigabyte", second(&[say(told([12]) + "* 1 FETCH (UID 13 BODY[TEXT]<0> {1073741824}\r\n")]), 11),
        ("gone among the first ten", vec![say(told(2..=4))], 4),
        ("silent among the first ten", vec![say(told([2])), Hang], 2),
    ] {
        let (look, heard) = look(short(), &twelve(&listing), FROM, 50).await;
        let look = look.unwrap_or_else(|trouble| panic!("{name}: {trouble} {heard:?}"));
        assert_eq!(
            (uids(&look), look.mark.uid),
            ((2..=last).collect::<Vec<u32>>(), last),
            "{name}: {heard:?}"
        );
        assert!(look.more, "{name}: the rest is asked for soon");
    }
}

#[tokio::test]
async fn a_trouble_before_the_first_mail_is_told() {
    for (name, listing, expected) in [
        ("gone", vec![], Why::Broken),
        ("silent", vec![Hang], Why::Silent),
        ("not the first", vec![say(told(3..=11))], Why::Broken),
        ("none of the first ten is there", vec![Say("k4 OK done\r\n"), Hear], Why::Broken),
    ] {
        let (look, heard) = look(short(), &twelve(&listing), FROM, 50).await;
        assert_eq!(look.unwrap_err().why, expected, "{name}: {heard:?}");
    }
}

/// However long each answer may take: whoever asked for the look does not wait for ever.
#[tokio::test]
async fn a_look_ends_in_time_with_what_it_has() {
    let limits = Limits { look: Duration::from_secs(2), ..Limits::default() };
    let script = twelve(&[&ten()[..], &[Hang]].concat());
    let ended = tokio::time::timeout(Duration::from_secs(20), look(limits, &script, FROM, 50)).await;
    let (look, heard) = ended.unwrap();
    let look = look.unwrap();
    assert_eq!(
        (uids(&look), look.mark.uid, look.more),
        ((2..=11).collect::<Vec<u32>>(), 11, true),
        "{heard:?}"
    );
}

/// The mark is 100. It moves only with mails, and goes back only if both the server and its mails say so.
#[tokio::test]
async fn a_number_that_is_only_claimed_moves_no_mark() {
    let last = |uid: u32| [say(format!("* 1 FETCH (UID {uid})\r\nk3 OK done\r\n")), Hear];
    let finds = |line: &'static str| [Say(line), Say("k3 OK done\r\n")];
    for (name, exists, next, then, expected) in [
        ("nothing new", 3, Some(101), None, 100),
        ("empty", 0, Some(101), None, 100),
        ("the last was deleted", 3, Some(103), Some(finds("* SEARCH 98\r\n")), 100),
        ("all were deleted", 0, Some(103), None, 100),
        ("far too high", 3, Some(u32::MAX), Some(finds("* SEARCH 100\r\n")), 100),
        ("not told, the last was deleted", 3, None, Some(last(98)), 100),
        ("not told, empty", 0, None, None, 100),
        ("no number", 3, Some(0), Some(last(98)), 100),
        ("restored", 3, Some(50), Some(last(49)), 49),
        ("restored, some deleted", 3, Some(50), Some(last(7)), 49),
        ("nothing there for a moment", 0, Some(1), None, 100),
        ("the next is the mark's", 3, Some(100), Some(last(99)), 99),
        ("its mails say otherwise", 3, Some(1), Some(last(100)), 100),
    ] {
        let rest = then.map(Vec::from).unwrap_or_default();
        let script = [&[Hear, opened(exists, next), Hear][..], &rest].concat();
        let (look, heard) = look(short(), &script, Mark { validity: 1, uid: 100 }, 50).await;
        let expected = Look { mark: Mark { validity: 1, uid: expected }, mails: vec![], more: false };
        assert_eq!(look, Ok(expected), "{name}: {heard:?}");
    }
}
