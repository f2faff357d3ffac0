//! Tests every behaviour of the simulated phone, through its ports where possible.

use std::time::Duration;

use jiff::SignedDuration;
use kai_assistant::clock::ManualClock;

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn phone() -> Phone {
    Phone::new(Arc::new(ManualClock::at(at(0))))
}

/// A phone with one message for each date, with ids from 1.
fn received(dates: &[i64]) -> Phone {
    let phone = phone();
    for date in dates {
        phone.receive("+15550100", &format!("of {date}"), at(*date));
    }
    phone
}

fn ids(read: Result<Vec<Sms>, ReadError>) -> Vec<i64> {
    read.unwrap().iter().map(|sms| sms.id.0).collect()
}

async fn never<T>(future: impl Future<Output = T>) -> bool {
    tokio::time::timeout(Duration::from_millis(50), future).await.is_err()
}

#[tokio::test]
async fn what_arrives_is_there_as_it_came() {
    let phone = phone();
    assert_eq!(phone.last().await, Ok(None));
    let id = phone.receive("+15550100", "a \"b\"\n😀\0", at(7));
    let expected = Sms {
        id: SmsId(1),
        address: Untrusted::new("+15550100"),
        date: at(7),
        body: Untrusted::new("a \"b\"\n😀\0"),
        read: false,
    };
    assert_eq!(id, SmsId(1));
    assert_eq!(phone.last().await, Ok(Some(expected.clone())));
    assert!(phone.mark_read(id) && !phone.mark_read(SmsId(2)));
    assert_eq!(phone.newest(0, 1).await, Ok(vec![Sms { read: true, ..expected }]));
}

#[tokio::test]
async fn each_question_has_its_order() {
    // Ids 1 to 5: the third has the oldest date, the last two the same one.
    let phone = received(&[10, 20, 5, 30, 30]);
    for (name, from, limit, expected) in [
        ("all by id", From::Id(SmsId(0)), 9, vec![1, 2, 3, 4, 5]),
        ("from an id", From::Id(SmsId(3)), 9, vec![3, 4, 5]),
        ("at most two", From::Id(SmsId(2)), 2, vec![2, 3]),
        ("beyond the last", From::Id(SmsId(6)), 9, vec![]),
        ("all by date", From::Date(at(0)), 9, vec![3, 1, 2, 4, 5]),
        ("of that very moment", From::Date(at(10)), 2, vec![1, 2]),
        ("just after it", From::Date(at(10) + SignedDuration::from_millis(1)), 1, vec![2]),
        ("later than all", From::Date(at(31)), 9, vec![]),
    ] {
        assert_eq!(ids(SmsReader::from(&phone, from, limit).await), expected, "{name}");
    }
    for (skip, limit, expected) in [
        (0, 9, vec![5, 4, 2, 1, 3]),
        (0, 2, vec![5, 4]),
        (1, 2, vec![4, 2]),
        (4, 9, vec![3]),
        (5, 1, vec![]),
        (9, usize::MAX, vec![]),
        (0, 0, vec![]),
    ] {
        assert_eq!(ids(phone.newest(skip, limit).await), expected, "skip {skip} limit {limit}");
    }
    assert_eq!(phone.last().await.unwrap().map(|sms| sms.id), Some(SmsId(5)));
}

#[tokio::test]
async fn ids_come_back_as_on_android() {
    let phone = received(&[10, 20, 30]);
    assert!(phone.delete(SmsId(3)) && !phone.delete(SmsId(3)));
    assert_eq!(phone.last().await.unwrap().map(|sms| sms.id), Some(SmsId(2)));
    assert_eq!(phone.receive("+15550101", "again", at(40)), SmsId(3), "the newest was deleted");
    assert!(phone.delete(SmsId(1)));
    assert_eq!(phone.receive("+15550101", "more", at(50)), SmsId(4), "one in the middle was deleted");
    assert_eq!(ids(phone.newest(0, 9).await), [4, 3, 2]);
    phone.wipe();
    assert_eq!(ids(phone.newest(0, 9).await), Vec::<i64>::new());
    assert_eq!(ids(SmsReader::from(&phone, From::Date(at(0)), 9).await), Vec::<i64>::new());
    assert_eq!(phone.receive("+15550101", "anew", at(60)), SmsId(1));
}

