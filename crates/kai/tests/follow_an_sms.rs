//! The story of the house, from end to end: real wiring, a phone in memory, a model that plays a script, a clock that
//! is moved by hand. Read this first.
//!
//! It is a module of the binary (`main.rs` includes it), because a binary's rooms cannot be entered from outside.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kai_assistant::agent::conversation::{ConversationId, Which};
use kai_assistant::clock::{Clock, ManualClock};
use kai_assistant::outbox::{DraftId, ReplyTo};
use kai_bridges::simulated::Phone;

use crate::app::App;
use crate::call::drafts::{Button, TapCall};
use crate::caller_env::CallerEnv;
use crate::commands::{chats, drafts, heartbeat, sms};
use crate::{answer, call, daemon};
use kai_assistant::agent::Nobody;
use kai_assistant::heartbeat::OutcomeKind;
use kai_assistant::outbox::DraftState;

#[tokio::test]
async fn an_sms_arrives_is_answered_and_leaves_by_a_tap() {
    let clock = Arc::new(ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap()));
    let phone = Arc::new(Phone::new(clock.clone()));
    let (app, _folder) = App::with_phone(clock.clone(), Arc::clone(&phone));
    let app = Arc::new(app);

    // The person lets Kai read and draft. What lay in the inbox counts as seen.
    phone.receive("+15550199", "An old message.", clock.now());
    for key in ["sms_enabled", "sms_send_enabled"] {
        let set = call::Call::SettingsSet { key: key.to_owned(), value: "true".to_owned() };
        answer::answer(&app, set, &CallerEnv::default(), &Nobody).await.unwrap();
    }

    // A message arrives. The daemon's tick looks at the phone when it is time, and not before.
    clock.advance(SignedDuration::from_mins(1));
    phone.receive("+15550123", "Are you free for dinner tonight?", clock.now());
    daemon::messages::look_at_phone(&app).await;
    assert!(sms::list(&app).await.unwrap().is_empty(), "fifteen minutes have not passed");
    clock.advance(SignedDuration::from_mins(15));
    daemon::messages::look_at_phone(&app).await;
    let queue = sms::list(&app).await.unwrap();
    assert_eq!((queue.len(), queue[0].from.as_str()), (1, "+15550123"));

    // The heartbeat looks at it by itself and has something to report. What it was shown does not wait any more.
    heartbeat::tick(&app).await;
    let status = heartbeat::status(&app).await.unwrap();
    assert_eq!(status.last.map(|last| last.outcome), Some(OutcomeKind::Report));
    let reports = chats::show(&app, ConversationId(status.report.unwrap())).await.unwrap();
    assert!(format!("{:?}", reports[0].message).contains("from +15550123"), "{reports:?}");
    assert!(sms::list(&app).await.unwrap().is_empty());
    heartbeat::tick(&app).await;
    assert_eq!(heartbeat::log(&app).await.unwrap().len(), 1, "not due again for half an hour");

    // The person asks; the model looks, and drafts. Nothing has left.
    let said = "Please answer the dinner message.".to_owned();
    let answer = chats::ask(&app, &CallerEnv::default(), said.into(), Which::New, &Nobody).await.unwrap();
    assert_eq!(answer.text, "I drafted an answer. It waits for your tap; nothing was sent.");
    let drafts = drafts::list(&app).await.unwrap();
    assert_eq!((drafts.len(), drafts[0].status.as_str()), (1, "PENDING"));
    assert_eq!(drafts[0].to, "+15550123");
    assert_eq!(drafts[0].in_reply_to, Some(ReplyTo::Sms(queue[0].id.0)));
    for _ in 0..100 {
        clock.advance(SignedDuration::from_mins(1));
        daemon::look_around(Arc::clone(&app)).await;
    }
    assert_eq!(phone.sent_count(), 0, "nothing leaves by itself, however long it waits");

    // The person taps, on what they saw. Exactly one message leaves, and a second tap finds nothing to do.
    let shown = &drafts[0];
    let tap = TapCall {
        id: DraftId(1),
        button: Button::Send,
        shown: shown.digest.clone(),
        attempts: shown.attempts,
    };
    let sent = drafts::tap(&app, tap.clone()).await.unwrap();
    assert_eq!(sent.status, DraftState::Sent);
    assert!(drafts::tap(&app, tap).await.is_err());
    let left = phone.sent();
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].to.as_str(), left[0].body.as_str()), ("+15550123", shown.body.as_str()));
}
