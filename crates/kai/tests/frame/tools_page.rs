//! The pages of the settings in a real browser: their layout at every size, their menu, what scripts and keys do there,
//! and the demo, which has something to show on each of them.

#[cfg(feature = "foss")]
use serde_json::json;

use crate::ask::with_model;
use crate::browser::Browser;
#[cfg(feature = "foss")]
use crate::kit;
#[cfg(feature = "foss")]
use crate::kit::kai;
use crate::kit::{Daemon, Home};
use crate::page::{check, look};
use crate::provider::{Act, Provider};

const SIZES: [(u32, u32, &str); 3] = [(360, 740, "phone"), (768, 900, "tablet"), (1280, 800, "desktop")];

/// The page as all eyes see it: three widths, light and dark, with a picture of each where somebody wants them.
fn at_every_size(browser: &Browser, name: &str) {
    for (width, height, size) in SIZES {
        for (theme, dark) in [("light", false), ("dark", true)] {
            look(browser, width, height, dark);
            check(browser, &format!("{name} at {width}, {theme}"));
            browser.picture(&format!("{name}-{size}-{theme}"));
        }
    }
    look(browser, 1280, 800, false);
}

/// Goes to a page of the settings and waits until it is kept true.
pub(crate) fn open(browser: &Browser, daemon: &Daemon, path: &str) {
    browser.open(&format!("http://{}{path}", daemon.address));
    browser.until_live();
}

fn card(tool: &str) -> String {
    format!("document.querySelector('[data-testid=tool-card][data-tool={tool}]')")
}

fn is_on(browser: &Browser, tool: &str, on: bool) {
    let script = format!("return {}.querySelector('[role=switch]').ariaChecked === '{on}'", card(tool));
    browser.until(&format!("{tool} to be {on}"), &script);
}

/// What only a layout, a script and keys can show; everything else is tried without a browser.
#[test]
fn the_settings_fit_every_screen_and_keep_their_places() {
    let provider = Provider::start([Act::says("Yes.")]);
    let home = with_model(&provider);
    let open_to_all = ["--name", "open", "--base-url", "http://192.0.2.1/v1", "--model", "m"];
    assert_eq!(home.run(&[&["models", "add", "openai-compatible"], &open_to_all[..]].concat()).code, 0);
    assert_eq!(home.run(&["ask", "<img src=x onerror=alert(1)> \u{202e}gnp.exe"]).code, 0);
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    tools_are_turned_anywhere_on_their_cards(&browser, &daemon);
    the_grid_has_one_two_or_three_columns(&browser);
    for (path, name, seen) in [
        ("/settings/tools", "tools", "tool-lacks"),
        ("/settings/phones", "phones", "phone-bridge"),
        ("/settings/mcp?show=paste", "mcp", "guests-config"),
        ("/settings/models", "models", "model-unencrypted"),
        ("/settings/general", "general", "sessions"),
        ("/ledger", "ledger", "ledger-line"),
        ("/ledger?open=record:1", "record", "ledger-bytes"),
    ] {
        open(&browser, &daemon, path);
        browser.until_seen(seen);
        if name == "models" {
            browser.run("document.querySelector('[data-model=mine] [data-testid=model-test]').click()");
            browser.until_says("It works: it answered “Yes.”");
        }
        at_every_size(&browser, name);
    }
    filters_stand_in_rows(&browser, &daemon);
    a_theme_is_chosen_and_a_file_is_looked_at(&browser, &daemon, &home);
    the_menu_is_one_row_whose_pages_keep_their_places(&browser, &daemon);
    assert_eq!(browser.complaints(), Vec::<String>::new());
    going_through_many_pages_holds_up_nobody(&browser, &daemon, &home);
}

fn tools_are_turned_anywhere_on_their_cards(browser: &Browser, daemon: &Daemon) {
    open(browser, daemon, "/settings/tools");
    is_on(browser, "web_search", true);
    // Here its lower left corner, far from the switch.
    browser.run(&format!(
        "const card = {}; card.scrollIntoView({{block: 'center'}}); const box = card.getBoundingClientRect();
         document.elementFromPoint(box.left + 6, box.bottom - 6).click()",
        card("web_search")
    ));
    is_on(browser, "web_search", false);
    browser.run(&format!("{}.querySelector('button').focus()", card("fetch_url")));
    browser.press(" ");
    is_on(browser, "fetch_url", false);
    let focused = browser.run("return document.activeElement.closest('[data-tool]')?.dataset.tool");
    assert_eq!(focused, "fetch_url", "the focus stays");
}

