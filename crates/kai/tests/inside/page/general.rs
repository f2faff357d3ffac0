//! `/settings/general`: look, signing in, taking things along and in, and erasing everything.

use serde_json::json;

use super::house::{Answer, House};
use super::model::{Act, Model};
use super::visitor::Visitor;

const GENERAL: &str = "/settings/general";

#[test]
fn theme_and_language_are_chosen() {
    let house = House::new();
    let mut visitor = house.visitor(GENERAL);
    visitor.press("theme-dark");
    assert_eq!(visitor.page.having("data-theme", "dark").len(), 1);
    assert_eq!(house.get_setting("theme"), "dark");
    visitor.press("theme-system");
    assert_eq!(visitor.page.having("data-theme", "system").len(), 1);
    visitor.press("language-de");
    assert_eq!(visitor.attributes("language-de", "aria-pressed"), ["true"]);
    for (path, words) in [
        ("/settings/agent", "Automatische Prüfung"),
        ("/settings/tools", "Ortszeit"),
        ("/settings/models", "Reihenfolge der Modelle"),
        ("/settings/phones", "Termux und Desktop"),
        ("/settings/mcp", "Andere Programme dürfen Kai fragen"),
        ("/ledger", "Unversehrtheit"),
    ] {
        visitor.open(path);
        assert!(visitor.says(words), "{words} on {path}");
    }
    visitor.open(GENERAL);
    let edition = if cfg!(feature = "foss") { "foss" } else { "store" };
    let home = house.app.home.dir.display().to_string();
    for words in [home.as_str(), env!("CARGO_PKG_VERSION"), edition, "Die Datei ist nicht verschlüsselt"] {
        assert!(visitor.says(words), "{words}");
    }
    assert!(!visitor.says("Berechtigungen"), "those are Android’s");
}

#[test]
fn the_page_need_not_open_when_kai_starts() {
    let house = House::new();
    let mut visitor = house.visitor(GENERAL);
    assert_eq!(visitor.attributes("open-browser-toggle", "aria-checked"), ["true"]);
    for (checked, label) in
        [("false", "Open this page when Kai starts"), ("true", "Diese Seite beim Start öffnen")]
    {
        assert!(visitor.says(label), "{label}");
        visitor.press("open-browser-toggle");
        assert_eq!(visitor.attributes("open-browser-toggle", "aria-checked"), [checked]);
        assert_eq!(house.get_setting("open_browser"), checked);
        visitor.press("language-de");
    }
}

#[test]
fn a_link_made_here_signs_another_browser_in_and_all_can_be_signed_out() {
    let house = House::new();
    let mut visitor = house.visitor(GENERAL);
    assert_eq!(visitor.texts("sessions"), ["Only this browser is signed in."]);
    visitor.press("make-link");
    let link = visitor.texts("fresh-link")[0].to_owned();
    assert!(link.starts_with(&format!("http://{}/login?token=", house.address)), "{link}");
    visitor.open(GENERAL);
    assert!(visitor.texts("sessions")[0].contains("1 sign-in link is unused."));
    assert!(!visitor.answer.text.contains("token="), "it is shown once");
    let path = link.split_once(&house.address.to_string()).unwrap().1;
    let other = house.get(path, "").header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    assert_eq!(house.get("/", &other).status, 200);
    visitor.until_says("2 browsers are signed in.");
    visitor.press("revoke-all");
    assert!(visitor.says("Sign in to Kai"));
    assert_eq!(house.get("/", &other).status, 401);
}

/// The file that the page gives out.
fn download(visitor: &mut Visitor<'_>, passphrase: &str, again: &str) -> Answer {
    visitor.open(GENERAL);
    if !passphrase.is_empty() {
        visitor.page.tick(visitor.first("with-keys"));
    }
    visitor.fill("passphrase", passphrase);
    visitor.fill("again", again);
    visitor.sent(visitor.first("export"), &[])
}

