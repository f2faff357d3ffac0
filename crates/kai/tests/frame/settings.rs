//! The settings as a person uses them, in a real browser: keys, sliders and editors.

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::kit::{Daemon, Home, wait_for};
use crate::page::check;

const RIGHT: &str = "\u{e014}";
const LEFT: &str = "\u{e012}";
pub(crate) const HOSTILE: &str = "<img src=x onerror=\"alert(1)\"><b>bold</b>";

impl Browser {
    pub(crate) fn agent(&self, daemon: &Daemon) {
        self.open(&format!("http://{}/settings/agent", daemon.address));
        self.until_live();
    }

    /// Waits until a switch is on, or off.
    pub(crate) fn until_switched(&self, testid: &str, on: bool) {
        let script =
            format!("return document.querySelector('[data-testid={testid}]').ariaChecked === '{on}'");
        self.until(&format!("{testid} to be {on}"), &script);
    }

    /// Waits until the first element with this test id has exactly this text.
    pub(crate) fn until_text(&self, testid: &str, text: &str) {
        let text = Value::from(text);
        let script =
            format!("return document.querySelector('[data-testid={testid}]')?.innerText.trim() === {text}");
        self.until(&format!("{testid}: {text}"), &script);
    }

    fn value(&self, testid: &str) -> Value {
        self.run(&format!("return document.querySelector('[data-testid={testid}]').value"))
    }

    pub(crate) fn fine(&self) {
        assert_eq!(
            self.run("return document.querySelectorAll('main img, main b').length"),
            0,
            "text is text"
        );
        assert_eq!(self.complaints(), Vec::<String>::new());
    }
}

/// A setting as another home had it.
fn take_in(home: &Home, key: &str, value: &str) {
    let file = home.path().join("setting.json");
    let export = json!({"kai_export": 1, "sections": {"settings": {key: value}}});
    std::fs::write(&file, export.to_string()).unwrap();
    assert_eq!(home.run(&["import", file.to_str().unwrap(), "--yes"]).code, 0);
}

fn get(home: &Home, key: &str) -> String {
    home.run(&["settings", "get", key]).out.trim().to_owned()
}

fn focus(browser: &Browser, testid: &str) {
    browser.run(&format!("document.querySelector('[data-testid={testid}]').focus()"));
}

/// What only a script, a keyboard and an eye can show; everything else is tried without a browser.
#[test]
fn the_settings_are_used_with_keys_and_kept_true() {
    let browser = Browser::start();
    the_agent_page_is_used_with_keys_and_kept_true(&browser);
    crate::settings_phone::a_poll_turns_its_icon_until_the_phone_has_answered(&browser);
    crate::context::a_window_is_set_and_a_removed_model_leaves_no_heartbeat_without_one(&browser);
}

fn the_agent_page_is_used_with_keys_and_kept_true(browser: &Browser) {
    let home = Home::new();
    assert_eq!(home.run(&["settings", "set", "heartbeat_enabled", "false"]).code, 0);
    let daemon = home.start();
    browser.enter(&daemon);
    browser.agent(&daemon);
    // With the keyboard, and seen on another page without a reload.
    let first = browser.tab();
    browser.new_tab();
    browser.agent(&daemon);
    focus(browser, "heartbeat-toggle");
    browser.press(" ");
    browser.until_switched("heartbeat-toggle", true);
    assert_eq!(get(&home, "heartbeat_enabled"), "true");
    browser.switch_to(&first);
    browser.until_switched("heartbeat-toggle", true);
    browser.until_seen("heartbeat-interval");
    sliders_are_moved(browser, &home);
    what_is_typed_is_counted_and_kept(browser, &home);
    memories_wait_and_come_back(browser, &home);
    browser.fine();
    browser.leave();
}