fn the_grid_has_one_two_or_three_columns(browser: &Browser) {
    for (width, columns) in [(360, 1), (499, 1), (500, 2), (799, 2), (800, 3), (899, 3), (900, 3), (1280, 3)]
    {
        look(browser, width, 800, false);
        let lefts = "return new Set([...document.querySelectorAll('[data-testid=tool-card]')]
            .map(e => Math.round(e.getBoundingClientRect().left))).size";
        assert_eq!(browser.run(lefts), columns, "at {width}");
    }
    let background = browser.run(&format!(
        "const canvas = document.createElement('canvas').getContext('2d');
         canvas.fillStyle = getComputedStyle({}).backgroundColor;
         canvas.fillRect(0, 0, 1, 1); return canvas.getImageData(0, 0, 1, 1).data[3]",
        card("get_local_time")
    ));
    let alpha = background.as_u64().unwrap();
    assert!((1..255).contains(&alpha), "semi-transparent: {alpha}");
}

fn filters_stand_in_rows(browser: &Browser, daemon: &Daemon) {
    open(browser, daemon, "/ledger?kind=request&open=record:1");
    let uneven = "const tops = (what, side) => new Set([...document.querySelectorAll(`.filters ${what}`)]
            .map((e) => Math.round(e.getBoundingClientRect()[side]))).size;
        return [tops('label', 'top'), tops(':is(input, select)', 'top'), tops(':is(input, select)', 'bottom')]";
    assert_eq!(browser.run(uneven), serde_json::json!([2, 2, 2]), "two rows");
    let apart = "const [first, second] = ['name', 'text'].map((it) => document.getElementById(`ledger-${it}`).getBoundingClientRect());
        return second.top - first.bottom < 44";
    assert_eq!(browser.run(apart), true, "one close below the other");
    at_every_size(browser, "filters");
}

fn a_theme_is_chosen_and_a_file_is_looked_at(browser: &Browser, daemon: &Daemon, home: &Home) {
    open(browser, daemon, "/settings/general");
    let background = || browser.run("return getComputedStyle(document.body).backgroundColor");
    let light = background();
    browser.click("theme-dark");
    browser.until("the dark", "return document.documentElement.dataset.theme === 'dark'");
    browser.until_live();
    assert_ne!(background(), light);
    browser.click("theme-system");
    browser.until("the system's", "return document.documentElement.dataset.theme === 'system'");
    browser.until_live();
    let file = home.path().join("from.json");
    std::fs::write(&file, r#"{"kai_export": 1, "sections": {"memory": 5, "settings": {"theme": "dark"}}}"#)
        .unwrap();
    browser.type_into("import-file", file.to_str().unwrap());
    browser.click("import-look");
    browser.until_seen("import-preview");
    at_every_size(browser, "import");
}

/// What somebody aims at stays where it is, on whichever page they are.
fn the_menu_is_one_row_whose_pages_keep_their_places(browser: &Browser, daemon: &Daemon) {
    look(browser, 360, 740, false);
    let mut widths = vec![];
    for path in ["/settings/agent", "/settings/models", "/settings/general", "/ledger"] {
        open(browser, daemon, path);
        let rows = "return new Set([...document.querySelectorAll('.pages a')].map((e) => {
            const { top, bottom } = e.getBoundingClientRect(); return Math.round((top + bottom) / 2); })).size";
        assert_eq!(browser.run(rows), 1, "{path}");
        widths.push(
            browser.run("return [...document.querySelectorAll('.pages li')].map((e) => e.offsetWidth)"),
        );
        let seen = "const { left, right } = document.querySelector('.pages [aria-current]').getBoundingClientRect();
            return left > document.querySelector('.to-chat').getBoundingClientRect().right && right <= innerWidth";
        assert_eq!(browser.run(seen), true, "{path} is in sight");
    }
    assert!(widths.iter().all(|page| *page == widths[0]), "{widths:?}");
}

/// A browser has six connections for one address, and keeps pages that were left for the way back.
fn going_through_many_pages_holds_up_nobody(browser: &Browser, daemon: &Daemon, home: &Home) {
    for _ in 0..3 {
        for path in
            ["/settings/tools", "/settings/models", "/settings/phones", "/settings/general", "/ledger"]
        {
            open(browser, daemon, path);
        }
    }
    browser.run("history.back()");
    browser.until("the page before", "return location.pathname === '/settings/general'");
    browser.until_live();
    assert_eq!(home.run(&["settings", "set", "language", "de"]).code, 0);
    browser.until(
        "it to be kept true",
        "return document.querySelector('[data-testid=language-de]').ariaPressed === 'true'",
    );
}

