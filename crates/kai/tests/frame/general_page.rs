//! `/settings/general` in a real browser: look, signing in, taking things along and in, and erasing everything.

use std::path::Path;
use std::time::Duration;

use crate::ask::with_model;
use crate::browser::Browser;
use crate::kit::Home;
use crate::provider::{Act, Provider};
use crate::tools_page::{at_every_size, open};

fn remember(home: &Home, key: &str, content: &str) {
    let arguments = serde_json::json!({"key": key, "content": content}).to_string();
    assert_eq!(home.run(&["tools", "call", "memory_store", &arguments]).code, 0);
}

fn background(browser: &Browser) -> String {
    browser.run("return getComputedStyle(document.body).backgroundColor").as_str().unwrap().to_owned()
}

#[test]
fn theme_and_language_are_chosen_and_all_is_seen_at_every_size() {
    let home = Home::new();
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    open(&browser, &daemon, "/settings/general");
    browser.look(1280, 800, false);
    let light = background(&browser);
    browser.click("theme-dark");
    browser.until_live();
    browser.until("the dark", "return document.documentElement.dataset.theme === 'dark'");
    assert_ne!(background(&browser), light);
    assert_eq!(home.run(&["settings", "get", "theme"]).out, "dark\n");
    browser.click("theme-system");
    browser.until("the system's", "return document.documentElement.dataset.theme === 'system'");
    browser.until_live();
    browser.click("language-de");
    browser.until(
        "it to be pressed",
        "return document.querySelector('[data-testid=language-de]').ariaPressed === 'true'",
    );
    open(&browser, &daemon, "/settings/tools");
    browser.until_says("Ortszeit");
    open(&browser, &daemon, "/settings/general");
    browser.until_says(&home.path().display().to_string());
    browser.until_says(env!("CARGO_PKG_VERSION"));
    let edition = if cfg!(feature = "foss") { "foss" } else { "store" };
    browser.until_says(edition);
    let said = browser.run("return document.body.innerText");
    assert!(!said.as_str().unwrap().contains("Permissions"), "those are Android’s");
    browser.until_says("The file is not encrypted");
    at_every_size(&browser, "general");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_link_made_here_signs_another_browser_in_and_all_can_be_signed_out() {
    let home = Home::new();
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    open(&browser, &daemon, "/settings/general");
    assert_eq!(browser.texts("sessions"), ["Only this browser is signed in."]);
    browser.click("make-link");
    browser.until_seen("fresh-link");
    let link = browser.texts("fresh-link").remove(0);
    assert!(link.starts_with(&format!("http://{}/login?token=", daemon.address)), "{link}");
    open(&browser, &daemon, "/settings/general");
    assert!(browser.texts("sessions")[0].contains("1 link waits"));
    let page = browser.run("return document.body.innerHTML");
    assert!(!page.as_str().unwrap().contains("token="), "it is shown once");
    let other = Browser::start();
    other.open(&link);
    other.until_live();
    browser.until_says("2 browsers are signed in.");
    browser.click("revoke-all");
    browser.until_says("Sign in to Kai");
    other.until_says("Sign in to Kai");
}

/// The file that the page gives out, as the browser would keep it.
fn download(browser: &Browser, fields: &str) -> String {
    let script = format!(
        "const form = document.querySelector('form[action=\"/settings/general/export\"]');
         {fields}
         const body = new URLSearchParams(new FormData(form));
         return fetch(form.action, {{method: 'POST', body}}).then(async (r) =>
             [r.status, r.headers.get('content-disposition'), await r.text()].join('\\n'))"
    );
    browser.run(&script).as_str().unwrap().to_owned()
}

#[test]
fn what_is_taken_along_holds_no_secrets_and_is_taken_in_after_a_preview() {
    let provider = Provider::start([Act::says("Um neun.")]);
    let from = with_model(&provider);
    remember(&from, "tea", "Likes <b>green</b> tea.");
    from.run(&["settings", "set", "web_search_brave_key", "BSA-hidden-17"]);
    from.run(&["settings", "set", "theme", "dark"]);
    from.run(&["ask", "Wann?"]);
    let daemon = from.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    open(&browser, &daemon, "/settings/general");
    let told = download(&browser, "");
    let (head, text) = told.split_at(told.find('{').unwrap());
    assert!(head.starts_with("200\nattachment; filename=\"kai-20"), "{head}");
    assert!(text.contains("green") && text.contains("Um neun.") && !text.contains("hidden-17"), "{text}");
    let sealed = download(&browser, "form.elements.passphrase.value = form.elements.again.value = 'sesame';");
    assert!(sealed.contains("\"secrets\"") && !sealed.contains("hidden-17"));
    let typo = download(&browser, "form.elements.again.value = 'sesam';");
    assert!(typo.starts_with("400") && typo.contains("not the same"), "{}", &typo[..80]);
    assert_eq!(browser.complaints().iter().filter(|said| !said.contains("400")).count(), 0);
    browser.open("about:blank");
    drop(daemon);

    let to = Home::new();
    to.run(&["settings", "set", "heartbeat_enabled", "false"]);
    remember(&to, "coffee", "Never.");
    let file = to.path().join("from.json");
    std::fs::write(&file, text).unwrap();
    let daemon = to.start();
    browser.enter(&daemon);
    upload(&browser, &daemon, &file);
    browser.until_seen("import-preview");
    let preview = browser.texts("outcome").join("\n");
    for expected in ["Memories", "Would be: 1 new", "tea", "theme: system → dark", "mine: m at http"] {
        assert!(preview.contains(expected), "{expected:?} in {preview}");
    }
    assert_eq!(to.run(&["memory", "list"]).out, "coffee  Never.\n", "a preview changes nothing");
    at_every_size(&browser, "import");
    browser.click("import-how");
    browser.until_says("would take the place");
    assert!(browser.texts("outcome").join("\n").contains("1 removed"), "{:?}", browser.texts("outcome"));
    browser.click("import-cancel");
    browser.until_seen("import-file");
    assert_eq!(to.run(&["memory", "list"]).out, "coffee  Never.\n");
    upload(&browser, &daemon, &file);
    browser.until_seen("import-take");
    browser.click("import-settings");
    browser.click("import-take");
    browser.until_seen("import-done");
    assert_eq!(to.run(&["settings", "get", "theme"]).out, "system\n", "a section that was not wanted");
    let memories = to.run(&["memory", "list"]).out;
    assert!(memories.contains("coffee") && memories.contains("<b>green</b>"), "{memories}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

fn upload(browser: &Browser, daemon: &crate::kit::Daemon, file: &Path) {
    open(browser, daemon, "/settings/general");
    browser.type_into("import-file", file.to_str().unwrap());
    browser.click("import-look");
}

#[test]
fn bad_and_huge_files_and_foreign_forms_are_said_and_change_nothing() {
    let home = Home::new();
    home.run(&["settings", "set", "heartbeat_enabled", "false"]);
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    let file = home.path().join("file");
    for (bytes, word) in [
        (&b"{\"kai_export\": 99}"[..], "newer Kai"),
        (b"<script>alert(1)</script>", "not an export"),
        (b"[1, 2]", "not an export"),
        (b"\xff\xfe\x00", "no text"),
        (b"\x20", "not an export"),
    ] {
        std::fs::write(&file, bytes).unwrap();
        upload(&browser, &daemon, &file);
        browser.until_says(word);
        browser.until_says("Nothing was changed");
    }
    std::fs::File::create(&file).unwrap().set_len(80 * 1024 * 1024).unwrap();
    upload(&browser, &daemon, &file);
    browser.until_says("up to 64 MB");
    // Sections that make no sense are named, and the others are still there to be taken in.
    std::fs::write(&file, r#"{"kai_export": 1, "sections": {"memory": 5, "settings": {"theme": "blue<i>", "language": "de", "made_up": "1"}}}"#)
        .unwrap();
    upload(&browser, &daemon, &file);
    browser.until_seen("import-preview");
    let preview = browser.texts("outcome").join("\n");
    for expected in ["makes no sense", "made_up: unknown here", "blue<i>", "language: system → de"] {
        assert!(preview.contains(expected), "{expected:?} in {preview}");
    }
    // Without the proof nothing is even looked at.
    let form = "------x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n{\"kai_export\": 1}\r\n------x--\r\n";
    let cookie = {
        let path = home.run(&["link"]).out.trim().split_once(&daemon.address).unwrap().1.to_owned();
        daemon.get(&path, "").header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
    };
    let request = format!(
        "POST /settings/general/import HTTP/1.1\r\nHost: {}\r\nCookie: {cookie}\r\nConnection: close\r\n\
         Content-Type: multipart/form-data; boundary=----x\r\nContent-Length: {}\r\n\r\n{form}",
        daemon.address,
        form.len()
    );
    assert_eq!(daemon.send_raw(&request).status, 403);
    let take = daemon.send("POST", "/settings/general/import/take", &[("Cookie", &cookie)], "number=1");
    assert_eq!(take.status, 403);
    assert_eq!(home.run(&["settings", "get", "language"]).out, "system\n");
}

#[test]
fn erasing_needs_the_typed_words_and_ends_the_daemon_with_an_empty_home() {
    let home = Home::new();
    remember(&home, "a", "b");
    std::fs::write(home.path().join("notes.txt"), "mine").unwrap();
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    open(&browser, &daemon, "/settings/general");
    browser.type_into("erase-words", "erase");
    browser.click("erase");
    browser.until_says("Nothing was erased. For that, type exactly: erase everything");
    assert!(home.path().join("kai.db").exists());
    browser.until_live();
    browser.type_into("erase-words", "erase everything");
    browser.click("erase");
    browser.until_says("Everything is erased");
    let left = || -> Vec<_> {
        std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };
    for _ in 0..100 {
        if left().len() == 1 {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(left(), ["notes.txt"], "only what is Kai's is gone");
    assert!(std::net::TcpStream::connect(&daemon.address).is_err(), "it has ended");
    assert_eq!(home.run(&["memory", "list"]).out, "Kai remembers nothing yet.\n", "a new beginning");
}
