//! Messages, notifications and contacts of a paired phone.

use kai_assistant::phones::port::ContactStamp;
use kai_assistant::untrusted::Untrusted;

use super::*;
use crate::simulated::{Press, Reply, SendFate};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_794_000_000 + second).unwrap()
}

fn bodies(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| message.body.as_written()).collect()
}

#[tokio::test]
async fn messages_are_listed_paged_and_pushed() {
    let (mut kai, handset, _) = paired().await;
    for second in 0..7 {
        handset.receive("+15550100", &format!("m{second}"), at(second)).await;
    }
    handset.file(Folder::Inbox, &["+15550100", "+15550142"], "to the group", at(100)).await;
    kai.endpoint.send(handset.id(), Packet::RequestConversations).await.unwrap();
    assert_eq!(bodies(&kai.messages().await), ["to the group"], "the newest conversation comes first");
    let newest = kai.messages().await;
    assert_eq!(bodies(&newest), ["m6"]);
    let thread = newest[0].thread;
    let mut ask = Some(Conversation { thread, until: None, count: Some(3) });
    let mut all = vec![];
    while let Some(asked) = ask {
        kai.endpoint.send(handset.id(), Packet::RequestConversation(asked)).await.unwrap();
        let page = kai.messages().await;
        ask = asked.next_page(&page, at(1));
        all.extend(page);
    }
    let mut seen: Vec<&str> = bodies(&all);
    seen.dedup();
    assert_eq!(seen, ["m6", "m5", "m4", "m3", "m2", "m1", "m0"]);
    // Live: the new one, and the newest known one again.
    handset.receive("+15550100", "news", at(200)).await;
    assert_eq!(bodies(&kai.messages().await), ["news", "to the group"]);
}

/// A date that was told is the date by which a phone finds the message again, whatever the clock counts in.
#[tokio::test]
async fn a_page_up_to_the_newest_message_holds_it() {
    let (mut kai, handset, _) = paired().await;
    let moments = [999, 1, 2, 1_000_001, 1_000_002];
    for (number, nanosecond) in moments.into_iter().enumerate() {
        let date = Timestamp::new(1_794_000_000, nanosecond).unwrap();
        handset.receive("+15550100", &format!("m{number}"), date).await;
    }
    kai.endpoint.send(handset.id(), Packet::RequestConversations).await.unwrap();
    let newest = kai.messages().await.remove(0);
    for (until, expected) in [(newest.date, 5), (at(0), 3)] {
        let asked = Conversation { thread: newest.thread, until: Some(until), count: Some(100) };
        kai.endpoint.send(handset.id(), Packet::RequestConversation(asked)).await.unwrap();
        assert_eq!(kai.messages().await.len(), expected, "up to {until}");
    }
}

#[tokio::test]
async fn a_message_is_sent_once_and_appears_in_the_phones_list() {
    let (mut kai, handset, _) = paired().await;
    kai.endpoint.send(handset.id(), Packet::RequestConversations).await.unwrap();
    let outgoing = Outgoing { to: vec!["+15550142".to_owned()], text: "On my way".to_owned(), sim: None };
    kai.endpoint.send(handset.id(), Packet::SendSms(outgoing.clone())).await.unwrap();
    let listed = kai.messages().await;
    assert_eq!((bodies(&listed), listed[0].folder), (vec!["On my way"], Folder::Sent));
    assert_eq!(handset.sent(), std::slice::from_ref(&outgoing));
    // Lost without a word, failed on the phone, sent but not listed.
    for fate in [SendFate::Lost, SendFate::SentUnlisted, SendFate::Failed] {
        handset.next_send(fate);
        kai.endpoint.send(handset.id(), Packet::SendSms(outgoing.clone())).await.unwrap();
    }
    let listed = kai.messages().await;
    assert_eq!(listed[0].folder, Folder::Failed);
    assert_eq!(handset.sent().len(), 2);
}

