//! `/settings/tools` and `/settings/phones` in a real browser: the grid, its switches, and what is connected.

use std::time::Duration;

use serde_json::{Value, json};

use crate::ask::with_model;
use crate::browser::Browser;
#[cfg(feature = "foss")]
use crate::kit;
use crate::kit::{Daemon, Home, kai};
use crate::page::check;
use crate::phone::Phone;
use crate::provider::{Act, Provider};

pub(crate) const SIZES: [(u32, u32, &str); 3] =
    [(360, 740, "phone"), (768, 1024, "tablet"), (1280, 800, "desktop")];

/// The page as all eyes see it: three widths, light and dark, with a picture of each where somebody wants them.
pub(crate) fn at_every_size(browser: &Browser, name: &str) {
    for (width, height, size) in SIZES {
        for dark in [false, true] {
            browser.look(width, height, dark);
            // Colours ease; they are judged when they have arrived.
            std::thread::sleep(Duration::from_millis(400));
            let theme = if dark { "dark" } else { "light" };
            check(browser, &format!("{name} at {width}, {theme}"));
            browser.picture(&format!("{name}-{size}-{theme}"));
        }
    }
    browser.look(1280, 800, false);
}

/// Goes to a page of the settings and waits until it is kept true.
pub(crate) fn open(browser: &Browser, daemon: &Daemon, path: &str) {
    browser.open(&format!("http://{}{path}", daemon.address));
    browser.until_live();
}

/// The page with its style and script, as it goes over the wire.
pub(crate) fn weight(daemon: &Daemon, cookie: &str, path: &str) -> usize {
    let page = daemon.get(path, cookie).text;
    let assets = page.split('"').filter(|part| part.starts_with("/assets/app."));
    let assets: usize = assets.map(|asset| daemon.get(asset, cookie).text.len()).sum();
    page.len() + assets
}

fn card(tool: &str) -> String {
    format!("document.querySelector('[data-testid=tool-card][data-tool={tool}]')")
}

fn is_on(browser: &Browser, tool: &str, on: bool) {
    let script = format!("return {}.querySelector('[role=switch]').ariaChecked === '{on}'", card(tool));
    browser.until(&format!("{tool} to be {on}"), &script);
}

