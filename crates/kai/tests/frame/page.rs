//! The page as a person uses it, in a real browser: chat, tools, stop, list, keyboard, looks.

use serde_json::{Value, json};

use crate::ask::with_model;
use crate::browser::Browser;
use crate::kit::{CUT_OFF, Daemon, Home, KAI, kai, program};
use crate::provider::{Act, Provider};

pub(crate) const ENTER: &str = "\u{e007}";
const TAB: &str = "\u{e004}";

/// What is wrong with the page for eyes, ears and keyboards.
pub(crate) fn check(browser: &Browser, name: &str) {
    // Colours ease; they are judged when they have arrived, however long a busy machine takes.
    browser
        .until("colours to arrive", "return !document.getAnimations().some(a => a instanceof CSSTransition)");
    let wrong = browser.run(include_str!("check.js"));
    assert_eq!(wrong, json!([]), "{name}");
}

/// Gives the window this size and look, and waits until the page has heard of it.
pub(crate) fn look(browser: &Browser, width: u32, height: u32, dark: bool) {
    browser.look(width, height, dark);
    let heard = format!(
        "return innerWidth === {width} && innerHeight === {height}
             && matchMedia('(prefers-color-scheme: dark)').matches === {dark}"
    );
    browser.until("the page to hear of its size", &heard);
}

pub(crate) fn say(browser: &Browser, text: &str) {
    browser.type_into("chat-input", &format!("{text}{ENTER}"));
}

pub(crate) fn until_answered(browser: &Browser, count: usize) {
    let script = format!("return document.querySelectorAll('.foot').length === {count}");
    browser.until("an answer", &script);
}

#[test]
fn a_chat_is_had_with_mouse_and_keyboard_and_looks_right() {
    let browser = Browser::start();
    an_answer_streams_in_can_do_nothing_is_copied_and_looks_right(&browser);
    the_waiting_row_shows_running_tools_and_everything_can_be_done_with_the_keyboard(&browser);
}

#[test]
fn a_page_without_a_model_or_a_daemon_says_so_and_loses_nothing() {
    let browser = Browser::start();
    without_a_model_the_page_says_what_to_do_and_keeps_what_was_typed(&browser);
    an_open_page_holds_up_no_stop_and_finds_the_next_daemon(&browser);
}

fn an_answer_streams_in_can_do_nothing_is_copied_and_looks_right(browser: &Browser) {
    let code = "Run this:\n\n```sh\nls -l\n```\n\nThat is <button data-copy>all</button>.";
    let long = format!(
        "# Title\n\n{}\n\n- one\n- two\n\n`code` and a [link](https://example.org/)\n\n```\nlet x = 1;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |",
        "word ".repeat(200)
    );
    let provider = Provider::start([
        Act::says_in_steps(&PIECES),
        Act::says("Yes."),
        Act::says(code),
        Act::calls("get_local_time", &json!({})),
        Act::says(&long),
    ]);
    let home = with_model(&provider);
    let daemon = home.start();
    browser.enter(&daemon);
    it_streams_in(browser, &daemon, &provider);
    browser.open(&format!("http://{}/new", daemon.address));
    browser.until_live();
    say(browser, "Code");
    until_answered(browser, 1);
    code_is_copied_alone(browser);
    assert_eq!(home.run(&["ask", &"a very long title ".repeat(10)]).code, 0);
    browser.open(&format!("http://{}/", daemon.address));
    browser.until_live();
    for (width, height) in [(360, 740), (768, 1024), (1280, 800)] {
        for dark in [false, true] {
            look(browser, width, height, dark);
            check(browser, &format!("chat at {width}, dark: {dark}"));
        }
    }
    a_page_opens_where_its_answer_begins(browser, &daemon);
    assert_eq!(browser.complaints(), Vec::<String>::new());
    // Signed out elsewhere, signed out here.
    assert_eq!(home.run(&["link", "--revoke-all"]).code, 0);
    browser.until_says("Sign in to Kai");
    browser.leave();
}

/// Of an answer that tries what it can.
const PIECES: [&str; 3] =
    ["It is **no", "on**.\n\n<img src=x onerror=\"alert(1)\">", "\n\n[a](javascript:alert(1))"];