#[tokio::test]
async fn notifications_are_shown_answered_and_dismissed() {
    let (mut kai, handset, _) = paired().await;
    let key = handset.post("org.signal", "Signal", "Alice", "Dinner?").await;
    let Packet::Notification(Change::Posted(live)) = kai.packet().await else { panic!("it is pushed") };
    assert!(!live.silent);
    kai.endpoint.send(handset.id(), Packet::RequestNotifications).await.unwrap();
    let Packet::Notification(Change::Posted(again)) = kai.packet().await else { panic!("it is listed") };
    assert!(again.silent && again.reply_id != live.reply_id, "each packet has a reply id of its own");
    let reply = |shown: &Shown, text: &str| Packet::ReplyNotification {
        reply_id: shown.reply_id.clone().unwrap(),
        text: text.to_owned(),
    };
    kai.endpoint.send(handset.id(), reply(&live, "Yes")).await.unwrap();
    kai.endpoint.send(handset.id(), reply(&again, "Twice")).await.unwrap();
    let press = Press { key: key.clone(), action: "Mark as read".to_owned() };
    let pressed = Packet::PressNotification { key: press.key.clone(), action: press.action.clone() };
    kai.endpoint.send(handset.id(), pressed).await.unwrap();
    kai.endpoint.send(handset.id(), Packet::DismissNotification(key.clone())).await.unwrap();
    assert_eq!(kai.packet().await, Packet::Notification(Change::Removed(key.clone())));
    assert_eq!(handset.replies(), [Reply { key: key.clone(), text: "Yes".to_owned() }]);
    assert_eq!((handset.presses(), handset.dismissed()), (vec![press], vec![key]));
    let wiped = handset.post("org.x", "X", "Title", "Text").await;
    kai.packet().await;
    handset.wipe_away(&wiped).await;
    assert_eq!(kai.packet().await, Packet::Notification(Change::Removed(wiped)));
}

#[tokio::test]
async fn contacts_and_the_composer() {
    let (mut kai, handset, _) = paired().await;
    handset.save_contact("7", 12, "BEGIN:VCARD\nFN:Lena Brandt\nTEL:+15550142\nEND:VCARD");
    kai.endpoint.send(handset.id(), Packet::RequestContacts).await.unwrap();
    assert_eq!(kai.packet().await, Packet::Contacts(vec![ContactStamp { uid: "7".to_owned(), changed: 12 }]));
    let ids = vec!["7".to_owned(), "8".to_owned()];
    kai.endpoint.send(handset.id(), Packet::RequestCards(ids)).await.unwrap();
    let Packet::Cards(cards) = kai.packet().await else { panic!("cards come") };
    let lena = cards[0].contact().unwrap();
    assert_eq!((cards.len(), lena.name), (1, Untrusted::new("Lena Brandt")));
    let url = "sms:+15550142?body=On%20my%20way".to_owned();
    kai.endpoint.send(handset.id(), Packet::Open(url.clone())).await.unwrap();
    within(handset.until(|handset| (handset.opened() == [url.clone()]).then_some(()))).await;
}

#[tokio::test]
async fn a_feature_that_is_off_stays_silent() {
    let (mut kai, handset, _) = paired().await;
    handset.receive("+15550100", "hello", at(1)).await;
    handset.turn_off(&[Use::Sms]);
    kai.endpoint.send(handset.id(), Packet::RequestConversations).await.unwrap();
    kai.endpoint.send(handset.id(), Packet::RequestContacts).await.unwrap();
    assert_eq!(kai.packet().await, Packet::Contacts(vec![]), "nothing came before it");
}

#[tokio::test]
async fn a_caller_who_is_busy_can_still_send_and_loses_nothing() {
    let (mut kai, handset, _) = paired().await;
    for number in 0..300 {
        handset.post("org.x", "X", &format!("n{number}"), "text").await;
    }
    // Far more than wait for the caller, who has not taken one yet.
    kai.endpoint.send(handset.id(), Packet::Ping).await.unwrap();
    within(handset.until(|handset| (handset.pings() == 1).then_some(()))).await;
    for number in 0..300 {
        let Packet::Notification(Change::Posted(shown)) = kai.packet().await else { panic!("they come") };
        assert_eq!(shown.title.unwrap().as_written(), format!("n{number}"));
    }
}

#[tokio::test]
async fn thousands_of_messages_arrive_whole_and_in_order() {
    let (mut kai, handset, _) = paired().await;
    for second in 0..5_000 {
        handset.receive("+15550100", &format!("m{second}"), at(second)).await;
    }
    kai.endpoint.send(handset.id(), Packet::RequestConversations).await.unwrap();
    let thread = kai.messages().await[0].thread;
    let everything = Conversation { thread, until: None, count: None };
    kai.endpoint.send(handset.id(), Packet::RequestConversation(everything)).await.unwrap();
    let all = kai.messages().await;
    assert_eq!(all.len(), 5_000);
    assert!(all.windows(2).all(|pair| pair[0].date > pair[1].date));
    for second in 5_000..5_500 {
        handset.receive("+15550100", &format!("m{second}"), at(second)).await;
        assert_eq!(kai.messages().await[0].body.as_written(), format!("m{second}"));
    }
}
