//! A paired phone behind the assistant's ports: what it passes on, sends and hears. Time stands still where a list is
//! waited for, and passes only when everybody waits.

use std::sync::Mutex;

use kai_assistant::access::Access;
use kai_assistant::lock::lock;
use kai_assistant::notifications::NotificationId;
use kai_assistant::notifications::port::{Delivery, Ear, Heard, Listener, Source};
use kai_assistant::outbox::door;
use kai_assistant::phones::Switches;
use kai_assistant::phones::port::{Ask, FromPhone, MessageKind, NotReached, PhoneLink, ThreadId};
use kai_assistant::untrusted::Untrusted;
use tokio::task::JoinHandle;

use super::super::phone::{Handing, Wire};
use super::*;

/// A connection that keeps what it is given.
#[derive(Default)]
struct Kept {
    packets: Mutex<Vec<Packet>>,
    outcome: Mutex<Option<SendError>>,
}

impl Wire for Kept {
    fn send(&self, packet: Packet) -> Handing<'_> {
        lock(&self.packets).push(packet);
        let outcome = lock(&self.outcome).map_or(Ok(()), Err);
        Box::pin(async move { outcome })
    }
}

impl Kept {
    fn taken(&self) -> Vec<Packet> {
        std::mem::take(&mut *lock(&self.packets))
    }
}

const OFF: Switches = Switches {
    read_sms: false,
    send_sms: false,
    notifications: false,
    names: false,
    composer: false,
    tell: false,
};
const READING: Switches = Switches { read_sms: true, ..OFF };
const SENDING: Switches = Switches { send_sms: true, ..OFF };

type Told = mpsc::Receiver<FromPhone>;

fn phone(allowed: Switches) -> (Arc<PairedPhone>, Told, Arc<Kept>) {
    let (phone, told) = PairedPhone::new(DeviceId::from_random([7; 16]), clock(), PhoneLimits::default());
    let wire = Arc::new(Kept::default());
    phone.allow(allowed).unwrap();
    phone.connected_by(wire.clone()).unwrap();
    (phone, told, wire)
}

fn message(id: i64, folder: Folder, text: &str, second: i64) -> Message {
    Message {
        kind: MessageKind::Sms,
        id,
        thread: ThreadId(1),
        folder,
        read: false,
        date: clock().now().saturating_add(jiff::SignedDuration::from_secs(second)).unwrap(),
        addresses: vec![Untrusted::new("+15550142123")],
        body: Untrusted::new(text),
        attachments: vec![],
        sim: None,
    }
}

fn listed(messages: Vec<Message>) -> Packet {
    Packet::Messages(Messages { list: messages, left_out: 0 })
}

