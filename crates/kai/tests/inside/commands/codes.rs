//! One-time codes: hidden from the assistant again when they were shown.

use kai_stand_ins::{Act, Provider};
use serde_json::json;

use super::phone::{ALICE, ready};

/// What was shown once leaves no more, though nothing around it says that it is a code; and no file holds it.
#[test]
fn a_code_that_is_hidden_again_leaves_in_no_spelling() {
    let acts = [
        Act::calls("read_sms", &json!({"id": 42})),
        Act::says("Type 482 913, that is 4-8-2-9-1-3."),
        Act::says("All right."),
    ];
    let provider = Provider::start(acts);
    let phone = ready();
    phone.home.add_model("mine", &provider);
    phone.inbox(&[(41, ALICE, "before"), (42, "+15550177", "Your login code is 482913. Tell nobody.")]);
    phone.run(&["sms", "poll"]);
    phone.run(&["settings", "set", "code_redaction_enabled", "false"]);
    phone.run(&["ask", "read it"]);
    assert!(provider.asked().pop().unwrap().raw.contains("482913"), "shown because nothing is hidden");
    phone.run(&["settings", "set", "code_redaction_enabled", "true"]);
    let export = |name: &str| {
        let file = phone.home.path().join(name);
        assert_eq!(phone.run(&["export", file.to_str().unwrap()]).code, 0);
        std::fs::read_to_string(file).unwrap()
    };
    let clean = |text: &str| !["482913", "482 913", "4-8-2-9-1-3"].iter().any(|code| text.contains(code));
    phone.run(&["ask", "--last", "and now?"]);
    let asked = provider.asked().pop().unwrap().raw;
    assert!(asked.contains("and now?") && asked.contains("[code]") && clean(&asked), "{asked}");
    let taken = export("one.json");
    assert!(taken.contains("[code]") && clean(&taken), "{taken}");
    let shown = phone.run(&["chats", "show", "1"]).out;
    assert!(shown.contains("482 913"), "the person still sees what was said: {shown}");
}
