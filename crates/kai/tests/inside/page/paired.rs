//! Drafts of paired phones on the page and in commands: which phone, which chat, and what the phone can do instead.

use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};
use kai_assistant::gate::RunKind;
use kai_assistant::outbox::door::{Approved, Looking, Sender, Sending};
use kai_assistant::outbox::{Channel, NewDraft, ReplyTo, store};
use kai_assistant::phones::port::Contact;
use kai_assistant::phones::store::{self as phones, NewPhone};
use kai_assistant::phones::{SourceId, Switch};
use kai_assistant::sms::names;
use kai_assistant::untrusted::Untrusted;
use serde_json::json;

use super::house::House;

/// A phone that does what it is told and says so.
#[derive(Default)]
struct Handset(Mutex<Vec<String>>);

impl Handset {
    fn told(&self, what: &str, approved: &Approved) -> Sending<'static> {
        self.0.lock().unwrap().push(format!("{what} {} {}", approved.to(), approved.body()));
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Sender for Handset {
    fn send(&self, approved: Approved) -> Sending<'_> {
        self.told("send", &approved)
    }

    fn sent_since(&self, _: Timestamp) -> Looking<'_> {
        Box::pin(std::future::ready(Some(vec![])))
    }

    fn compose(&self, approved: Approved) -> Sending<'_> {
        self.told("compose", &approved)
    }
}

fn pair(house: &House, device: &str, name: &str, switches: &[Switch]) -> SourceId {
    let new = NewPhone { device: device.into(), name: name.into(), certificate: vec![1], protocol: 8 };
    let now = house.app.clock.now();
    let paired = |tx: &rusqlite::Transaction<'_>| {
        let phone = phones::pair(tx, &new, now)?;
        for switch in switches {
            phones::set(tx, phone.source, *switch, true)?;
        }
        Ok::<_, kai_assistant::db::DbError>(phone.source)
    };
    house.app.db.write_now(paired).unwrap()
}

fn sms(phone: SourceId, body: &str) -> NewDraft {
    NewDraft {
        channel: Channel::Sms,
        phone,
        to: "+15550100".to_owned(),
        app: None,
        body: body.to_owned(),
        mail: None,
        in_reply_to: None,
        quoted: None,
        known_contact: true,
        origin: RunKind::Chat,
        guest: None,
        conversation: 0,
    }
}

fn reply(phone: SourceId, to: &str, app: &str) -> NewDraft {
    NewDraft {
        channel: Channel::Notification,
        to: to.to_owned(),
        app: Some(app.to_owned()),
        in_reply_to: Some(ReplyTo::Notification("p2:7".to_owned())),
        quoted: Some(Untrusted::new("Dinner?")),
        ..sms(phone, "Yes, at 8")
    }
}

fn stage(house: &House, new: &NewDraft) -> i64 {
    let now = house.app.clock.now();
    house.app.db.write_now(|tx| store::stage(tx, new, now)).unwrap().id.0
}

#[test]
fn a_draft_can_be_opened_on_the_phone_instead() {
    let house = House::new();
    let pixel = pair(&house, "a", "Pixel", &[Switch::SendSms, Switch::Composer]);
    let handset = Arc::new(Handset::default());
    stage(&house, &sms(pixel, "Hi"));
    let mut visitor = house.visitor("/");
    assert!(!visitor.has("draft-phone"), "there is only one");
    visitor.press("draft-on-phone");
    assert!(visitor.answer.status == 409 && visitor.says("Your phone “Pixel” is not connected"));
    house.app.door.senders.register(pixel, handset.clone());
    visitor.open("/");
    visitor.press("draft-on-phone");
    let now = house.app.clock.now().to_zoned(house.app.clock.zone());
    visitor.until_says(&format!("Opened on your phone {}", now.strftime("%H:%M")));
    assert_eq!(*handset.0.lock().unwrap(), ["compose +15550100 Hi"]);
    let row = house.run("drafts", &json!("list"))[0].clone();
    assert_eq!((&row["status"], &row["can_open"]), (&json!("PENDING"), &json!(true)));
    assert_eq!(row["opened_at"], json!(house.app.clock.now().as_millisecond()));
    house.clock.advance(SignedDuration::from_secs(5));
    visitor.open("/");
    visitor.press("draft-send");
    visitor.until_says("handed to the phone");
    assert_eq!(handset.0.lock().unwrap().len(), 2);
    assert!(!visitor.has("draft-on-phone"), "what was sent is not opened");
}

