//! Tests the handling of posted notifications with mutated input.

use kai_assistant::notifications::record::{Record, TEXT_LIMIT};
use kai_assistant::source::SourceId;
use zbus::wire::LE;
use zbus::wire::serialized::{Context, Data};

use super::*;

pub(super) fn call(serial: u32) -> CallId {
    (":1.9".to_owned(), serial)
}

/// Reads arbitrary bytes as the arguments of `Notify` in D-Bus encoding.
pub(in crate::desktop) fn check_bytes(bytes: &[u8]) {
    let data = Data::new(bytes, Context::new(LE, 0));
    if let Ok((arguments, _)) = data.deserialize::<Arguments>() {
        let notify = Notify::from(arguments);
        let id = notify.summary.clone();
        check(&notify, id);
    }
}

/// Checks that any arguments give a notification of limited size, or none.
fn check(notify: &Notify, id: String) {
    let body = &notify.body;
    assert!(stripped(body).len() <= body.len() + body.matches('<').count());
    let fields = notify
        .hints
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), value.try_clone().ok()?)))
        .collect();
    let told = added(&Add { app_id: Some(notify.app_name.clone()), id, fields }, &App::default());
    told.into_iter().for_each(check_post);
    let mut pending = PendingCalls::on("0123456789abcdef");
    pending.called(call(1), notify, &App::default());
    pending.replied(&call(1), ":1.5", 7).into_iter().for_each(check_post);
    assert!(pending.calls.is_empty() && pending.order.is_empty(), "nothing waits any more");
}

fn check_post(heard: Heard) {
    let Heard::Posted(post) = heard else { panic!("{heard:?}") };
    let record = Record::of(SourceId::HERE, &post, jiff::Timestamp::UNIX_EPOCH);
    let line = |text: &str| text.chars().count() <= 300 && !text.chars().any(char::is_control);
    let lines =
        [record.id.as_str(), &record.package_name, record.title.as_written(), record.app_label.as_written()];
    assert!(lines.into_iter().all(line), "{record:?}");
    assert!(record.text.as_written().chars().count() <= TEXT_LIMIT);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WORDS: [&str; 6] = [
        "Signal",
        "org.signal.Signal.desktop",
        "<b>Dinner</b> &amp; co <img src='x' alt=\"a &lt;b&gt;\"/>",
        "im.received",
        "1",
        "",
    ];

    fn word() -> impl Strategy<Value = String> {
        kai_mutate::text(WORDS.map(str::to_owned).to_vec())
    }

    fn value() -> impl Strategy<Value = Variant<'static>> {
        prop_oneof![
            3 => word().prop_map(|word| Variant::from(word.replace('\0', ""))),
            1 => any::<bool>().prop_map(Variant::from),
            1 => any::<u32>().prop_map(Variant::from),
            1 => any::<f64>().prop_map(Variant::from),
            1 => proptest::collection::vec(any::<u8>(), 0..20).prop_map(Variant::from),
        ]
    }

    fn name() -> impl Strategy<Value = String> {
        let known = [
            "desktop-entry",
            "category",
            "x-kde-display-appname",
            "x-kde-origin-name",
            "resident",
            "transient",
            "value",
            "title",
            "body",
            "markup-body",
        ];
        prop_oneof![4 => proptest::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => word()]
    }

    /// A chat app's call in D-Bus encoding.
    fn posted() -> Vec<u8> {
        let hint = |value: &str| OwnedVariant::try_from(Variant::from(value.to_owned())).unwrap();
        let entry = ("desktop-entry".to_owned(), hint(WORDS[1]));
        let hints = Hints::from([entry, ("category".to_owned(), hint("im.received"))]);
        let [app, body] = [WORDS[0], WORDS[2]].map(str::to_owned);
        let arguments: Arguments =
            (app, 0, String::new(), "Alice".to_owned(), body, vec!["default".to_owned()], hints, -1);
        zbus::wire::to_bytes(Context::new(LE, 0), &arguments).unwrap().to_vec()
    }

    #[test]
    fn a_call_is_read_from_the_wire() {
        let bytes = posted();
        let data = Data::new(bytes.as_slice(), Context::new(LE, 0));
        let (arguments, _) = data.deserialize::<Arguments>().unwrap();
        assert_eq!(Notify::from(arguments).summary, "Alice");
    }

    proptest! {
        #[test]
        fn any_bytes_become_a_bounded_notification_or_none(bytes in kai_mutate::bytes(vec![posted()])) {
            check_bytes(&bytes);
        }

        #[test]
        fn any_arguments_become_a_bounded_notification_or_none(
            words in [word(), word(), word(), word()],
            fields in proptest::collection::hash_map(name(), value(), 0..8),
        ) {
            let owned = |(name, value): (String, Variant<'static>)| Some((name, OwnedVariant::try_from(value).ok()?));
            let hints: Hints = fields.into_iter().filter_map(owned).collect();
            let [app_name, summary, body, id] = words;
            check(&Notify { app_name, summary, body, hints }, id);
        }
    }
}
