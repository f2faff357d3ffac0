//! `/ledger` in a real browser: what left, who saw it, whether it is whole.

use serde_json::json;

use crate::ask::with_model;
use crate::browser::Browser;
use crate::provider::{Act, Provider};
use crate::tools_page::{at_every_size, open, weight};

const HOSTILE: &str = "<img src=x onerror=alert(1)> \u{202e}gnp.exe";

fn kinds(browser: &Browser) -> Vec<String> {
    let script =
        "return [...document.querySelectorAll('[data-testid=ledger-line]')].map(e => e.dataset.kind)";
    serde_json::from_value(browser.run(script)).unwrap()
}

#[test]
fn what_left_and_ran_is_filtered_opened_whole_and_checked() {
    let tea = json!({"key": "tea", "content": HOSTILE});
    let provider =
        Provider::start([Act::calls("memory_store", &tea), Act::says("Noted."), Act::says("Green.")]);
    let home = with_model(&provider);
    home.run(&["ask", HOSTILE]);
    home.run(&["ask", "Which tea?"]);
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    open(&browser, &daemon, "/ledger");
    assert_eq!(
        kinds(&browser),
        ["request", "request", "tool_result", "tool_call", "request"],
        "newest first"
    );
    assert_eq!(browser.run("return document.querySelectorAll('main img').length"), 0);
    let text = browser.run("return document.querySelector('main').innerText");
    assert!(!text.as_str().unwrap().contains('\u{202e}'), "what turns text around is spelled out");
    // A new one comes by itself.
    home.run(&["ask", "And now?"]);
    browser.until("the newest", "return document.querySelectorAll('[data-testid=ledger-line]').length === 6");
    at_every_size(&browser, "ledger");
    browser.until_says("The model called");
    for (query, expected) in [
        ("kind=tool_call", vec!["tool_call"]),
        ("name=mine", vec!["request"; 4]),
        ("name=memory_store", vec!["tool_result", "tool_call"]),
        ("conversation=2", vec!["request"]),
        ("text=ONERROR", vec!["tool_call"]),
        ("day=2001-01-01", vec![]),
        ("kind=request&name=nobody", vec![]),
    ] {
        open(&browser, &daemon, &format!("/ledger?{query}"));
        assert_eq!(kinds(&browser), expected, "{query}");
    }
    open(&browser, &daemon, "/ledger?day=yesterday&conversation=");
    browser.until_says("A day looks like");
    // The form leads to such an address.
    open(&browser, &daemon, "/ledger");
    browser.click("ledger-filters");
    browser.type_into("ledger-text", "onerror");
    browser.click("ledger-filter");
    browser.until("the address", "return location.search.includes('text=onerror')");
    browser.until_live();
    assert_eq!(kinds(&browser), ["tool_call"]);
    browser.click("ledger-open");
    browser.until_seen("ledger-record");
    browser.until_says("Arguments");
    // The exact bytes of the first request.
    open(&browser, &daemon, "/ledger?open=record:1");
    let left = provider.asked()[0].raw.clone();
    let shown = browser.texts("ledger-bytes").remove(0);
    assert!(shown.contains("<img src=x onerror=alert(1)>") && shown.starts_with(&left[..40]), "{shown}");
    at_every_size(&browser, "record");
    let whole = browser.run("return fetch('/ledger/1/bytes').then(r => r.text())");
    assert_eq!(whole, left.as_str(), "to the byte");
    browser.click("ledger-verify");
    browser.until_says("All 6 records were what they were");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_long_ledger_is_read_page_by_page_and_says_how_long_it_is_kept() {
    let provider = Provider::start([Act::says("Yes.")]);
    let home = with_model(&provider);
    for _ in 0..24 {
        home.run(&["tools", "call", "get_local_time", "{}"]);
    }
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    open(&browser, &daemon, "/ledger");
    assert_eq!(kinds(&browser).len(), 25);
    browser.until_says("You called");
    browser.click("ledger-open");
    browser.until_seen("ledger-record");
    assert!(!browser.texts("ledger-record")[0].contains("Conversation"), "it was in none");
    open(&browser, &daemon, "/ledger?kind=tool_result&open=record:1");
    let uneven = "const tops = (what, side) => new Set([...document.querySelectorAll(`.filters ${what}`)]
            .map((e) => Math.round(e.getBoundingClientRect()[side]))).size;
        return [tops('label', 'top'), tops(':is(input, select)', 'top'), tops(':is(input, select)', 'bottom')]";
    browser.look(1280, 800, false);
    assert_eq!(browser.run(uneven), json!([2, 2, 2]), "two rows");
    let apart = "const [first, second] = ['name', 'text'].map((it) => document.getElementById(`ledger-${it}`).getBoundingClientRect());
        return second.top - first.bottom < 44";
    assert_eq!(browser.run(apart), true, "one close below the other");
    at_every_size(&browser, "filters");
    open(&browser, &daemon, "/ledger");
    browser.click("ledger-older");
    browser.until("older ones", "return location.search.includes('before=')");
    browser.until_live();
    assert_eq!(kinds(&browser).len(), 23);
    browser.click("ledger-newest");
    browser.until("the newest", "return !location.search.includes('before=')");
    browser.until_live();
    // Control and A mark what is there, so that it is typed over.
    browser.type_into("ledger-retention", "\u{e009}a\u{e000}30");
    browser.click("ledger-retention-save");
    browser.until_says("Saved.");
    assert_eq!(home.run(&["settings", "get", "ledger_retention_days"]).out, "30\n");
    let path = home.run(&["link"]).out.trim().split_once(&daemon.address).unwrap().1.to_owned();
    let cookie = daemon.get(&path, "").header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let bytes = weight(&daemon, &cookie, "/ledger");
    assert!(bytes <= 60_000, "a full page weighs {bytes}");
    let cookie_free = daemon.get("/ledger/1/bytes", "");
    assert_eq!(cookie_free.status, 401);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[cfg(feature = "foss")]
#[test]
fn who_saw_a_message_is_answered_on_the_page() {
    use crate::kit::{Daemon, Done, Home, kai};

    let home = Home::new();
    let daemon = Daemon::start(kai(home.path()).args(["serve", "--demo", "--port", "0"]));
    let inside = home.path().join("demo");
    let demo = |args: &[&str]| -> Done { kai(&inside).args(args).output().unwrap().into() };
    let id = demo(&["sms", "list", "--json"]).json()[0]["id"].as_i64().unwrap();
    assert_eq!(demo(&["ask", "any new messages?"]).code, 0);
    let saw = demo(&["ledger", "who", &id.to_string(), "--json"]).json().as_array().unwrap().len();
    let browser = Browser::start();
    browser.enter(&daemon);
    open(&browser, &daemon, &format!("/ledger?who={id}"));
    assert!(saw > 0 && kinds(&browser) == vec!["request"; saw], "{saw} {:?}", kinds(&browser));
    open(&browser, &daemon, "/ledger?who=999999");
    assert_eq!(browser.texts("ledger-none"), ["No request held it."]);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
