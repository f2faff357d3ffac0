//! Mail in a real browser, with real mail servers: an account is added, a mail arrives, and its answer is edited and sent.

use kai_stand_ins::mail::PostOffice;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::kit::{Daemon, Home, kai};
use crate::page::{check, say};
use crate::provider::{Act, Provider};
use crate::tools_page::open;

const LETTER: &[u8] = b"From: Bob <bob@post.test>\r\nTo: alice@post.test\r\nSubject: Dinner <b>tonight</b>\r\n\
    Message-ID: <1@post.test>\r\nContent-Type: text/html; charset=utf-8\r\n\r\n\
    <html><head><style>p { color: red }</style></head><body><p>Are you <b>free</b> for dinner?</p>\
    <img src=\"http://127.0.0.1:9/pixel.png\" onerror=\"document.title = 'Owned'\">\
    <script>document.title = 'Owned'</script><p>Say &lt;img src=x onerror=alert(1)&gt;.</p></body></html>\r\n";

/// Puts a text into a field, as typing it would.
fn fill(browser: &Browser, testid: &str, text: &str) {
    browser.run(&format!(
        "const field = document.querySelector('[data-testid={testid}]'); field.value = {};
         field.dispatchEvent(new Event('input', {{ bubbles: true }}))",
        Value::from(text)
    ));
}

/// From the settings to the other mailbox, with a mail in between that would like to be more than text.
#[test]
fn an_account_is_added_and_a_mail_is_answered_edited_and_sent() {
    let (office, home, browser) = (PostOffice::open(&["alice", "bob"]), Home::new(), Browser::start());
    assert_eq!(home.run(&["settings", "set", "heartbeat_enabled", "false"]).code, 0);
    let mut command = kai(home.path());
    command.env("SSL_CERT_FILE", office.authority()).args(["serve", "--port", "0"]);
    let daemon = Daemon::start(&mut command);
    browser.enter(&daemon);
    an_account_is_added(&browser, &daemon, &office);
    office.deliver("alice", LETTER);
    markup_is_shown_as_text(&browser, &daemon);
    the_model_answers(&browser, &daemon, &home);
    the_answer_is_edited_and_sent_once(&browser, &office);
    assert_eq!(
        browser.run("return document.title").as_str().map(|title| title.contains("Owned")),
        Some(false)
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
    browser.leave();
}

/// A wrong password is named as such, and leaves what was typed; the right one works.
fn an_account_is_added(browser: &Browser, daemon: &Daemon, office: &PostOffice) {
    browser.agent(daemon);
    browser.run("document.getElementById('email-servers').open = true");
    fill(browser, "email-address", &office.address("alice"));
    fill(browser, "email-imap", &format!("localhost:{}", office.ports.imaps));
    fill(browser, "email-smtp", &format!("localhost:{}", office.ports.smtps));
    fill(browser, "email-password", "wrong");
    browser.click("email-add");
    browser.until_says("localhost refused the name or the password");
    check(browser, "an account with a wrong password");
    browser.picture("email-wrong-password");
    assert!(browser.texts("email-account").is_empty(), "nothing is stored before it works");
    fill(browser, "email-password", &office.password("alice"));
    browser.click("email-add");
    browser.until_seen("email-account");
    browser.until(
        "a good account",
        "return document.querySelector('[data-testid=email-state]').dataset.status === 'on'",
    );
    let page = browser.run("return document.documentElement.outerHTML");
    assert!(!page.as_str().unwrap().contains(&office.password("alice")), "the password is not shown again");
    check(browser, "an account");
    browser.picture("email-account");
}

/// The server tells of the mail; nobody reloads the page. All of its markup is gone, and what it spelled out is text.
fn markup_is_shown_as_text(browser: &Browser, daemon: &Daemon) {
    open(browser, daemon, "/inbox");
    browser.until_seen("inbox-item");
    browser.run("document.querySelector('[data-testid=inbox-item] a').click()");
    browser.until_seen("inbox-message");
    browser.until_gone("inbox-beginning");
    let text = browser.texts("inbox-text").concat();
    assert!(
        text.contains("Are you free for dinner?") && text.contains("Say <img src=x onerror=alert(1)>."),
        "{text}"
    );
    browser.until_says("Dinner <b>tonight</b>");
    let elements =
        "return document.querySelectorAll('main img, main script, main style, main iframe, main b').length";
    assert_eq!(browser.run(elements), json!(0), "text is text");
    check(browser, "a mail");
    browser.picture("email-message");
}

/// A scripted model drafts the answer, and the card says everything that would be sent.
fn the_model_answers(browser: &Browser, daemon: &Daemon, home: &Home) {
    let found = home.run(&["email", "search", "dinner", "--json"]).json();
    let reply = json!({"email_id": found["emails"][0]["id"], "body": "Yes, at 8."});
    let provider = Provider::start([Act::calls("reply_email", &reply), Act::says("I drafted an answer.")]);
    let model = ["--name", "mine", "--base-url", &provider.base_url, "--model", "m"];
    assert_eq!(home.run(&[&["models", "add", "openai-compatible"], &model[..]].concat()).code, 0);
    open(browser, daemon, "/new");
    say(browser, "Please answer Bob.");
    browser.until_seen("draft-card");
    browser.until_says("I drafted an answer.");
    for (testid, expected) in [
        ("draft-mail-from", "alice@post.test"),
        ("draft-mail-to", "bob@post.test"),
        ("draft-mail-subject", "Re: Dinner <b>tonight</b>"),
        ("draft-body", "Yes, at 8."),
    ] {
        browser.until_text(testid, expected);
    }
    browser.run("document.querySelector('[data-testid=draft-mail-quote]').open = true");
    let quote = browser.texts("draft-mail-quote").concat();
    assert!(quote.contains("> Are you free for dinner?"), "{quote}");
    check(browser, "a draft of a mail");
    browser.picture("email-draft");
}

fn the_answer_is_edited_and_sent_once(browser: &Browser, office: &PostOffice) {
    browser.click("draft-edit");
    browser.until_seen("draft-edit-form");
    fill(browser, "draft-edit-subject", "Dinner at 8");
    browser.type_into("draft-edit-body", " I bring wine.");
    check(browser, "a mail that is edited");
    browser.picture("email-edit");
    browser.click("draft-save");
    browser.until_gone("draft-edit-form");
    browser.until_text("draft-mail-subject", "Dinner at 8");
    browser.until_text("draft-body", "Yes, at 8. I bring wine.");
    assert_eq!(office.mails("bob", "INBOX"), [], "nothing was sent yet");
    browser.click("draft-send");
    browser.until(
        "it to be sent",
        "return document.querySelector('[data-testid=draft-card]')?.dataset.status === 'SENT'",
    );
    let arrived = office.wait_for_mails("bob", "INBOX", 1);
    let text = String::from_utf8_lossy(&arrived[0]).into_owned();
    for part in
        ["From: alice@post.test", "To: bob@post.test", "Subject: Dinner at 8", "In-Reply-To: <1@post.test>"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(
        text.contains("Yes, at 8. I bring wine.") && text.contains("> Are you free for dinner?"),
        "{text}"
    );
    check(browser, "a sent mail");
    browser.run("location.reload()");
    browser.until_live();
    assert_eq!(office.mails("bob", "INBOX").len(), 1, "exactly one mail left");
}