#[test]
fn a_phone_that_may_only_open_drafts_has_no_send() {
    let house = House::new();
    let pixel = pair(&house, "a", "Pixel", &[Switch::Composer]);
    stage(&house, &sms(pixel, "Hi"));
    let visitor = house.visitor("/");
    assert!(visitor.has("draft-on-phone") && !visitor.has("draft-send"));
    let digest = house.run("drafts", &json!("list"))[0]["digest"].clone();
    let tap = json!({"tap": {"id": 1, "button": "send", "shown": digest, "attempts": 0}});
    let refused = house.try_to("drafts", &tap).unwrap_err().to_string();
    assert!(refused.contains("isn’t allowed to send SMS"), "{refused}");
}

#[test]
fn among_several_phones_a_draft_names_its_own() {
    let house = House::new();
    let pixel = pair(&house, "a", "Pi\u{202e}xel", &[Switch::SendSms]);
    let work = pair(&house, "b", "Work", &[Switch::SendSms]);
    for phone in [pixel, work] {
        stage(&house, &sms(phone, "Hi"));
    }
    let visitor = house.visitor("/");
    assert_eq!(visitor.texts("draft-phone"), ["by your phone “Pi\\u{202e}xel”", "by your phone “Work”"]);
    assert_eq!(house.run("drafts", &json!("list"))[1]["phone"], json!({"source": 3, "name": "Work"}));
    house.app.db.write_now(|tx| phones::remove(tx, pixel)).unwrap();
    let mut visitor = house.visitor("/");
    assert_eq!(visitor.texts("draft-phone"), ["by a phone that’s no longer paired"]);
    visitor.press("draft-send");
    assert!(visitor.says("this draft’s phone is no longer paired"));
    visitor.open("/");
    visitor.press("draft-discard");
    assert_eq!(house.run("drafts", &json!("list")).as_array().unwrap().len(), 1);
}

#[test]
fn a_reply_shows_the_app_and_the_chat() {
    let house = House::new();
    let pixel = pair(&house, "a", "Pixel", &[Switch::Notifications]);
    stage(&house, &reply(pixel, "Al\u{200b}ice", "Signal"));
    let mut visitor = house.visitor("/");
    assert_eq!(visitor.texts("draft-to"), ["Al\\u{200b}ice · Signal"]);
    assert_eq!(visitor.texts("draft-quoted"), ["Dinner?"]);
    assert!(visitor.says("The name of the app or the chat contains invisible characters"));
    assert!(visitor.says("Reply in Signal") && !visitor.says("1 SMS"));
    assert!(!visitor.has("draft-on-phone"));
    let row = house.run("drafts", &json!("list"))[0].clone();
    assert_eq!((&row["in_reply_to"], &row["segments"]), (&json!("p2:7"), &json!(null)));
    house.app.door.senders.register(pixel, Arc::new(Handset::default()));
    visitor.press("draft-send");
    visitor.until_says("The notification is no longer on the phone");
    assert!(visitor.has("draft-retry"));
}

/// A name is beside the number, apart from it, and shows what is invisible in it.
#[test]
fn a_draft_shows_the_name_beside_the_number() {
    let house = House::new();
    let pixel = pair(&house, "a", "Pixel", &[Switch::SendSms]);
    stage(&house, &sms(pixel, "Hi"));
    let digest = |house: &House| house.run("drafts", &json!("list"))[0]["digest"].clone();
    let before = digest(&house);
    let numbers = vec![Untrusted::new("+15550100")];
    let contact = Contact { uid: "1".to_owned(), name: Untrusted::new("Le\u{202e}na <b>"), numbers };
    house.app.db.write_now(|tx| names::replace(tx, pixel, &[contact])).unwrap();
    let mut visitor = house.visitor("/");
    assert_eq!(visitor.texts("draft-to"), ["Le\\u{202e}na <b> · +15550100"]);
    assert!(visitor.answer.text.contains("<bdi>+15550100</bdi>"), "a name moves none of the digits");
    assert_eq!(digest(&house), before, "the name is not what is approved");
    let handset = Arc::new(Handset::default());
    house.app.door.senders.register(pixel, handset.clone());
    visitor.press("draft-send");
    visitor.until_says("handed to the phone");
    assert_eq!(*handset.0.lock().unwrap(), ["send +15550100 Hi"]);
}