fn sliders_are_moved(browser: &Browser, home: &Home) {
    let stored = |key: &str, value: &str| {
        wait_for(key, || get(home, key) == value);
    };
    for (testid, keys, told, key, value) in [
        ("heartbeat-interval", [RIGHT, RIGHT], "1h", "heartbeat_interval", "60"),
        ("heartbeat-start", [LEFT, LEFT], "6:00", "heartbeat_active_start", "6"),
        ("heartbeat-end", [RIGHT, RIGHT], "24:00", "heartbeat_active_end", "24"),
    ] {
        focus(browser, testid);
        for key in keys {
            browser.press(key);
        }
        let shown = browser.run(&format!(
            "return [document.querySelector('[data-testid={testid}]').ariaValueText,
                     document.querySelector('output[for={testid}]').innerText]"
        ));
        assert_eq!(shown, json!([told, told]));
        stored(key, value);
    }
    // What is set elsewhere moves it too, as long as nobody has it in hand.
    browser.run("document.activeElement.blur()");
    assert_eq!(home.run(&["settings", "set", "heartbeat_interval", "5"]).code, 0);
    browser.until(
        "the slider",
        "return document.querySelector('[data-testid=heartbeat-interval]').value === '0'",
    );
    // A day's budget and a model are chosen, and what is not on the list stays visible.
    for (key, testid, elsewhere, chosen) in [
        ("heartbeat_daily_tokens", "heartbeat-budget", "1234", "0"),
        ("heartbeat_model", "heartbeat-model", "gone", ""),
    ] {
        take_in(home, key, elsewhere);
        let select = format!("document.querySelector('[data-testid={testid}]')");
        browser.until(key, &format!("return {select}.value === '{elsewhere}'"));
        browser.run(&format!(
            "{select}.value = '{chosen}'; {select}.dispatchEvent(new Event('change', {{bubbles: true}}))"
        ));
        stored(key, chosen);
    }
}

fn what_is_typed_is_counted_and_kept(browser: &Browser, home: &Home) {
    let fill = |testid: &str, text: &str| {
        browser.run(&format!(
            "const t = document.querySelector('[data-testid={testid}]'); t.focus(); t.value = {};
             t.dispatchEvent(new Event('input', {{bubbles: true}})); t.blur()",
            Value::from(text)
        ));
    };
    fill("heartbeat-prompt", &"ä".repeat(4_001));
    browser.until_text("heartbeat-prompt-count", "4,001 / 4,000");
    browser.click("heartbeat-prompt-save");
    browser.until_says("at most 4,000 characters");
    assert_eq!(browser.value("heartbeat-prompt"), "ä".repeat(4_001), "it can be mended");
    assert_eq!(get(home, "heartbeat_prompt"), "");
    fill("heartbeat-prompt", "Only say what is urgent.\nBe brief.");
    browser.until_text("heartbeat-prompt-count", "34 / 4,000");
    // What happens elsewhere does not take it away.
    assert_eq!(home.run(&["settings", "set", "heartbeat_interval", "60"]).code, 0);
    browser.until(
        "the slider",
        "return document.querySelector('[data-testid=heartbeat-interval]').value === '5'",
    );
    assert_eq!(browser.value("heartbeat-prompt"), "Only say what is urgent.\nBe brief.");
    browser.until_text("heartbeat-prompt-count", "34 / 4,000");
    browser.click("heartbeat-prompt-save");
    browser.until_seen("heartbeat-prompt-reset");
    browser.until_says("Saved.");
    assert_eq!(get(home, "heartbeat_prompt"), "Only say what is urgent.\nBe brief.");
    browser.click("heartbeat-prompt-reset");
    browser.until_gone("heartbeat-prompt-reset");
    let own = "return document.querySelector('[data-testid=heartbeat-prompt]').value.startsWith('This is a heartbeat')";
    browser.until("Kai’s own", own);
}

fn memories_wait_and_come_back(browser: &Browser, home: &Home) {
    let file = home.path().join("older.json");
    let memory =
        json!([{"key": "bank", "content": HOSTILE, "category": "GENERAL", "hits": 0, "tainted": true}]);
    std::fs::write(&file, json!({"kai_export": 1, "sections": {"memory": memory}}).to_string()).unwrap();
    assert_eq!(home.run(&["import", file.to_str().unwrap(), "--yes"]).code, 0);
    browser.until_text("memory-waits", HOSTILE);
    check(browser, "a memory that waits");
    browser.picture("memory-waits");
    browser.click("memory-delete");
    browser.until_seen("undo");
    check(browser, "something to take back");
    browser.click("undo");
    browser.until_gone("undo");
    browser.until_seen("memory-waits");
}