fn offered(provider: &Provider) -> Vec<String> {
    let last = provider.asked().pop().unwrap().body["tools"].clone();
    let tools = last.as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_toggle_counts_in_the_next_request_and_a_command_moves_the_open_page() {
    let provider = Provider::start([Act::says("Yes.")]);
    let home = with_model(&provider);
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    open(&browser, &daemon, "/settings/tools");
    let shown = browser.run("return [...document.querySelectorAll('[data-tool]')].map(e => e.dataset.tool)");
    assert_eq!(
        shown,
        json!([
            "get_local_time",
            "open_url",
            "send_notification",
            "create_calendar_event",
            "set_alarm",
            "shell_command",
            "web_search",
            "fetch_url",
            "get_location_from_ip",
        ]),
        "only those that have a switch of their own"
    );
    is_on(&browser, "web_search", true);
    is_on(&browser, "shell_command", false);
    home.run(&["ask", "One?"]);
    assert!(offered(&provider).contains(&"web_search".to_owned()));
    // Anywhere on the card: here its lower left corner, far from the switch.
    browser.run(&format!(
        "const card = {}; card.scrollIntoView({{block: 'center'}}); const box = card.getBoundingClientRect();
         document.elementFromPoint(box.left + 6, box.bottom - 6).click()",
        card("web_search")
    ));
    is_on(&browser, "web_search", false);
    assert_eq!(home.run(&["settings", "get", "tool_enabled_web_search"]).out, "false\n");
    home.run(&["ask", "Two?"]);
    assert!(!offered(&provider).contains(&"web_search".to_owned()), "gone from the next request");
    assert_eq!(home.run(&["tools", "enable", "web_search"]).code, 0);
    is_on(&browser, "web_search", true);
    home.run(&["ask", "Three?"]);
    assert!(offered(&provider).contains(&"web_search".to_owned()));
    // With the keyboard.
    browser.run(&format!("{}.querySelector('button').focus()", card("fetch_url")));
    browser.press(" ");
    is_on(&browser, "fetch_url", false);
    let focused = browser.run("return document.activeElement.closest('[data-tool]')?.dataset.tool");
    assert_eq!(focused, "fetch_url", "the focus stays");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_grid_has_one_two_or_three_columns() {
    let home = Home::new();
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    open(&browser, &daemon, "/settings/tools");
    for (width, columns) in [(360, 1), (499, 1), (500, 2), (799, 2), (800, 3), (899, 3), (900, 3), (1280, 3)]
    {
        browser.look(width, 800, false);
        let lefts = "return new Set([...document.querySelectorAll('[data-testid=tool-card]')]
            .map(e => Math.round(e.getBoundingClientRect().left))).size";
        assert_eq!(browser.run(lefts), columns, "at {width}");
    }
    let background = browser.run(&format!(
        "const canvas = document.createElement('canvas').getContext('2d');
         canvas.fillStyle = getComputedStyle({}.querySelector('button')).backgroundColor;
         canvas.fillRect(0, 0, 1, 1); return canvas.getImageData(0, 0, 1, 1).data[3]",
        card("web_search")
    ));
    let alpha = background.as_u64().unwrap();
    assert!((1..255).contains(&alpha), "semi-transparent: {alpha}");
    at_every_size(&browser, "tools");
    assert!(
        browser.texts("tool-lacks").iter().any(|lacks| lacks.contains("notification")),
        "what is missing is said"
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn what_tools_use_is_chosen_and_a_key_is_never_shown() {
    let home = Home::new();
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    open(&browser, &daemon, "/settings/tools");
    browser.click("search-backend-brave");
    browser.until_seen("brave-key");
    browser.type_into("brave-key", "BSA-hidden-17");
    browser.click("brave-key-save");
    browser.until_says("One is stored");
    assert_eq!(home.run(&["settings", "get", "web_search_brave_key"]).out, "set\n");
    open(&browser, &daemon, "/settings/tools");
    let html = browser.run("return document.documentElement.outerHTML");
    assert!(!html.as_str().unwrap().contains("hidden-17"));
    assert_eq!(browser.run("return document.querySelector('[data-testid=brave-key]').value"), "");
    browser.run("document.querySelector('[data-testid=result-limit]').removeAttribute('max')");
    browser.type_into("result-limit", "999999");
    browser.click("result-limit-save");
    browser.until_says("a whole number from 500 to 200000");
    assert_eq!(home.run(&["settings", "get", "tool_result_limit"]).out, "8000\n");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_phones_page_says_what_is_connected_what_it_lacks_and_how_to_connect_one() {
    let home = Home::new();
    let daemon = Daemon::start(kai(home.path()).args(["serve", "--port", "0"]));
    let browser = Browser::start();
    browser.enter(&daemon);
    open(&browser, &daemon, "/settings/phones");
    assert!(browser.texts("phone-bridge")[0].contains("Nothing is connected"));
    let abilities = browser.texts("ability").join("\n");
    assert_eq!(abilities.contains("Read SMS"), cfg!(feature = "foss"), "{abilities}");
    assert_eq!(abilities.contains("Read notifications"), cfg!(feature = "foss"), "{abilities}");
    assert!(abilities.contains("Not here"));
    browser.until_says("pkg install termux-api");
    at_every_size(&browser, "phones");
    assert_eq!(browser.complaints(), Vec::<String>::new());
    browser.open("about:blank");
    drop(daemon);
    let phone = Phone::new(&["termux-notification", "termux-open-url"]);
    phone.program("termux-sms-list", "echo '[]'");
    phone.program("termux-sms-send", "cat > /dev/null");
    let daemon = phone.start();
    browser.enter(&daemon);
    open(&browser, &daemon, "/settings/phones");
    assert!(browser.texts("phone-bridge")[0].contains("Termux"), "{:?}", browser.texts("phone-bridge"));
    let row = |what: &str| -> String {
        browser.texts("ability").into_iter().find(|row| row.starts_with(what)).unwrap_or_default()
    };
    assert!(row("Show you notifications").contains("Ready"));
    if cfg!(feature = "foss") {
        assert!(row("Read SMS").contains("Off"), "{}", row("Read SMS"));
        let on = phone.command().args(["settings", "set", "sms_send_enabled", "true"]).output().unwrap();
        assert!(on.status.success());
        browser.until(
            "sending to be ready",
            "return [...document.querySelectorAll('[data-testid=ability]')].some(e => e.innerText.startsWith('Send SMS') && e.innerText.includes('Ready'))",
        );
        open(&browser, &daemon, "/settings/general");
        browser.until_says("READ_SMS");
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// What somebody aims at stays where it is, on whichever page they are.
#[test]
fn the_menu_is_one_row_whose_pages_keep_their_places() {
    let home = Home::new();
    let daemon = home.start();
    let browser = Browser::start();
    browser.look(360, 740, false);
    browser.enter(&daemon);
    let mut widths = vec![];
    for path in ["/settings/agent", "/settings/models", "/settings/general", "/ledger"] {
        open(&browser, &daemon, path);
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
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// A browser has six connections for one address, and keeps pages that were left for the way back.
#[test]
fn going_through_many_pages_holds_up_nobody() {
    let home = Home::new();
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    for _ in 0..3 {
        for path in
            ["/settings/tools", "/settings/models", "/settings/phones", "/settings/general", "/ledger"]
        {
            open(&browser, &daemon, path);
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
fn the_demo_has_something_to_show_on_every_page() {
    let home = Home::new();
    let daemon = Daemon::start(kai(home.path()).args(["serve", "--demo", "--port", "0"]));
    let browser = Browser::start();
    browser.look(1280, 800, false);
    browser.enter(&daemon);
    browser.until_seen("draft-card");
    for (path, name, words) in [
        ("/settings/tools", "demo-tools", "Not in the demo: nothing here touches your machine."),
        ("/settings/models", "demo-models", "In your own Kai models are added here."),
        ("/settings/phones", "demo-phones", "A simulated phone"),
        ("/ledger", "demo-ledger", "bytes went to"),
    ] {
        open(&browser, &daemon, path);
        browser.until_says(words);
        browser.until_says("all is simulated");
        let said = browser.run("return document.body.innerText");
        for advice in ["xdg-utils", "bubblewrap", "Termux:API."] {
            assert!(!said.as_str().unwrap().contains(advice), "{advice} would change nothing on {path}");
        }
        for (width, height, dark, look) in [
            (1280, 800, false, "desktop-light"),
            (768, 900, true, "tablet-dark"),
            (360, 740, false, "phone-light"),
        ] {
            browser.look(width, height, dark);
            std::thread::sleep(Duration::from_millis(400));
            check(&browser, &format!("{name} {look}"));
            browser.picture(&format!("{name}-{look}"));
        }
        browser.look(1280, 800, false);
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
    // Nor does a command look for what the demo leaves alone, whether it runs or not.
    let doctor = || kit::Done::from(kai(&home.path().join("demo")).arg("doctor").output().unwrap());
    let awake = doctor().out;
    assert!(awake.contains("ok    shell          Not in the demo"), "{awake}");
    drop(daemon);
    let asleep = doctor();
    assert!(asleep.code == 0 && asleep.out.contains("kai serve --demo"), "{asleep:?}");
    assert!(!asleep.out.contains("BAD") && !asleep.out.contains("Termux"), "{asleep:?}");
}

#[test]
fn every_page_of_the_settings_is_light_and_needs_no_script() {
    let home = Home::new();
    let daemon = home.start();
    let cookie = daemon.sign_in();
    let csrf = daemon.get("/settings/tools", &cookie).csrf();
    for path in [
        "/settings/tools",
        "/settings/models",
        "/settings/models?open=preset:openai",
        "/settings/phones",
        "/settings/general",
        "/ledger",
    ] {
        assert_eq!(daemon.get(path, "").status, 401, "{path}");
        let page = daemon.get(path, &cookie);
        assert_eq!(page.status, 200, "{path}");
        for forbidden in ["<script>", "onclick=", "style=\""] {
            assert!(!page.text.contains(forbidden), "{forbidden} on {path}");
        }
        let bytes = weight(&daemon, &cookie, path);
        assert!(bytes <= 60_000, "{path} weighs {bytes}");
    }
    let first = daemon.get("/settings", &cookie);
    assert_eq!((first.status, first.header("location")), (303, Some("/settings/agent")));
    let headers = [("Cookie", cookie.as_str()), ("Referer", "http://127.0.0.1/settings/tools")];
    let body = format!("csrf={csrf}&page=tools&card=tools&key=tool_enabled_fetch_url&value=false");
    let turned = daemon.send("POST", "/settings/set", &headers, &body);
    assert_eq!((turned.status, turned.header("location")), (303, Some("/settings/tools#tools")));
    let listed = home.run(&["tools", "list", "--json"]).json();
    let fetch: Vec<&Value> =
        listed.as_array().unwrap().iter().filter(|tool| tool["name"] == "fetch_url").collect();
    assert_eq!(fetch[0]["enabled"], false);
}