#[test]
fn an_export_with_keys_needs_a_passphrase() {
    let house = House::new();
    house.set("web_search_brave_key", "BSA-hidden-17");
    let mut visitor = house.visitor(GENERAL);
    visitor.page.tick(visitor.first("with-keys"));
    visitor.press("export");
    assert_eq!(visitor.answer.status, 400);
    assert!(visitor.says("Enter a passphrase for the keys"), "{}", visitor.answer.text);
    // The box is still ticked, so the fields are in sight.
    visitor.fill("passphrase", "sesame");
    visitor.fill("again", "sesame");
    let body = visitor.sent(visitor.first("export"), &[]);
    assert!(body.status == 200 && body.text.contains("\"secrets\""), "{}", body.text);
    assert_eq!(visitor.attributes("with-keys", "checked").len(), 1);
}

#[test]
fn a_passphrase_counts_only_while_the_keys_are_wanted() {
    let house = House::new();
    house.set("web_search_brave_key", "BSA-hidden-17");
    for again in ["sesame", "half"] {
        let mut visitor = house.visitor(GENERAL);
        // Typed before the box was unticked, which hides the fields.
        visitor.fill("passphrase", "sesame");
        visitor.fill("again", again);
        let body = visitor.sent(visitor.first("export"), &[]);
        assert!(body.status == 200 && !body.text.contains("\"secrets\""), "{}", body.text);
    }
}

/// Gives the page a file to look at.
fn upload(visitor: &mut Visitor<'_>, house: &House, file: &[u8]) {
    visitor.open(GENERAL);
    let csrf = visitor.answer.csrf();
    let head = format!(
        "--x\r\nContent-Disposition: form-data; name=\"csrf\"\r\n\r\n{csrf}\r\n\
         --x\r\nContent-Disposition: form-data; name=\"page\"\r\n\r\ngeneral\r\n\
         --x\r\nContent-Disposition: form-data; name=\"card\"\r\n\r\nimport\r\n\
         --x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.json\"\r\n\r\n"
    );
    let body = [head.as_bytes(), file, b"\r\n--x--\r\n"].concat();
    let request = format!(
        "POST /settings/general/import HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\nConnection: close\r\n\
         Content-Type: multipart/form-data; boundary=x\r\nContent-Length: {}\r\n\r\n",
        house.address,
        visitor.cookie,
        body.len()
    );
    let answer = house.send_raw(&[request.as_bytes(), &body].concat());
    visitor.arrive(answer);
}

