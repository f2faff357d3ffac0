//! The words for calls of the tools that only the foss edition has.

use kai_words::Lang;

use super::Words;
use super::outcome::{Done, names};

/// The words of the question, as `ApprovalCall::words` gives them; `None` for a tool of both editions.
pub(super) fn words<'n>(tool: &str, lang: Lang) -> Option<Words<'n>> {
    (tool == "dismiss_notification")
        .then(|| (lang.asking_dismiss().to_owned(), vec![], lang.asking_do_dismiss()))
}

/// What a call did; `None` for a tool of both editions, or if its result does not say it.
pub(super) fn did(tool: &str, done: &Done<'_>) -> Option<String> {
    let lang = done.lang();
    Some(match tool {
        "check_sms" | "search_sms" => sms(tool, done)?,
        "read_sms" => lang.did_sms_one(done.returned("name").or_else(|| done.returned("from"))?),
        "send_sms" if done.list("candidates").is_some() => lang.did_contact(done.argument("to")?),
        "send_sms" => lang.did_draft(done.returned("to")?),
        "reply_sms" => lang.did_draft_reply(done.returned("to")?),
        "check_notifications" | "search_notifications" => notifications(tool, done)?,
        "read_notification" => lang.did_notification(done.returned("app_label")?),
        "reply_notification" => lang.did_draft_in_app(done.returned("app")?),
        "dismiss_notification" => lang.did_dismiss().to_owned(),
        _ => return None,
    })
}

fn sms(tool: &str, done: &Done<'_>) -> Option<String> {
    let (lang, found) = (done.lang(), done.list("messages")?);
    Some(match (tool, found.len()) {
        ("search_sms", count) => lang.did_sms_found(done.argument("query")?, count),
        (_, 0) => lang.did_no_sms().to_owned(),
        (_, count) => lang.did_sms(count, names(found, &["name", "from"], lang)),
    })
}

fn notifications(tool: &str, done: &Done<'_>) -> Option<String> {
    let (lang, found) = (done.lang(), done.list("notifications")?);
    Some(match (tool, found.len()) {
        ("search_notifications", count) => lang.did_notifications_found(done.argument("query")?, count),
        (_, 0) => lang.did_no_notifications().to_owned(),
        (_, count) => lang.did_notifications(count, names(found, &["app_label", "package_name"], lang)),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::fields::Fields;
    use super::*;

    type Case = (&'static str, Value, Value, &'static str, &'static str);

    fn check(cases: Vec<Case>) {
        for (tool, arguments, result, expected, erwartet) in cases {
            let given = arguments.as_object().unwrap();
            let says = |lang| {
                did(tool, &Done { fields: Fields { given, lang }, result: &result }).unwrap_or_default()
            };
            assert_eq!((says(Lang::ENGLISH).as_str(), says(Lang::of("de")).as_str()), (expected, erwartet));
        }
    }

    #[test]
    fn what_was_read_names_who_wrote_it() {
        let from = |who: &[&str]| json!({"messages": who.iter().map(|who| json!({"from": who})).collect::<Vec<_>>()});
        let apps = json!({"notifications": [{"app_label": "Signal"}, {"app_label": "", "package_name": "org.mail"}]});
        let search = json!({"query": "rent"});
        let (one, five) = (json!({"from": "+1", "name": "Ann"}), from(&["A", "B", "C", "D", "E"]));
        let found = "Searched your SMS for “rent” and found 1.";
        let gefunden = "Ihre SMS nach „rent“ durchsucht und 1 gefunden.";
        let (more, weitere) =
            ("Read 5 SMS from A, B, C and 2 more.", "5 SMS von A, B, C und 2 weiteren gelesen.");
        let gelesen = "2 Benachrichtigungen von Signal, org.mail gelesen.";
        check(vec![
            ("check_sms", json!({}), from(&[]), "Found no new SMS.", "Keine neuen SMS gefunden."),
            (
                "check_sms",
                json!({}),
                from(&["Ann", "Bo", "Ann"]),
                "Read 3 SMS from Ann, Bo.",
                "3 SMS von Ann, Bo gelesen.",
            ),
            ("check_sms", json!({}), five, more, weitere),
            ("search_sms", search, from(&["Ann"]), found, gefunden),
            ("read_sms", json!({}), one, "Read an SMS from Ann.", "Eine SMS von Ann gelesen."),
            ("check_notifications", json!({}), apps, "Read 2 notifications from Signal, org.mail.", gelesen),
            ("check_sms", json!({}), json!({"odd": 1}), "", ""),
        ]);
    }

    #[test]
    fn what_was_drafted_names_whom_it_is_for() {
        let (to, nobody) = (json!({"to": "+1"}), json!({"candidates": []}));
        let looked = ("Looked for “Ann” among your contacts.", "„Ann“ in Ihren Kontakten gesucht.");
        check(vec![
            (
                "send_sms",
                json!({"to": "Ann"}),
                to.clone(),
                "Drafted an SMS to +1.",
                "Eine SMS an +1 entworfen.",
            ),
            ("send_sms", json!({"to": "Ann"}), nobody, looked.0, looked.1),
            ("reply_sms", json!({}), to, "Drafted a reply to +1.", "Eine Antwort an +1 entworfen."),
            (
                "reply_notification",
                json!({}),
                json!({"app": "Signal"}),
                "Drafted a reply in Signal.",
                "Eine Antwort in Signal entworfen.",
            ),
        ]);
    }
}