fn bodies(told: FromPhone) -> Vec<String> {
    match told {
        FromPhone::Messages(list) => list.messages.iter().map(|m| m.body.as_written().to_owned()).collect(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn only_what_is_on_is_passed_on_and_asked_for() {
    let (phone, mut told, wire) = phone(OFF);
    let asks = || {
        let uids = vec!["7".to_owned()];
        let thread = Ask::Thread { thread: ThreadId(1), until: None, count: 25 };
        [Ask::Threads, thread, Ask::ContactList, Ask::Contacts { uids }]
    };
    for ask in asks() {
        assert_eq!(phone.ask(ask).await, Err(NotReached::NotConnected));
    }
    assert_eq!(phone.open_composer("+1555", "Hi").await, Err(NotReached::NotConnected));
    assert_eq!(phone.tell("draft", "Kai", "A draft waits").await, Err(NotReached::NotConnected));
    assert_eq!(phone.answer("id", "Hi").await, Err(NotReached::NotConnected));
    assert_eq!(wire.taken(), []);
    for packet in [
        listed(vec![message(1, Folder::Inbox, "private", 0)]),
        Packet::Contacts(vec![]),
        Packet::Cards(vec![]),
        Packet::Notification(Change::Removed("x".to_owned())),
        Packet::Ping,
    ] {
        phone.packet(packet).unwrap();
    }
    assert!(told.try_recv().is_err(), "nothing came, not even that it is connected");
    phone.allow(Switches { read_sms: true, names: true, ..OFF }).unwrap();
    assert_eq!(told.recv().await, Some(FromPhone::Connected), "for whoever reads it begins now");
    phone
        .packet(listed(vec![message(1, Folder::Inbox, "mine", 0), message(2, Folder::Draft, "draft", 0)]))
        .unwrap();
    assert_eq!(bodies(told.recv().await.unwrap()), ["mine"]);
    let card = Card { id: "7".to_owned(), vcard: Untrusted::new("FN:Lena\nTEL:1") };
    phone.packet(Packet::Cards(vec![card])).unwrap();
    let Some(FromPhone::Contacts(contacts)) = told.recv().await else { panic!("contacts come") };
    assert_eq!((contacts[0].uid.as_str(), contacts[0].name.as_written()), ("7", "Lena"));
    for ask in asks() {
        phone.ask(ask).await.unwrap();
    }
    assert_eq!(wire.taken().len(), 4);
    phone.allow(Switches { read_sms: true, ..OFF }).unwrap();
    assert!(told.try_recv().is_err(), "messages go on");
    phone.allow(Switches { read_sms: true, names: true, ..OFF }).unwrap();
    assert_eq!(told.recv().await, Some(FromPhone::Connected), "names begin beside messages");
    phone.allow(OFF).unwrap();
    assert_eq!(told.recv().await, Some(FromPhone::Lost), "for whoever reads it ends");
}

#[tokio::test]
async fn every_connection_is_new_to_whoever_reads() {
    let (phone, mut told, wire) = phone(READING);
    assert_eq!(told.recv().await, Some(FromPhone::Connected));
    assert!(phone.is_connected());
    phone.connected_by(wire.clone()).unwrap();
    assert_eq!(told.recv().await, Some(FromPhone::Connected), "another link took its place");
    phone.lost();
    assert_eq!(told.recv().await, Some(FromPhone::Lost));
    assert!(!phone.is_connected());
    assert_eq!(phone.ask(Ask::Threads).await, Err(NotReached::NotConnected));
    phone.connected_by(wire.clone()).unwrap();
    assert_eq!(told.recv().await, Some(FromPhone::Connected));
    for (error, expected) in [
        (SendError::NotPaired, NotReached::NotConnected),
        (SendError::Busy, NotReached::Busy),
        (SendError::Unsure, NotReached::Unsure),
    ] {
        *lock(&wire.outcome) = Some(error);
        assert_eq!(phone.ask(Ask::Threads).await, Err(expected));
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_takes_nothing_is_told_no_more() {
    let (phone, mut told, wire) = phone(READING);
    let large = message(1, Folder::Inbox, &"x".repeat(1_000_000), 0);
    let taken = (0..100).take_while(|_| phone.packet(listed(vec![large.clone()])).is_ok()).count();
    assert!((20..60).contains(&taken), "{taken} megabytes wait");
    while bodies_waiting(&mut told).await > 0 {}
    let small = || listed(vec![message(2, Folder::Inbox, "small", 1)]);
    assert_eq!(phone.packet(small()), Err(Overflow), "it would hide that something is missing");
    phone.connected_by(wire).unwrap();
    phone.packet(small()).unwrap();
}

/// Takes what waits, and says how many messages that were.
async fn bodies_waiting(told: &mut Told) -> usize {
    match timeout(Duration::from_millis(100), told.recv()).await {
        Ok(Some(FromPhone::Messages(list))) => list.messages.len(),
        Ok(Some(_)) => 1,
        Ok(None) | Err(_) => 0,
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_counts_as_sent_when_the_phone_lists_it() {
    for allowed in [SENDING, Switches { read_sms: true, ..SENDING }] {
        let (phone, _told, wire) = phone(allowed);
        let sending = send(&phone, "On my way");
        // The same text was sent a moment ago, by hand.
        let before = message(1, Folder::Sent, "On my way", -30);
        while wire.taken() != [Packet::RequestConversations] {
            tokio::task::yield_now().await;
        }
        phone.packet(listed(vec![before.clone()])).unwrap();
        let packet = loop {
            tokio::time::sleep(Duration::from_millis(10)).await;
            if let Some(packet) = wire.taken().pop() {
                break packet;
            }
        };
        let to = vec!["+15550142123".to_owned()];
        assert_eq!(packet, Packet::SendSms(Outgoing { to, text: "On my way".to_owned(), sim: None }));
        phone.packet(listed(vec![before])).unwrap();
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(!sending.is_finished(), "the phone only repeated itself");
        phone.packet(listed(vec![message(2, Folder::Sent, "On my way", 1)])).unwrap();
        assert_eq!(sending.await.unwrap(), Ok(()));
        let kept = phone.listed.borrow().known().len();
        assert_eq!(kept, if allowed.read_sms { 2 } else { 0 }, "with reading off nothing is kept");
    }
}

/// Sends a message to the same number as all the others.
fn send(phone: &Arc<PairedPhone>, text: &'static str) -> JoinHandle<Result<(), door::SendError>> {
    let phone = phone.clone();
    tokio::spawn(async move { phone.send_and_watch("+15550142123", text).await })
}

/// The phone takes longer to begin its list than it is quiet when that is over.
#[tokio::test(start_paused = true)]
async fn what_became_of_an_earlier_message_is_not_taken_for_the_next() {
    for earlier in [Folder::Failed, Folder::Sent] {
        let (phone, _told, wire) = phone(SENDING);
        let sending = send(&phone, "On my way");
        let before = || listed(vec![message(1, earlier, "On my way", -30)]);
        tokio::time::sleep(Duration::from_millis(1_200)).await;
        assert_eq!(wire.taken(), [Packet::RequestConversations], "nothing leaves before it has listed");
        phone.packet(before()).unwrap();
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(matches!(wire.taken().as_slice(), [Packet::SendSms(_)]));
        phone.packet(before()).unwrap();
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(!sending.is_finished(), "the phone only repeated itself");
        phone.packet(listed(vec![message(2, Folder::Sent, "On my way", 1)])).unwrap();
        assert_eq!(sending.await.unwrap(), Ok(()));
    }
}

/// A phone without messages lists nothing, so it is told to send without a list. What it lists after that may be older.
#[tokio::test(start_paused = true)]
async fn what_a_silent_phone_lists_late_never_counts_as_failed() {
    for (folder, second, is_sent) in [
        (Folder::Failed, -30, false),
        (Folder::Failed, 1, false),
        (Folder::Sent, -30, false),
        (Folder::Sent, 1, true),
    ] {
        let (phone, _told, wire) = phone(SENDING);
        let sending = send(&phone, "On my way");
        tokio::time::sleep(Duration::from_secs(6)).await;
        assert_eq!(wire.taken().len(), 2, "asked once, told once");
        phone.packet(listed(vec![message(1, folder, "On my way", second)])).unwrap();
        let outcome = sending.await.unwrap();
        let is_unsure = matches!(outcome, Err(door::SendError::Unsure(_)));
        assert!(outcome.is_ok() == is_sent && is_unsure != is_sent, "{folder:?} at {second}: {outcome:?}");
    }
}

/// What was listed is forgotten when reading is turned off, but not while a message is being sent.
#[tokio::test(start_paused = true)]
async fn a_list_that_is_forgotten_is_asked_for_again() {
    let (phone, _told, wire) = phone(Switches { read_sms: true, ..SENDING });
    let before = || listed(vec![message(1, Folder::Failed, "Hi", -30)]);
    phone.ask(Ask::Threads).await.unwrap();
    phone.packet(before()).unwrap();
    phone.allow(SENDING).unwrap();
    assert!(phone.listed.borrow().known().is_empty());
    phone.allow(Switches { read_sms: true, ..SENDING }).unwrap();
    wire.taken();
    let sending = send(&phone, "Hi");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(wire.taken(), [Packet::RequestConversations]);
    phone.packet(before()).unwrap();
    phone.allow(SENDING).unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(matches!(wire.taken().as_slice(), [Packet::SendSms(_)]));
    phone.packet(before()).unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(!sending.is_finished(), "it failed earlier");
    phone.packet(listed(vec![message(2, Folder::Sent, "Hi", 1)])).unwrap();
    assert_eq!(sending.await.unwrap(), Ok(()));
    assert!(phone.listed.borrow().known().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_the_phone_does_not_list_is_uncertain() {
    let (phone, _told, wire) = phone(SENDING);
    let sent = phone.send_and_watch("+15550142123", "Hi").await;
    assert!(matches!(sent, Err(door::SendError::Unsure(_))), "{sent:?}");
    assert_eq!(wire.taken().len(), 2, "asked once, told once");
    // What was certainly not sent.
    for (allowed, outcome) in
        [(OFF, None), (SENDING, Some(SendError::NotConnected)), (SENDING, Some(SendError::Busy))]
    {
        phone.allow(allowed).unwrap();
        *lock(&wire.outcome) = outcome;
        let sent = phone.send_and_watch("+15550142123", "Hi").await;
        let certainly_not = matches!(sent, Err(door::SendError::NotSent(_) | door::SendError::NotConnected));
        assert!(certainly_not, "{sent:?}");
    }
    *lock(&wire.outcome) = None;
    let failed = send(&phone, "Hi");
    tokio::time::sleep(Duration::from_secs(1)).await;
    phone.packet(listed(vec![])).unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    phone.packet(listed(vec![message(3, Folder::Failed, "Hi", 1)])).unwrap();
    assert!(matches!(failed.await.unwrap(), Err(door::SendError::NotSent(_))));
    phone.lost();
    let sent = phone.send_and_watch("+15550142123", "Hi").await;
    assert_eq!(sent, Err(door::SendError::NotConnected));
}

#[tokio::test(start_paused = true)]
async fn a_message_is_looked_for_on_the_next_connection_too() {
    let (phone, _told, wire) = phone(SENDING);
    let sending = send(&phone, "Hi");
    tokio::time::sleep(Duration::from_secs(1)).await;
    phone.packet(listed(vec![])).unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(wire.taken().len(), 2);
    phone.lost();
    tokio::time::sleep(Duration::from_secs(5)).await;
    phone.connected_by(wire.clone()).unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(wire.taken(), [Packet::RequestConversations], "and it is not sent again");
    phone.packet(listed(vec![message(2, Folder::Sent, "Hi", 1)])).unwrap();
    assert_eq!(sending.await.unwrap(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn the_sent_box_can_be_read_while_reading_is_on() {
    use kai_assistant::outbox::door::Sender;
    let (phone, _told, wire) = phone(READING);
    let since = clock().now();
    assert_eq!(phone.sent_since(since).await, None, "what it has sent is not known while it lists nothing");
    assert_eq!(wire.taken(), [Packet::RequestConversations]);
    phone
        .packet(listed(vec![message(1, Folder::Sent, "old", -60), message(2, Folder::Sent, "new", 0)]))
        .unwrap();
    let sent = phone.sent_since(since).await.unwrap();
    assert_eq!(sent.iter().map(|sent| sent.body.as_str()).collect::<Vec<_>>(), ["new"]);
    phone.allow(SENDING).unwrap();
    assert_eq!(phone.sent_since(since).await, None);
    phone.allow(READING).unwrap();
    phone.lost();
    assert_eq!(phone.sent_since(since).await, None);
}

/// Somebody who hears what a phone reports.
fn ear(phone: &Arc<PairedPhone>) -> (Ear, mpsc::Receiver<Delivery>) {
    Ear::new(Arc::new(Source::new(phone.clone())), clock())
}

fn shown(key: &str, silent: bool) -> Packet {
    let text = |text: &str| Some(Untrusted::new(text));
    let shown = Shown { key: key.to_owned(), app: text("X"), title: text(key), silent, ..Shown::default() };
    Packet::Notification(Change::Posted(Box::new(shown)))
}

/// The keys of what stood there before, and of what was posted, in words.
async fn next(heard: &mut mpsc::Receiver<Delivery>) -> String {
    match heard.recv().await.unwrap().heard {
        Heard::Bound { standing } => {
            let keys: Vec<&str> = standing.iter().map(|post| post.id.as_str()).collect();
            format!("bound {}", keys.join(" "))
        }
        Heard::Standing(post) => format!("standing {}", post.id.as_str()),
        Heard::Posted(post) => format!("posted {}", post.id.as_str()),
        Heard::Closed(id) => format!("closed {}", id.as_str()),
        Heard::Unbound(Access::Granted) => "stopped".to_owned(),
        Heard::Unbound(Access::Silent(_)) => "silent".to_owned(),
        Heard::Unbound(Access::Denied(_)) => "denied".to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn notifications_are_heard_from_connection_to_connection() {
    let on = Switches { notifications: true, ..OFF };
    let (phone, _told, wire) = phone(OFF);
    let (ear, mut heard) = ear(&phone);
    let listening = phone.clone();
    tokio::spawn(async move { listening.listen(ear).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(wire.taken(), [], "it is off");
    assert!(matches!(phone.access().await, Access::Denied(_)));
    phone.allow(on).unwrap();
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!((wire.taken(), phone.access().await), (vec![Packet::RequestNotifications], Access::Granted));
    for packet in [shown("a", true), shown("new", false), shown("b", true)] {
        phone.packet(packet).unwrap();
    }
    assert_eq!(next(&mut heard).await, "bound a b");
    assert_eq!(next(&mut heard).await, "posted new");
    phone.packet(shown("late", true)).unwrap();
    assert_eq!(next(&mut heard).await, "standing late", "it was there before, so it is no news");
    phone.packet(Packet::Notification(Change::Removed("a".to_owned()))).unwrap();
    assert_eq!(next(&mut heard).await, "closed a");
    phone.lost();
    assert_eq!(next(&mut heard).await, "silent");
    assert!(matches!(phone.access().await, Access::Silent(_)));
    phone.connected_by(wire.clone()).unwrap();
    assert_eq!(next(&mut heard).await, "bound ");
    assert_eq!(wire.taken(), [Packet::RequestNotifications], "on every connection");
    phone.connected_by(wire.clone()).unwrap();
    assert_eq!(next(&mut heard).await, "silent", "a moment was missed");
    assert_eq!(next(&mut heard).await, "bound ");
    phone.allow(OFF).unwrap();
    assert_eq!(next(&mut heard).await, "stopped");
}

#[tokio::test(start_paused = true)]
async fn any_notification_can_be_dismissed_by_its_id() {
    let (phone, _told, wire) = phone(Switches { notifications: true, ..OFF });
    let (ear, mut heard) = ear(&phone);
    let listening = phone.clone();
    tokio::spawn(async move { listening.listen(ear).await });
    assert_eq!(next(&mut heard).await, "bound ");
    let odd = "0|org.x|7|two\nlines|10";
    phone.packet(shown(odd, false)).unwrap();
    let posted = next(&mut heard).await;
    assert!(posted.starts_with("posted hash:"), "{posted}");
    wire.taken();
    for (id, key) in [(&posted["posted ".len()..], odd), ("0|org.x|8|null|10", "0|org.x|8|null|10")] {
        phone.dismiss(&NotificationId::new(id)).await.unwrap();
        assert_eq!(wire.taken(), [Packet::DismissNotification(key.to_owned())]);
    }
    phone.lost();
    assert!(phone.dismiss(&NotificationId::new(odd)).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_notifications_ends_the_connection() {
    let (phone, _told, _) = phone(Switches { notifications: true, ..OFF });
    let (ear, mut heard) = ear(&phone);
    let listening = phone.clone();
    tokio::spawn(async move { listening.listen(ear).await });
    assert_eq!(next(&mut heard).await, "bound ");
    let taken = (0..5_000).take_while(|n| phone.packet(shown(&n.to_string(), false)).is_ok()).count();
    assert_eq!(taken, 1_024, "the rest does not fit while nobody takes any");
}

#[tokio::test]
async fn a_real_link_carries_all_of_it() {
    let (kai, handset, _) = paired().await;
    let Kai { endpoint, mut events, .. } = kai;
    let (endpoint, all) = (
        Arc::new(endpoint),
        Switches {
            read_sms: true,
            send_sms: true,
            notifications: true,
            names: true,
            composer: true,
            tell: true,
        },
    );
    let quick = PhoneLimits { quiet: Duration::from_millis(20), ..PhoneLimits::default() };
    let (phone, mut told) = PairedPhone::new(handset.id().clone(), clock(), quick);
    phone.allow(all).unwrap();
    phone.connected(endpoint.clone()).unwrap();
    let routed = phone.clone();
    tokio::spawn(async move {
        while let Some(event) = events.recv().await {
            if let Event::Packet(_, packet) = event {
                routed.packet(packet).unwrap();
            }
        }
    });
    assert_eq!(within(told.recv()).await, Some(FromPhone::Connected));
    handset.receive("+15550142123", "hello", clock().now()).await;
    phone.ask(Ask::Threads).await.unwrap();
    assert_eq!(bodies(within(told.recv()).await.unwrap()), ["hello"]);
    within(phone.send_and_watch("+15550142123", "On my way")).await.unwrap();
    assert_eq!(handset.sent().len(), 1);
    phone.open_composer("+15550142123", "On my way").await.unwrap();
    phone.tell("draft", "Kai", "A draft waits for you").await.unwrap();
    let opened = "sms:+15550142123?body=On%20my%20way".to_owned();
    within(handset.until(|handset| (handset.opened() == [opened.clone()]).then_some(()))).await;
    let said = within(handset.until(|handset| handset.told().first().cloned())).await;
    assert_eq!((said.key.as_str(), said.title.unwrap().as_written()), ("draft", "Kai"));
    endpoint.disconnect(handset.id());
    within(handset.until(|handset| {
        handset.events().iter().any(|event| matches!(event, Event::Lost { .. })).then_some(())
    }))
    .await;
    assert_eq!(handset.paired().len(), 1, "it stays paired");
}