/// With what the demo has lived through; also the pictures of the documentation.
#[cfg(feature = "foss")]
#[test]
fn the_demo_tells_its_story_and_has_something_to_show_on_every_page() {
    let home = Home::new();
    let daemon = Daemon::start(kai(home.path()).args(["serve", "--demo", "--port", "0"]));
    let demo = home.path().join("demo");
    let browser = Browser::start();
    look(&browser, 1280, 800, false);
    browser.enter(&daemon);
    browser.until_says("everything is simulated");
    browser.until_seen("draft-card");
    browser.until_seen("heartbeat-banner");
    assert!(browser.texts("draft-card")[0].contains("a heartbeat"), "{:?}", browser.texts("draft-card"));
    browser.type_into("chat-input", "When is Grandma's dinner?\u{e007}");
    browser.until_says("Answered by");
    for (size, width, height) in SIZES.map(|(width, height, size)| (size, width, height)) {
        for (theme, dark) in [("light", false), ("dark", true)] {
            look(&browser, width, height, dark);
            check(&browser, &format!("{size} {theme}"));
            browser.picture(&format!("{size}-{theme}"));
        }
    }
    look(&browser, 1280, 800, false);
    browser.click("draft-send");
    browser.until_says("handed to the phone");
    the_agent_page_has_much_and_is_light(&browser, &daemon, &demo);
    every_other_page_is_the_demos(&browser, &daemon);
    browser.fine();
    // Nor does a command look for what the demo leaves alone, whether it runs or not.
    let doctor = || kit::Done::from(kai(&demo).arg("doctor").output().unwrap());
    let awake = doctor().out;
    assert!(awake.contains("ok    shell          Not in the demo"), "{awake}");
    drop(daemon);
    let asleep = doctor();
    assert!(asleep.code == 0 && asleep.out.contains("kai serve --demo"), "{asleep:?}");
    assert!(!asleep.out.contains("BAD") && !asleep.out.contains("Termux"), "{asleep:?}");
}

#[cfg(feature = "foss")]
fn the_agent_page_has_much_and_is_light(browser: &Browser, daemon: &Daemon, demo: &std::path::Path) {
    for (tool, arguments) in [
        ("memory_store", json!({"key": "Grandma’s birthday", "content": "March 12. She likes tulips."})),
        ("memory_store", json!({"key": "Tea", "content": "Green, and never after six."})),
        (
            "schedule_task",
            json!({"description": "Weekly review", "prompt": "Say what is open this week.", "cron": "0 9 * * 1"}),
        ),
    ] {
        let done = kai(demo).args(["tools", "call", tool, &arguments.to_string()]).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }
    browser.agent(daemon);
    browser.until_says("Sent you a report");
    let bytes = browser.run(
        "const parts = [location.href, document.querySelector('[rel=stylesheet]').href, document.scripts[0].src];
         return Promise.all(parts.map(p => fetch(p).then(r => r.arrayBuffer()))).then(b => b.reduce((n, b) => n + b.byteLength, 0))",
    );
    assert!(bytes.as_u64().unwrap() <= 88_000, "{bytes} bytes to be read");
    at_every_size(browser, "agent");
}

#[cfg(feature = "foss")]
fn every_other_page_is_the_demos(browser: &Browser, daemon: &Daemon) {
    for (path, name, words) in [
        ("/inbox", "demo-inbox", "Parcel locker 12"),
        ("/settings/tools", "demo-tools", "Not in the demo: it doesn’t touch your machine."),
        ("/settings/models", "demo-models", "In your own Kai you add models here."),
        ("/settings/phones", "demo-phones", "Both phones are simulated."),
        ("/settings/mcp", "demo-mcp", "This server is simulated."),
        ("/ledger", "demo-ledger", "bytes to demo"),
    ] {
        open(browser, daemon, path);
        browser.until_says(words);
        browser.until_says("everything is simulated");
        let said = browser.run("return document.body.innerText");
        for advice in ["xdg-utils", "bubblewrap", "Termux:API."] {
            assert!(!said.as_str().unwrap().contains(advice), "{advice} would change nothing on {path}");
        }
        for (width, height, dark, picture) in [
            (1280, 800, false, "desktop-light"),
            (768, 900, true, "tablet-dark"),
            (360, 740, false, "phone-light"),
        ] {
            look(browser, width, height, dark);
            check(browser, &format!("{name} {picture}"));
            browser.picture(&format!("{name}-{picture}"));
        }
        look(browser, 1280, 800, false);
    }
}
