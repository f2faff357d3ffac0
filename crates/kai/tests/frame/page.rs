//! The page as a person uses it, in a real browser: chat, tools, stop, list, keyboard, looks.

use std::time::Duration;

use serde_json::{Value, json};

use crate::ask::with_model;
use crate::browser::Browser;
use crate::kit::{CUT_OFF, Daemon, Home, KAI, kai, program};
use crate::phone::Phone;
use crate::provider::{Act, Provider};

const ENTER: &str = "\u{e007}";
const TAB: &str = "\u{e004}";

/// What is wrong with the page for eyes, ears and keyboards.
pub(crate) fn check(browser: &Browser, name: &str) {
    // Colours ease; they are judged when they have arrived, however long a busy machine takes.
    browser
        .until("colours to arrive", "return !document.getAnimations().some(a => a instanceof CSSTransition)");
    let wrong = browser.run(include_str!("check.js"));
    assert_eq!(wrong, json!([]), "{name}");
}

fn say(browser: &Browser, text: &str) {
    browser.type_into("chat-input", &format!("{text}{ENTER}"));
}

fn until_answered(browser: &Browser, count: usize) {
    let script = format!("return document.querySelectorAll('.foot').length === {count}");
    browser.until("an answer", &script);
}

#[test]
fn an_answer_streams_in_and_can_do_nothing() {
    let pieces = ["It is **no", "on**.\n\n<img src=x onerror=\"alert(1)\">", "\n\n[a](javascript:alert(1))"];
    let provider = Provider::start([Act::says_in_steps(&pieces), Act::says("Yes.")]);
    let home = with_model(&provider);
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    say(&browser, "What time is it?");
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
    provider.go_on(pieces.len());
    until_answered(&browser, 1);
    browser.switch_to(&first);
    browser.open(&format!("http://{}/", daemon.address));
    browser.switch_to(&second);
    let html = browser.run("return document.querySelector('.answer').innerHTML");
    let html = html.as_str().unwrap();
    assert!(html.contains("<strong>noon</strong>") && html.contains("&lt;img"), "{html}");
    assert!(!html.contains("<img") && !html.contains("href"), "{html}");
    assert!(browser.run("return document.body.innerText").as_str().unwrap().contains("Answered by mine"));
    assert_eq!(browser.texts("conversation-list"), ["What time is it?"], "the first words are the title");
    browser.until_live();
    say(&browser, "Sure?");
    until_answered(&browser, 2);
    assert_eq!(browser.texts("message-user"), ["What time is it?", "Sure?"]);
    assert_eq!(browser.texts("message-assistant")[1], "Yes.");
    assert_eq!(browser.run("return document.getElementById('chat-input').value"), "");
    browser.switch_to(&first);
    until_answered(&browser, 2);
    assert_eq!(browser.complaints(), Vec::<String>::new());
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

#[test]
fn the_waiting_row_shows_running_tools_and_stop_ends_them() {
    let provider =
        Provider::start([Act::calls("web_search", &json!({"query": "tea"})), Act::says("Found **tea**.")]);
    let (home, search) = with_slow_search(&provider);
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    say(&browser, "Find tea");
    browser.until_seen("tool-chip");
    assert_eq!(browser.texts("tool-chip"), ["Web search"]);
    let row = browser
        .run("return [...document.querySelector('.waiting').children].map(e => e.dataset.testid ?? '')");
    assert_eq!(row, json!(["waiting-chip", "tool-chip"]), "one row");
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
    assert!(browser.texts("message-assistant").is_empty(), "results are not shown in the chat");
    browser.picture("waiting");
    browser.click("chat-stop");
    browser.until_gone("waiting-chip");
    search.wait_for_hang_ups(1);
    assert!(browser.texts("tool-chip").is_empty() && browser.texts("chat-stop").is_empty());
    browser.until_says("You stopped this answer.");
    assert_eq!(browser.texts("message-user"), ["Find tea"]);
    browser.click("chat-again");
    until_answered(&browser, 1);
    assert_eq!(browser.texts("message-assistant"), ["Found tea."]);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn what_was_stopped_stays_where_it_was_and_code_is_copied_alone() {
    let code = "Run this:\n\n```sh\nls -l\n```\n\nThat is <button data-copy>all</button>.";
    let provider = Provider::start([Act::says_in_steps(&["One, ", "two, ", "three"]), Act::says(code)]);
    let home = with_model(&provider);
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    say(&browser, "Count");
    provider.go_on(1);
    browser.until("the second", "return document.querySelector('.coming')?.innerText.includes('two')");
    browser.click("chat-stop");
    browser.until_says("You stopped this answer.");
    drop(daemon);
    let daemon = home.start();
    browser.enter(&daemon);
    browser.until_says("You stopped this answer.");
    assert_eq!(browser.texts("message-assistant"), ["One, two,"]);
    assert!(home.run(&["chats", "show", "1"]).out.contains("[stopped here]"));
    browser.click("chat-again");
    until_answered(&browser, 1);
    assert_eq!(browser.texts("code-copy"), ["Copy"], "a model makes no buttons");
    browser.run("window.copied = []; navigator.clipboard.writeText = async (text) => copied.push(text)");
    browser.click("code-copy");
    browser.click("chat-copy");
    let copied = browser.run("return copied.map(text => text.trim())");
    assert_eq!(copied, json!(["ls -l", "Run this:\n\nls -l\n\n\nThat is <button data-copy>all</button>."]));
    check(&browser, "code");
    browser.picture("code");
}

#[test]
fn what_failed_says_why_and_can_be_tried_again_and_what_was_done_is_folded() {
    let refused = Act::status("401 Unauthorized", "application/json", r#"{"error":{"message":"bad key"}}"#);
    let provider = Provider::start([
        refused,
        Act::calls("get_local_time", &json!({})),
        Act::says("One."),
        Act::says("Two."),
    ]);
    let home = with_model(&provider);
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    say(&browser, "Go");
    browser.until_seen("chat-error");
    let said = browser.texts("chat-error").join("");
    assert!(said.contains("mine") && said.contains("key"), "{said}");
    browser.click("chat-again");
    until_answered(&browser, 1);
    assert_eq!(browser.texts("message-assistant"), ["One."]);
    assert_eq!(browser.texts("what-kai-did"), ["What Kai did (1)"], "closed");
    browser.click("what-kai-did-summary");
    browser.until_says("timezone");
    browser.click("chat-again");
    browser.until("another answer", "return document.querySelector('.answer')?.innerText === 'Two.'");
    assert_eq!(browser.texts("message-user"), ["Go"], "it was not said twice");
    let last = provider.asked().pop().unwrap().body["messages"].clone();
    assert_eq!(last.as_array().unwrap().len(), 2, "the answer that is replaced is not told: {last}");
}

#[test]
fn without_a_model_the_page_says_what_to_do_and_keeps_what_was_typed() {
    let home = Home::new();
    // A newer program may lie in the place of the one that runs.
    let replaced = home.path().join("kai");
    std::fs::copy(KAI, &replaced).unwrap();
    let daemon = Daemon::start(program(&replaced, home.path()).args(["serve", "--port", "0"]));
    std::fs::remove_file(&replaced).unwrap();
    let browser = Browser::start();
    browser.enter(&daemon);
    browser.until_says("kai models add");
    check(&browser, "no model");
    say(&browser, "Hello?");
    browser.until(
        "a sentence",
        "return document.getElementById('toast').innerText.includes('No model is set up')",
    );
    assert_eq!(browser.run("return document.getElementById('chat-input').value"), "Hello?");
    assert!(browser.texts("message-user").is_empty());
    #[cfg(feature = "foss")]
    {
        browser.click("try-demo");
        browser.until("the demo", "return document.querySelector('.tag')?.innerText.startsWith('Demo')");
        browser.until_live();
        let there = browser.run("return location.host");
        assert_ne!(there, daemon.address.as_str());
        // A second click leads to the same one.
        browser.open(&format!("http://{}/", daemon.address));
        browser.until_live();
        browser.click("try-demo");
        browser.until("the demo", "return document.querySelector('.tag')?.innerText.startsWith('Demo')");
        assert_eq!(browser.run("return location.host"), there);
        daemon.stop("-TERM");
        let gone = std::net::TcpStream::connect(there.as_str().unwrap());
        assert!(gone.is_err(), "the demo ends with the Kai that started it");
    }
}

#[test]
fn conversations_are_found_deleted_and_taken_back() {
    let provider = Provider::start([Act::says("Um neun."), Act::says("At sea.")]);
    let home = with_model(&provider);
    let daemon = home.start();
    for said in ["Wann öffnet der Teeladen?", "Where are ships?"] {
        assert_eq!(home.run(&["ask", said]).code, 0);
    }
    let browser = Browser::start();
    browser.look(1280, 800, false);
    browser.enter(&daemon);
    assert_eq!(browser.texts("conversation-list"), ["Where are ships?\nWann öffnet der Teeladen?"]);
    browser.open(&format!("http://{}/c/2?q=neun", daemon.address));
    browser.until_live();
    assert_eq!(browser.texts("conversation-list"), ["Wann öffnet der Teeladen?"]);
    browser.open(&format!("http://{}/c/1", daemon.address));
    browser.until_live();
    browser.run("document.querySelector('#chat-1 [data-testid=chat-delete]').click()");
    browser.until("the other one", "return location.pathname === '/' && document.title.startsWith('Where')");
    assert_eq!(home.run(&["chats", "list", "--json"]).json().as_array().unwrap().len(), 1, "really gone");
    browser.until_live();
    browser.click("undo");
    browser.until_says("Um neun.");
    browser.until_live();
    assert!(browser.texts("conversation-list")[0].contains("Teeladen"));
    assert!(browser.texts("undo-bar").is_empty());
    // Said elsewhere, seen here.
    let id = browser.run("return document.querySelector('.app').dataset.chat");
    let chat = id.as_str().unwrap();
    assert_eq!(home.run(&["ask", "--chat", chat, "And now?"]).code, 0);
    until_answered(&browser, 2);
    assert_eq!(browser.texts("message-user")[1], "And now?");
    assert_eq!(browser.complaints(), Vec::<String>::new());
    // Signed out elsewhere, signed out here.
    assert_eq!(home.run(&["link", "--revoke-all"]).code, 0);
    browser.until_says("Sign in to Kai");
}

#[test]
fn what_a_command_asks_is_waited_for_here_too() {
    let provider = Provider::start([Act::says("One."), Act::Hang]);
    let home = with_model(&provider);
    let daemon = home.start();
    assert_eq!(home.run(&["ask", "First"]).code, 0);
    let browser = Browser::start();
    browser.enter(&daemon);
    let mut asking = kai(home.path()).args(["ask", "--last", "Second"]).spawn().unwrap();
    browser.until_seen("waiting-chip");
    assert_eq!(browser.texts("message-user"), ["First", "Second"]);
    assert!(browser.texts("chat-stop").is_empty() && browser.texts("chat-error").is_empty());
    asking.kill().unwrap();
    asking.wait().unwrap();
    browser.until_says("This was not answered.");
    assert!(browser.texts("waiting-chip").is_empty());
}

#[test]
fn an_open_page_holds_up_no_stop_and_finds_the_next_daemon() {
    let provider = Provider::start([Act::says("One.")]);
    let home = with_model(&provider);
    assert_eq!(home.run(&["ask", "First"]).code, 0);
    let daemon = home.start();
    let port = daemon.address.rsplit_once(':').unwrap().1.to_owned();
    let browser = Browser::start();
    browser.enter(&daemon);
    let (code, log) = daemon.stop("-TERM");
    assert!(code == Some(0) && !log.contains(CUT_OFF), "{log}");
    browser.until_says("Reconnecting");
    assert_eq!(home.run(&["ask", "--last", "While you were away"]).code, 0);
    let _again = Daemon::start(kai(home.path()).args(["serve", "--port", &port]));
    until_answered(&browser, 2);
    assert_eq!(browser.texts("message-user"), ["First", "While you were away"]);
    assert!(!browser.run("return document.body.innerText").as_str().unwrap().contains("Reconnecting"));
}

#[test]
fn everything_can_be_done_with_the_keyboard() {
    let search = Act::calls("web_search", &json!({"query": "tea"}));
    let provider = Provider::start([search, Act::calls("get_local_time", &json!({})), Act::says("Tea.")]);
    let (home, _search) = with_slow_search(&provider);
    let daemon = home.start();
    let browser = Browser::start();
    browser.look(1280, 800, false);
    browser.enter(&daemon);
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
    until_answered(&browser, 1);
    reach("what-kai-did-summary");
    browser.press(ENTER);
    browser.until("it to unfold", "return document.querySelector('.did').open");
    reach("chat-delete");
    browser.press(ENTER);
    browser.until_seen("undo");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_page_is_right_for_all_eyes_at_every_size() {
    let long = format!(
        "# Title\n\n{}\n\n- one\n- two\n\n`code` and a [link](https://example.org/)\n\n```\nlet x = 1;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |",
        "word ".repeat(200)
    );
    let provider = Provider::start([Act::calls("get_local_time", &json!({})), Act::says(&long)]);
    let home = with_model(&provider);
    let daemon = home.start();
    assert_eq!(home.run(&["ask", &"a very long title ".repeat(10)]).code, 0);
    let browser = Browser::start();
    browser.enter(&daemon);
    for (width, height) in [(360, 740), (768, 1024), (1280, 800)] {
        for dark in [false, true] {
            browser.look(width, height, dark);
            std::thread::sleep(Duration::from_millis(300));
            check(&browser, &format!("chat at {width}, dark: {dark}"));
        }
    }
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
        browser.look(width, 740, dark);
        std::thread::sleep(Duration::from_millis(300));
        check(&browser, &format!("settings at {width}, dark: {dark}"));
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn an_address_becomes_a_card_and_nothing_opens_on_the_machine() {
    let phone = Phone::new(&["termux-open-url", "termux-open", "xdg-open"]);
    let url = json!({"url": "https://example.org/?a=1&b=2"});
    let provider = Provider::start([Act::calls("open_url", &url), Act::says("There it is.")]);
    let address = ["--base-url", &provider.base_url, "--model", "m"];
    let added =
        phone.command().args([&["models", "add", "openai-compatible"], &address[..]].concat()).output();
    assert!(added.unwrap().status.success());
    let daemon = phone.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    say(&browser, "Open example.org");
    until_answered(&browser, 1);
    let card = browser
        .run("const a = document.querySelector('[data-testid=open-card]'); return [a.href, a.target, a.rel]");
    assert_eq!(card, json!(["https://example.org/?a=1&b=2", "_blank", "noopener noreferrer"]));
    assert!(!phone.programs.path().join("log").exists(), "the browser may be on another machine");
}

#[test]
fn without_a_script_every_form_still_works() {
    let provider = Provider::start([Act::says("Hello there.")]);
    let home = with_model(&provider);
    let daemon = home.start();
    let cookie = daemon.sign_in();
    let csrf = daemon.get("/", &cookie).csrf();
    let post = |path: &str, body: &str| {
        daemon.send("POST", path, &[("Cookie", &cookie)], &format!("csrf={csrf}&{body}"))
    };
    let said = post("/say", "text=Hi%0D%0Ayou");
    assert_eq!((said.status, said.header("location")), (303, Some("/c/1")));
    let answered = || daemon.get("/c/1", &cookie).text.contains("Answered by mine");
    for _ in 0..100 {
        if answered() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let page = daemon.get("/c/1", &cookie).text;
    assert!(page.contains("Hello there.") && page.contains(">Hi\nyou<"), "{page}");
    assert_eq!(daemon.get("/c/7", &cookie).status, 404);
    assert_eq!(daemon.get("/c/x", &cookie).status, 400);
    assert_eq!(post("/c/1/say", "text=+").status, 409, "nothing was said");
    assert_eq!(post("/click", "question=made-up&answer=allow").status, 409);
    let deleted = post("/c/1/delete", "a=b");
    assert_eq!((deleted.status, deleted.header("location")), (303, Some("/")));
    let restored = post("/undo", "number=1&act=restore");
    assert_eq!((restored.status, restored.header("location")), (303, Some("/c/2")));
    assert_eq!(
        daemon.send("GET", "/events", &[], "").status,
        401,
        "nobody is told anything without a session"
    );
}

/// A report comes while Kai answers in the heartbeat's conversation: the answer goes on, and the report stands after it.
#[test]
fn a_report_does_not_get_in_the_way_of_an_answer() {
    let pieces = ["The rain", " of last night."];
    let provider = Provider::start([
        Act::says("The roof leaks."),
        Act::says_in_steps(&pieces),
        Act::says("The cellar is wet."),
        Act::says("The storm."),
    ]);
    let home = with_model(&provider);
    assert_eq!(home.run(&["heartbeat", "run", "--force"]).code, 0);
    let id = home.run(&["status", "--json"]).json()["heartbeat"]["report"].as_i64().unwrap();
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    browser.open(&format!("http://{}/c/{id}", daemon.address));
    browser.until_live();
    say(&browser, "Why?");
    let coming = "return document.querySelector('.coming')?.innerText === 'The rain'";
    browser.until("the beginning", coming);
    assert_eq!(home.run(&["heartbeat", "run", "--force"]).out, "The cellar is wet.\n");
    // The run is settled, and the page still shows the answer that comes, and nothing that looks like one.
    assert_eq!(browser.run(coming), true);
    browser.until_seen("chat-stop");
    assert_eq!(browser.texts("message-assistant"), ["The roof leaks.", "The rain"]);
    provider.go_on(pieces.len());
    until_answered(&browser, 3);
    let said = ["The roof leaks.", "The rain of last night.", "The cellar is wet."];
    assert_eq!(browser.texts("message-assistant"), said);
    browser.picture("report-after-answer");
    browser.click("chat-again");
    browser.until_says("The storm.");
    until_answered(&browser, 3);
    assert_eq!(browser.texts("message-assistant"), ["The roof leaks.", "The cellar is wet.", "The storm."]);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