#[tokio::test]
async fn sent_messages_have_ids_too_but_are_never_in_the_inbox() {
    let phone = received(&[10]);
    phone.hand_over("+15550100", "sent").await.unwrap();
    assert_eq!(phone.receive("+15550100", "answer", at(20)), SmsId(3));
    assert_eq!(ids(SmsReader::from(&phone, From::Id(SmsId(1)), 9).await), [1, 3]);
    assert!(!phone.mark_read(SmsId(2)) && phone.delete(SmsId(2)));
    assert_eq!(phone.sent_since(at(0)).await, Some(vec![]));
    assert_eq!(phone.sent_count(), 1, "what has left has left");
    phone.close_sent_box();
    phone.hand_over("+15550100", "sent, not kept").await.unwrap();
    assert_eq!(phone.receive("+15550100", "another", at(30)), SmsId(4));
}

#[tokio::test]
async fn reading_can_be_denied_and_granted_again() {
    let phone = received(&[10]);
    phone.fail_next_read("out of order");
    phone.deny_reading();
    assert!(matches!(phone.access().await, Access::Denied(what) if what.to_string().contains("Allow")));
    assert!(matches!(phone.last().await, Err(ReadError::NotPermitted(_))));
    assert!(matches!(phone.newest(0, 1).await, Err(ReadError::NotPermitted(_))));
    let from = SmsReader::from(&phone, From::Id(SmsId(1)), 1).await;
    assert!(matches!(from, Err(ReadError::NotPermitted(_))));
    assert_eq!(phone.sent_since(at(0)).await, None);
    phone.grant_reading();
    assert_eq!(phone.access().await, Access::Granted);
    assert_eq!(phone.last().await, Err(ReadError::Failed("out of order".into())), "it was not used up");
    assert!(phone.last().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn reads_fail_and_hang_as_often_as_they_were_told_to() {
    let phone = received(&[10]);
    phone.fail_next_read("one");
    phone.hang_next_read();
    phone.fail_next_read("two");
    assert_eq!(phone.newest(0, 1).await, Err(ReadError::Failed("one".into())));
    assert!(never(phone.newest(0, 1)).await);
    let from = SmsReader::from(&phone, From::Id(SmsId(1)), 1).await;
    assert_eq!(from, Err(ReadError::Failed("two".into())));
    assert_eq!(ids(phone.newest(0, 1).await), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_message_leaves_or_not_whatever_is_said() {
    let why = || "no signal".to_owned();
    for (fate, outcome, left) in [
        (None, Some(Ok(())), 1),
        (Some(Fate::Fails(why())), Some(Err(SendError::NotSent(why().into()))), 0),
        (Some(Fate::UnsureButSent(why())), Some(Err(SendError::Unsure(why().into()))), 1),
        (Some(Fate::UnsureAndNotSent(why())), Some(Err(SendError::Unsure(why().into()))), 0),
        (Some(Fate::SentThenHangs), None, 1),
        (Some(Fate::Hangs), None, 0),
    ] {
        let phone = phone();
        let name = format!("{fate:?}");
        if let Some(fate) = fate {
            phone.next_send(fate);
        }
        let sending = tokio::time::timeout(Duration::from_millis(50), phone.hand_over("+15550100", "hi"));
        assert_eq!(sending.await.ok(), outcome, "{name}");
        let message = SentMessage { to: "+15550100".to_owned(), body: "hi".to_owned(), at: at(0) };
        let expected = vec![message; left];
        assert_eq!((phone.sent(), phone.sent_count()), (expected.clone(), left), "{name}");
        assert_eq!(phone.sent_since(at(0)).await, Some(expected), "{name}");
        assert_eq!(phone.hand_over("+15550100", "next").await, Ok(()), "{name}: only the next one");
    }
}

#[tokio::test(start_paused = true)]
async fn sending_can_be_denied_and_granted_again() {
    let phone = phone();
    phone.next_send(Fate::Hangs);
    phone.deny_sending();
    assert!(matches!(phone.hand_over("+15550100", "hi").await, Err(SendError::NotPermitted(_))));
    assert_eq!(phone.access().await, Access::Granted, "reading is another permission");
    phone.grant_sending();
    assert!(never(phone.hand_over("+15550100", "hi")).await, "the fate was not used up");
    assert_eq!(phone.hand_over("+15550100", "hi").await, Ok(()));
    assert_eq!(phone.sent_count(), 1);
}

#[tokio::test]
async fn the_sent_box_tells_what_left_since_then() {
    let clock = Arc::new(ManualClock::at(at(0)));
    let phone = Phone::new(Arc::clone(&clock) as Arc<dyn Clock>);
    for (seconds, text) in [(0, "first"), (10, "second")] {
        clock.set(at(seconds));
        phone.hand_over("+15550100", text).await.unwrap();
    }
    for (since, expected) in
        [(0, vec!["first", "second"]), (1, vec!["second"]), (10, vec!["second"]), (11, vec![])]
    {
        let found = phone.sent_since(at(since)).await.unwrap();
        assert_eq!(
            found.iter().map(|sent| sent.body.as_str()).collect::<Vec<_>>(),
            expected,
            "since {since}"
        );
    }
    phone.close_sent_box();
    assert_eq!(phone.sent_since(at(0)).await, None);
    phone.open_sent_box();
    assert_eq!(phone.sent_since(at(0)).await.map(|sent| sent.len()), Some(2));
    phone.wipe();
    assert_eq!(phone.sent_since(at(0)).await, Some(vec![]));
    assert_eq!(phone.sent_count(), 2);
}

#[tokio::test]
async fn the_inbox_that_comes_with_it_is_a_believable_one() {
    let now = at(0);
    let phone = Phone::with_inbox(Arc::new(ManualClock::at(now)));
    let inbox = phone.newest(0, 100).await.unwrap();
    assert_eq!(
        inbox.iter().map(|sms| sms.id.0).collect::<Vec<_>>(),
        [8, 7, 6, 5, 4, 3, 2, 1],
        "as they came"
    );
    let week_ago = now - SignedDuration::from_hours(7 * 24);
    assert!(inbox.iter().all(|sms| sms.date < now && sms.date > week_ago));
    assert_eq!(inbox.iter().filter(|sms| !sms.read).count(), 3);
    let holding = |word: &str| inbox.iter().filter(|sms| sms.body.as_written().contains(word)).count();
    assert_eq!((holding("one-time code"), holding("parcel")), (1, 2));
    assert_eq!(phone.sent_count(), 0);
}

/// Copying all messages for each query would take minutes.
#[tokio::test]
async fn a_hundred_thousand_messages_stay_quick() {
    const MANY: i64 = 100_000;
    let quickly = async {
        for order in [1, -1] {
            let phone = phone();
            for n in 0..MANY {
                phone.receive("+15550100", "hello", at(order * n));
            }
            for n in 0..2000 {
                let skip = usize::try_from(n * 40).unwrap();
                assert_eq!(phone.newest(skip, 20).await.unwrap().len(), 20);
                assert_eq!(ids(SmsReader::from(&phone, From::Id(SmsId(n * 40)), 1).await).len(), 1);
                assert_eq!(ids(SmsReader::from(&phone, From::Date(at(order * n)), 1).await).len(), 1);
                assert_eq!(phone.last().await.unwrap().unwrap().id.0, MANY - n);
                assert!(phone.delete(SmsId(MANY - n)));
            }
        }
    };
    // Nothing in it awaits, so a timeout could not stop it; only the elapsed time shows whether it was slow.
    let begun = tokio::time::Instant::now();
    quickly.await;
    assert!(begun.elapsed() < Duration::from_secs(20), "it took {:?}", begun.elapsed());
}

#[tokio::test]
async fn contacts_are_listed_unless_they_fail_or_hang() {
    let phone = Phone::with_inbox(Arc::new(ManualClock::at(at(0))));
    let listed = phone.contacts().await.unwrap();
    assert_eq!(listed[0].name.as_written(), "Lena");
    phone.fail_contacts("no");
    assert_eq!(phone.contacts().await, Err(ReadError::Failed("no".into())));
    phone.hang_contacts();
    assert!(never(phone.contacts()).await);
    assert_eq!(phone.hung_count(), 1);
    phone.open_contacts();
    assert_eq!(phone.contacts().await.unwrap(), listed);
}