fn it_streams_in(browser: &Browser, daemon: &Daemon, provider: &Provider) {
    say(browser, "What time is it?");
    browser.until(
        "the beginning",
        "return document.querySelector('.coming')?.innerText.startsWith('It is **no')",
    );
    assert_eq!(browser.texts("message-user"), ["What time is it?"]);
    let colours = "const style = (it) => getComputedStyle(document.querySelector(it));
        return ['color', 'fontSize'].every((it) => style('[data-testid=message-user]')[it] === style('body')[it])";
    assert_eq!(browser.run(colours), true, "what the person says is no complaint");
    // Leaving the page stops nothing, and whoever comes in the middle sees how far it is.
    let first = browser.tab();
    browser.open("about:blank");
    let second = browser.new_tab();
    browser.open(&format!("http://{}/", daemon.address));
    browser.until_seen("chat-stop");
    provider.go_on(PIECES.len());
    until_answered(browser, 1);
    browser.switch_to(&first);
    browser.open(&format!("http://{}/", daemon.address));
    browser.switch_to(&second);
    let html = browser.run("return document.querySelector('.answer').innerHTML");
    let html = html.as_str().unwrap();
    assert!(html.contains("<strong>noon</strong>") && html.contains("&lt;img"), "{html}");
    assert!(!html.contains("<img") && !html.contains("href"), "{html}");
    assert!(browser.run("return document.body.innerText").as_str().unwrap().contains("Answered by mine"));
    assert_eq!(browser.texts("chat-title"), ["What time is it?"], "the first words are the title");
    browser.until_live();
    say(browser, "Sure?");
    until_answered(browser, 2);
    assert_eq!(browser.texts("message-user"), ["What time is it?", "Sure?"]);
    assert_eq!(browser.texts("message-assistant")[1], "Yes.");
    assert_eq!(browser.run("return document.getElementById('chat-input').value"), "");
    browser.switch_to(&first);
    until_answered(browser, 2);
}

fn code_is_copied_alone(browser: &Browser) {
    assert_eq!(browser.texts("code-copy"), ["Copy"], "a model makes no buttons");
    browser.run("window.copied = []; navigator.clipboard.writeText = async (text) => copied.push(text)");
    browser.click("code-copy");
    browser.click("chat-copy");
    let copied = browser.run("return copied.map(text => text.trim())");
    assert_eq!(copied, json!(["ls -l", "Run this:\n\nls -l\n\n\nThat is <button data-copy>all</button>."]));
    check(browser, "code");
    browser.picture("code");
}

fn a_page_opens_where_its_answer_begins(browser: &Browser, daemon: &Daemon) {
    let (hidden, main) = ("document.getElementById('to-end').hidden", "document.getElementById('main')");
    let begins = format!(
        "const top = document.querySelector('.answer').getBoundingClientRect().top - {main}.getBoundingClientRect().top;
         return top >= 0 && top < 100 && {main}.scrollTop > 0 && !{hidden}"
    );
    browser.look(360, 740, false);
    browser.open(&format!("http://{}/", daemon.address));
    browser.until("a page to open where its newest answer begins", &begins);
    browser.click("to-end");
    browser.until("the end", &format!("return {hidden} && {main}.scrollTop > 0"));
    browser.click("chat-copy");
    browser.until_says("Copied.");
    browser.open(&format!("http://{}/settings/general", daemon.address));
    for (width, dark) in [(360, true), (1280, false)] {
        look(browser, width, 740, dark);
        check(browser, &format!("settings at {width}, dark: {dark}"));
    }
}

/// A home whose web searches never come to an end, and the service that keeps them waiting.
fn with_slow_search(provider: &Provider) -> (Home, Provider) {
    let search = Provider::start([Act::Hang]);
    let home = with_model(provider);
    for (key, value) in
        [("web_search_backend", "searxng"), ("web_search_searxng_url", search.base_url.as_str())]
    {
        assert_eq!(home.run(&["settings", "set", key, value]).code, 0);
    }
    (home, search)
}