fn memories(house: &House) -> Vec<String> {
    let listed = house.show("memory_list");
    listed.as_array().unwrap().iter().map(|one| one["content"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_is_taken_along_holds_no_secrets_and_is_taken_in_after_a_preview() {
    let model = Model::start([Act::says("Um neun.")]);
    let from = House::with_model(&model);
    from.remember("tea", "Likes <b>green</b> tea.");
    from.set("web_search_brave_key", "BSA-hidden-17");
    from.set("theme", "dark");
    from.ask("Wann?");
    let mut visitor = from.visitor(GENERAL);
    let plain = download(&mut visitor, "", "");
    assert_eq!(plain.status, 200);
    assert!(plain.header("content-disposition").unwrap().starts_with("attachment; filename=\"kai-20"));
    let text = plain.body().to_owned();
    assert!(text.contains("green") && text.contains("Um neun.") && !text.contains("hidden-17"), "{text}");
    let sealed = download(&mut visitor, "sesame", "sesame").text;
    assert!(sealed.contains("\"secrets\"") && !sealed.contains("hidden-17"));
    let typo = download(&mut visitor, "sesame", "sesam");
    assert!(typo.status == 400 && typo.text.contains("don’t match"), "{}", typo.text);

    let to = House::new();
    to.remember("coffee", "Never.");
    let mut visitor = to.visitor(GENERAL);
    upload(&mut visitor, &to, text.as_bytes());
    let preview = visitor.texts("outcome").join("\n");
    for expected in ["Memories", "1 to add", "tea", "theme: system → dark", "mine: m at http"] {
        assert!(preview.contains(expected), "{expected:?} in {preview}");
    }
    assert_eq!(memories(&to), ["Never."], "a preview changes nothing");
    visitor.press("import-how");
    assert!(visitor.says("Each section of the file replaces the existing items."));
    assert!(visitor.texts("outcome").join("\n").contains("1 to remove"), "{:?}", visitor.texts("outcome"));
    visitor.press("import-cancel");
    assert!(visitor.has("import-file"));
    assert_eq!(memories(&to), ["Never."]);
    upload(&mut visitor, &to, text.as_bytes());
    visitor.page.tick(visitor.first("import-settings"));
    visitor.press("import-take");
    assert!(visitor.has("import-done"));
    assert_eq!(to.get_setting("theme"), "system", "a section that was not wanted");
    let kept = memories(&to);
    assert!(
        kept.iter().any(|it| it == "Never.") && kept.iter().any(|it| it.contains("<b>green</b>")),
        "{kept:?}"
    );
}

#[test]
fn bad_and_huge_files_and_foreign_forms_are_said_and_change_nothing() {
    let house = House::new();
    let mut visitor = house.visitor(GENERAL);
    for (bytes, word) in [
        (&b"{\"kai_export\": 99}"[..], "newer Kai"),
        (b"<script>alert(1)</script>", "isn’t a file that Kai exported"),
        (b"[1, 2]", "isn’t a file that Kai exported"),
        (b"\xff\xfe\x00", "isn’t a file that Kai exported"),
        (b"\x20", "isn’t a file that Kai exported"),
    ] {
        upload(&mut visitor, &house, bytes);
        assert!(visitor.says(word) && visitor.says("Nothing was changed"), "{word}: {}", visitor.answer.text);
    }
    upload(&mut visitor, &house, &vec![0; 272 * 1024 * 1024]);
    assert!(visitor.says("up to 256 MB"), "{}", visitor.answer.text);
    // Sections that make no sense are named, and the others are still there to be taken in.
    let partly = json!({"kai_export": 1, "sections": {
        "memory": 5, "settings": {"theme": "blue<i>", "language": "de", "made_up": "1"},
    }});
    upload(&mut visitor, &house, partly.to_string().as_bytes());
    let preview = visitor.texts("outcome").join("\n");
    for expected in ["Can’t be imported", "made_up: unknown here", "blue<i>", "language: system → de"] {
        assert!(preview.contains(expected), "{expected:?} in {preview}");
    }
    // Without the proof nothing is even looked at.
    let form = "------x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n{\"kai_export\": 1}\r\n------x--\r\n";
    let headers =
        [("Cookie", visitor.cookie.as_str()), ("Content-Type", "multipart/form-data; boundary=----x")];
    assert_eq!(house.send("POST", "/settings/general/import", &headers, form).status, 403);
    let take =
        house.send("POST", "/settings/general/import/take", &[("Cookie", &visitor.cookie)], "number=1");
    assert_eq!(take.status, 403);
    assert_eq!(house.get_setting("language"), "system");
}

/// That its daemon ends and the home is empty is in `tests/frame`.
#[test]
fn erasing_needs_the_typed_words() {
    let house = House::new();
    let mut visitor = house.visitor(GENERAL);
    visitor.fill("erase-words", "erase");
    visitor.press("erase");
    assert!(visitor.says("Nothing was erased. To erase everything, type exactly: erase everything"));
    assert!(!house.app.erase.is_cancelled());
    visitor.fill("erase-words", "erase everything");
    visitor.press("erase");
    assert!(visitor.says("Everything is erased"));
    assert!(house.app.erase.is_cancelled());
}

#[test]
fn no_page_shows_a_command_line_flag() {
    let house = House::new();
    let mut visitor = house.visitor("/");
    for path in [
        "/",
        "/settings/agent",
        "/settings/tools",
        "/settings/models",
        "/settings/phones",
        "/settings/mcp",
        GENERAL,
        "/ledger",
    ] {
        visitor.open(path);
        assert!(!visitor.says(" --"), "{path}");
    }
    let signed_out = house.get("/", "").text;
    assert!(signed_out.contains("kai link") && !signed_out.contains(" --"), "{signed_out}");
}