fn the_waiting_row_shows_running_tools_and_everything_can_be_done_with_the_keyboard(browser: &Browser) {
    let find = || Act::calls("web_search", &json!({"query": "tea"}));
    let now = Act::calls("get_local_time", &json!({}));
    let found = Act::says("Found **tea**.");
    let provider = Provider::start([Act::Hang, find(), found, find(), now, Act::says("Tea.")]);
    let (home, search) = with_slow_search(&provider);
    let daemon = home.start();
    look(browser, 1280, 800, false);
    browser.enter(&daemon);
    say(browser, "Find tea");
    words_of_waiting_take_turns(browser);
    is_stopped(browser, &provider);
    browser.click("chat-again");
    running_tools_are_shown_and_stopped(browser, &search);
    browser.open(&format!("http://{}/new", daemon.address));
    browser.until_live();
    all_is_done_with_keys(browser);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// A silent model is waited for far longer than these words take; a silent web search is not.
fn words_of_waiting_take_turns(browser: &Browser) {
    browser.until_seen("waiting-chip");
    let pulse = browser.run(
        "const dot = document.querySelector('.waits .pulse').getAnimations()[0]; const t = dot.effect.getTiming();
         const frames = dot.effect.getKeyframes();
         return [t.duration, t.direction, t.iterations, frames.map(f => [f.transform, f.opacity])]",
    );
    let frames = json!([["scale(0.6)", "0.4"], ["scale(1)", "1"]]);
    assert_eq!(pulse, json!([800, "alternate", Value::Null, frames]), "infinity is no JSON");
    browser.run(
        "const seen = (word) => { const { opacity, visibility } = getComputedStyle(word); return visibility === 'visible' && opacity > 0; };
         window.most = 0;
         const look = () => {
             window.most = Math.max(window.most, [...document.querySelectorAll('.waits-words > span')].filter(seen).length);
             requestAnimationFrame(look);
         };
         look()",
    );
    let word = "return document.querySelector('.waits-words .on').innerText";
    for expected in ["Thinking…", "Working…", "Brewing…", "Thinking…"] {
        browser.until(expected, &format!("{word} === '{expected}'"));
    }
    assert_eq!(browser.run("return window.most"), 1, "one word at a time");
}

fn running_tools_are_shown_and_stopped(browser: &Browser, search: &Provider) {
    browser.until_seen("tool-chip");
    assert_eq!(browser.texts("tool-chip"), ["Web search"]);
    let row = browser
        .run("return [...document.querySelector('.waiting').children].map(e => e.dataset.testid ?? '')");
    assert_eq!(row, json!(["waiting-chip", "tool-chip"]), "one row");
    assert!(browser.texts("message-assistant").is_empty(), "results are not shown in the chat");
    browser.picture("waiting");
    is_stopped(browser, search);
    browser.click("chat-again");
    until_answered(browser, 1);
    assert_eq!(browser.texts("message-assistant"), ["Found tea."]);
}

/// Stops the answer: whoever was being asked sees the connection end.
fn is_stopped(browser: &Browser, asked: &Provider) {
    browser.click("chat-stop");
    browser.until_gone("waiting-chip");
    asked.wait_for_hang_ups(1);
    assert!(browser.texts("tool-chip").is_empty() && browser.texts("chat-stop").is_empty());
    browser.until_says("You stopped this answer.");
    assert_eq!(browser.texts("message-user"), ["Find tea"]);
}

fn all_is_done_with_keys(browser: &Browser) {
    browser.until("the field to have the focus", "return document.activeElement.id === 'chat-input'");
    browser.press("Find tea");
    browser.press(ENTER);
    browser.until_seen("tool-chip");
    browser.until("the field to have the focus", "return document.activeElement.id === 'chat-input'");
    let focused = "return document.activeElement.dataset.testid ?? document.activeElement.id";
    let reach = |wanted: &str| {
        for _ in 0..40 {
            if browser.run(focused) == wanted {
                let ring = browser.run("return getComputedStyle(document.activeElement).outlineStyle");
                assert_eq!(ring, "solid", "{wanted} shows that it has the focus");
                return;
            }
            browser.press(TAB);
        }
        panic!("{wanted} cannot be reached: {}", browser.run(focused));
    };
    reach("chat-stop");
    browser.press(ENTER);
    browser.until_gone("waiting-chip");
    reach("chat-again");
    browser.press(ENTER);
    until_answered(browser, 1);
    reach("what-kai-did-summary");
    browser.press(ENTER);
    browser.until("it to unfold", "return document.querySelector('.did').open");
    reach("chat-options");
    browser.press(ENTER);
    browser.until_seen("chat-delete");
    reach("chat-delete");
    browser.press(ENTER);
    browser.until_seen("undo");
}

/// Three clicks at once, and where each of them leads.
#[cfg(feature = "foss")]
fn demo_links(home: &Home, daemon: &Daemon) -> Vec<String> {
    let link = home.run(&["link"]).out.trim().split_once(&daemon.address).unwrap().1.to_owned();
    let cookie = daemon.get(&link, "").header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let body = format!("csrf={}", daemon.get("/new", &cookie).csrf());
    let start = std::sync::Barrier::new(3);
    std::thread::scope(|scope| {
        let post = || {
            start.wait();
            let answer = daemon.send("POST", "/demo", &[("Cookie", &cookie)], &body);
            answer.header("location").unwrap_or_else(|| panic!("{}", answer.text)).to_owned()
        };
        let posts: Vec<_> = (0..3).map(|_| scope.spawn(post)).collect();
        posts.into_iter().map(|post| post.join().unwrap()).collect()
    })
}

/// The demo behind the same port: its own cookie, its own colours, its own chat, and a way back.
#[cfg(feature = "foss")]
fn the_demo_is_handed_on(browser: &Browser, home: &Home, daemon: &Daemon) {
    let links = demo_links(home, daemon);
    assert!(links.iter().all(|link| link.starts_with("/demo/login?token=")), "{links:?}");
    let is_demo = "return document.querySelector('header.top .tag')?.innerText.startsWith('Demo')";
    browser.click("try-demo");
    browser.until("the demo", is_demo);
    browser.until_live();
    assert_eq!(browser.run("return location.host"), daemon.address.as_str(), "one port is enough");
    assert_eq!(browser.run("return document.documentElement.dataset.under"), "/demo");
    check(browser, "the demo");
    say(browser, "What time is it?");
    browser.until("an answer", "return document.querySelectorAll('footer.foot').length === 1");
    assert!(browser.run("return location.pathname").as_str().unwrap().starts_with("/demo/c/"));
    let asked = home.run(&["chats", "list", "--json"]).json();
    assert_eq!(asked, serde_json::json!([]), "nothing of it is in the real home");
    // Signed in here is not signed in there, and the other way round.
    let status = daemon.get("/demo/", "").status;
    assert_eq!(status, 401, "nobody gets there without a session of this page");
    browser.click("leave-demo");
    browser.until("the real page", "return location.pathname === '/welcome' || location.pathname === '/'");
    assert_eq!(browser.run("return document.documentElement.dataset.demo ?? 'none'"), "none");
    browser.open(&format!("http://{}/demo", daemon.address));
    browser.until("the demo again", is_demo);
}

fn without_a_model_the_page_says_what_to_do_and_keeps_what_was_typed(browser: &Browser) {
    let home = Home::new();
    // A newer program may lie in the place of the one that runs.
    let replaced = home.path().join("kai");
    std::fs::copy(KAI, &replaced).unwrap();
    let daemon = Daemon::start(program(&replaced, home.path()).args(["serve", "--port", "0"]));
    std::fs::remove_file(&replaced).unwrap();
    browser.enter(&daemon);
    browser.until_says("Welcome to Kai");
    check(browser, "welcome");
    browser.open(&format!("http://{}/new", daemon.address));
    browser.until_says("No model is set up yet");
    check(browser, "no model");
    say(browser, "Hello?");
    browser.until(
        "a sentence",
        "return document.getElementById('toast').innerText.includes('No model is set up')",
    );
    let leads_to = browser.run("return document.querySelector('#toast a').pathname");
    assert_eq!(leads_to, "/settings/models", "the error leads to its remedy");
    assert_eq!(browser.run("return document.getElementById('chat-input').value"), "Hello?");
    assert!(browser.texts("message-user").is_empty());
    #[cfg(feature = "foss")]
    {
        the_demo_is_handed_on(browser, &home, &daemon);
        let demo = home.run(&["status", "--demo", "--json"]).json();
        let there = demo["daemon"]["address"].as_str().unwrap().trim_start_matches("http://").to_owned();
        assert_eq!(daemon.stop("-TERM").0, Some(0));
        let gone = std::net::TcpStream::connect(&there);
        assert!(gone.is_err(), "the demo ends with the Kai that started it");
    }
    browser.leave();
}

fn an_open_page_holds_up_no_stop_and_finds_the_next_daemon(browser: &Browser) {
    let counting = Act::says_in_steps(&["One, ", "two, ", "three"]);
    let provider = Provider::start([Act::says("One."), counting, Act::says("Two.")]);
    let home = with_model(&provider);
    assert_eq!(home.run(&["ask", "First"]).code, 0);
    let daemon = home.start();
    let port = daemon.address.rsplit_once(':').unwrap().1.to_owned();
    browser.enter(&daemon);
    say(browser, "Count");
    provider.go_on(1);
    browser.until("the second", "return document.querySelector('.coming')?.innerText.includes('two')");
    browser.click("chat-stop");
    browser.until_says("You stopped this answer.");
    let (code, log) = daemon.stop("-TERM");
    assert!(code == Some(0) && !log.contains(CUT_OFF), "{log}");
    browser.until_says("Reconnecting");
    assert!(home.run(&["chats", "show", "1"]).out.contains("[stopped here]"));
    assert_eq!(home.run(&["ask", "--last", "While you were away"]).code, 0);
    // The session outlives the daemon, and so does what was stopped.
    let _again = Daemon::start(kai(home.path()).args(["serve", "--port", &port]));
    browser.until_says("Two.");
    assert_eq!(browser.texts("message-user"), ["First", "Count", "While you were away"]);
    assert_eq!(browser.texts("message-assistant"), ["One.", "One, two,", "Two."]);
    assert!(!browser.run("return document.body.innerText").as_str().unwrap().contains("Reconnecting"));
}
