//! Files on the page: attached, shown, sent, kept from strangers, gone with their chat and back with it.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::{Value, json};

use super::house::{Answer, House};
use super::model::{Act, Model};
use super::visitor::Visitor;
use crate::call::Call;
use crate::call::ledger::LedgerCall;

/// A picture of one colour.
pub(in super::super) fn png(width: u32, height: u32) -> Vec<u8> {
    let row: Vec<u8> = std::iter::once(0).chain([200, 30, 60].repeat(width as usize)).collect();
    let mut pixels = ZlibEncoder::new(vec![], Compression::fast());
    (0..height).for_each(|_| pixels.write_all(&row).unwrap());
    let size = [width.to_be_bytes(), height.to_be_bytes()].concat();
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, data) in [
        (b"IHDR", [size.as_slice(), &[8, 2, 0, 0, 0]].concat()),
        (b"tEXt", b"Comment\0SECRET PLACE".to_vec()),
        (b"IDAT", pixels.finish().unwrap()),
        (b"IEND", vec![]),
    ] {
        let mut sum = flate2::Crc::new();
        sum.update(kind);
        sum.update(&data);
        bytes.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
        bytes.extend(kind.iter().chain(&data));
        bytes.extend(sum.sum().to_be_bytes());
    }
    bytes
}

fn upload(house: &House, visitor: &Visitor<'_>, name: &str, bytes: &[u8]) -> Answer {
    let csrf = visitor.answer.csrf();
    post(house, &[("Cookie", &visitor.cookie), ("x-csrf-token", &csrf), ("x-file-name", name)], bytes)
}

fn post(house: &House, headers: &[(&str, &str)], bytes: &[u8]) -> Answer {
    let lines: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!(
        "POST /attach HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nx-live: 1\r\n{}Content-Length: {}\r\n\r\n",
        house.address,
        lines.concat(),
        bytes.len()
    );
    house.send_raw(&[head.as_bytes(), bytes].concat())
}

fn told(answer: &Answer) -> Value {
    serde_json::from_str(answer.body()).unwrap_or_else(|_| panic!("{}", answer.text))
}

/// Uploads a file that is accepted; its number.
fn attached(house: &House, visitor: &Visitor<'_>, name: &str, bytes: &[u8]) -> String {
    let answer = upload(house, visitor, name, bytes);
    assert_eq!(answer.status, 200, "{}", answer.text);
    let told = told(&answer);
    let chip = told["chip"].as_str().unwrap();
    chip.split("data-file=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
}

fn say(house: &House, visitor: &mut Visitor<'_>, text: &str, files: &[String]) {
    say_in(house, visitor, "/say", text, files);
}

fn say_in(house: &House, visitor: &mut Visitor<'_>, path: &str, text: &str, files: &[String]) {
    let csrf = visitor.answer.csrf();
    let body = format!("csrf={csrf}&text={text}&files={}", files.join("%2C"));
    let answer = house.send("POST", path, &[("Cookie", &visitor.cookie)], &body);
    visitor.arrive(answer);
}

fn until_answered(visitor: &mut Visitor<'_>) {
    visitor.until("an answer", |page, _| !page.having("class", "foot quiet").is_empty());
}

#[test]
fn files_are_sent_shown_and_named_as_the_reason() {
    let model = Model::start([Act::says("A red square, and a list.")]);
    let house = House::with_model(&model);
    let mut visitor = house.visitor("/");
    let files = [
        attached(&house, &visitor, "red%20square.png", &png(40, 30)),
        attached(&house, &visitor, "list.txt", b"Milk, <b>eggs</b>"),
    ];
    say(&house, &mut visitor, "What+is+this%3F", &files);
    until_answered(&mut visitor);
    let sent = model.asked()[0].body["messages"][1]["content"].clone();
    let text = sent[0]["text"].as_str().unwrap();
    assert!(text.starts_with("What is this?\n\nBetween the two lines marked "), "{text}");
    assert!(text.contains("the file \"list.txt\"") && text.contains("Milk, <b>eggs</b>"), "{text}");
    let url = sent[1]["image_url"]["url"].as_str().unwrap();
    assert!(url.starts_with("data:image/png;base64,iVBOR"), "{url}");
    assert_eq!(visitor.texts("message-user")[0].trim(), "What is this?list.txt17 bytes");
    assert!(visitor.has("attachment-picture"));
    let reason = visitor.texts("taint-reason").concat();
    assert!(reason.contains("You attached the picture red square.png here"), "{reason}");
    assert!(reason.contains("And 1 more."), "{reason}");

    let paths = visitor.attributes("attachment-picture", "href");
    let picture = house.get(paths[0], &visitor.cookie);
    assert_eq!((picture.status, picture.header("content-type")), (200, Some("image/png")));
    assert_eq!(picture.header("x-content-type-options"), Some("nosniff"));
    let policy = picture.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("sandbox"), "{policy}");
    assert!(!picture.text.contains("SECRET"), "no metadata is kept");
    let list = house.get(visitor.attributes("attachment-file", "href")[0], &visitor.cookie);
    assert_eq!(list.header("content-type"), Some("text/plain; charset=utf-8"), "it is never a page");
    assert_eq!(list.body(), "Milk, <b>eggs</b>");
    assert_eq!(house.get(paths[0], "").status, 401, "not for strangers");
    assert_eq!(house.get("/files/00", &visitor.cookie).status, 404);
}

#[test]
fn each_refusal_is_a_sentence_and_changes_nothing() {
    let house = House::new();
    house.set("language", "de");
    let visitor = house.visitor("/");
    let bomb = [&png(1, 1)[..16], &[0, 1, 0, 0, 0, 1, 0, 0], &png(1, 1)[24..]].concat();
    for (name, bytes, status, sentence) in [
        ("leer.txt", vec![], 409, "leer.txt ist leer."),
        (
            "a.gif",
            b"GIF89a\x01\0\x01\0".to_vec(),
            409,
            "Kai kann a.gif nicht lesen. Kai akzeptiert Bilder als JPEG",
        ),
        ("halb.png", png(90, 90)[..60].to_vec(), 409, "Kai kann das Bild halb.png nicht lesen"),
        ("bombe.png", bomb, 409, "bombe.png"),
        ("groß.txt", vec![b'a'; 10 * 1024 * 1024 + 1], 413, "ist größer als 10 MB."),
        ("lang.txt", vec![b'a'; 1024 * 1024 + 1], 409, "Die Textdatei lang.txt ist länger als 1 MB"),
    ] {
        let answer = upload(&house, &visitor, &name.replace('ß', "%C3%9F"), &bytes);
        let error = told(&answer)["error"].as_str().unwrap_or_default().to_owned();
        assert!(answer.status == status && error.contains(sentence), "{name}: {} {error}", answer.status);
    }
    let cookie = visitor.cookie.as_str();
    assert_eq!(post(&house, &[("Cookie", cookie)], b"hello").status, 403, "without the page's proof");
    assert_eq!(post(&house, &[], b"hello").status, 401, "by a stranger");
    let kept: i64 = house.app.db.read_now(|tx| count(tx, "attachments")).unwrap();
    assert_eq!(kept, 0);
}

fn count(tx: &rusqlite::Transaction<'_>, table: &str) -> Result<i64, kai_assistant::db::DbError> {
    Ok(tx.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?)
}

#[test]
fn a_model_that_cannot_see_says_so_when_a_picture_is_attached_and_before_it_is_sent() {
    let model = Model::start([Act::says("Hello.")]);
    let house = House::with_model(&model);
    house.run("models_pictures", &json!({"name": "mine", "pictures": "no"}));
    let mut visitor = house.visitor("/");
    let answer = upload(&house, &visitor, "cat.png", &png(9, 9));
    let warning = told(&answer)["warning"].as_str().unwrap_or_default().to_owned();
    assert!(warning.starts_with("mine can’t see pictures."), "{}", answer.text);
    assert_eq!(told(&answer)["remedy"]["href"], "/settings/models");
    let file = attached(&house, &visitor, "cat.png", &png(9, 9));
    say(&house, &mut visitor, "Look", &[file]);
    assert!(visitor.answer.status == 409 && visitor.says("mine can’t see pictures."));
    assert_eq!(visitor.value("chat-input"), "Look");
    assert!(model.asked().is_empty(), "nothing was sent");
    let text = told(&upload(&house, &visitor, "a.txt", b"hi"));
    assert_eq!(text["warning"], Value::Null, "it can read");
}

/// As large as a telephone's camera makes them.
#[test]
fn a_picture_of_several_megabytes_is_accepted() {
    let house = House::new();
    let visitor = house.visitor("/");
    let large = [png(9, 9), vec![0; 9 * 1024 * 1024]].concat();
    attached(&house, &visitor, "large.png", &large);
}

#[test]
fn a_file_waits_with_its_queued_message() {
    let model = Model::start([Act::says_in_steps(&["One", "."]), Act::says("A square.")]);
    let house = House::with_model(&model);
    let mut visitor = house.visitor("/");
    say(&house, &mut visitor, "A", &[]);
    visitor.until("an answer that comes", |_, text| text.contains("One"));
    let file = attached(&house, &visitor, "cat.png", &png(9, 9));
    say_in(&house, &mut visitor, "/c/1/say", "Look", std::slice::from_ref(&file));
    assert!(visitor.texts("queued-text").concat().contains("cat.png"), "{}", visitor.answer.text);
    let csrf = visitor.answer.csrf();
    let taken = house.send(
        "POST",
        &format!("/attach/{file}/remove"),
        &[("Cookie", &visitor.cookie)],
        &format!("csrf={csrf}"),
    );
    assert!(taken.status < 400, "{}", taken.text);
    model.go_on(2);
    visitor.until("the other answer", |_, text| text.contains("A square."));
    let sent = model.asked().pop().unwrap().body.to_string();
    assert!(sent.contains("base64"), "the picture went along: {sent}");
}

/// Nobody tapped, so nobody was told: the page says it where the message waits.
#[test]
fn a_queued_picture_that_the_model_cannot_see_stays_and_says_why() {
    let model = Model::start([Act::says_in_steps(&["One", "."])]);
    let house = House::with_model(&model);
    let mut visitor = house.visitor("/");
    say(&house, &mut visitor, "A", &[]);
    visitor.until("an answer that comes", |_, text| text.contains("One"));
    house.run("models_pictures", &json!({"name": "mine", "pictures": "no"}));
    let file = attached(&house, &visitor, "cat.png", &png(9, 9));
    say_in(&house, &mut visitor, "/c/1/say", "Look", &[file]);
    model.go_on(2);
    visitor.until("the reason", |_, text| text.contains("mine can’t see pictures."));
    assert!(visitor.has("queued-send") && model.asked().len() == 1, "it waits");
}

#[test]
fn a_picture_that_the_server_refuses_can_be_left_out() {
    let refusal = r#"{"error":{"message":"image input is not supported"}}"#;
    let model = Model::start([Act::status("400 Bad Request", refusal), Act::says("Words it is.")]);
    let house = House::with_model(&model);
    let mut visitor = house.visitor("/");
    let file = attached(&house, &visitor, "cat.png", &png(9, 9));
    say(&house, &mut visitor, "Look", &[file]);
    visitor.until_seen("chat-error");
    let said = visitor.texts("chat-error").concat();
    assert!(said.contains("mine doesn’t accept pictures (image input is not supported)."), "{said}");
    visitor.press("chat-without-pictures");
    until_answered(&mut visitor);
    let sent = model.asked().pop().unwrap().body["messages"][1]["content"].to_string();
    assert!(sent.contains("which you cannot see") && !sent.contains("base64"), "{sent}");
    assert!(visitor.has("attachment-picture"), "it is still in the chat");
    let row = house.show("models_list")[0].clone();
    assert_eq!((&row["pictures"], &row["pictures_set"]), (&json!("no"), &Value::Null), "Kai learned it");
}

#[test]
fn files_go_with_their_chat_come_back_with_it_and_are_exported() {
    let model = Model::start([Act::says("I see."), Act::says("I see.")]);
    let house = House::with_model(&model);
    let mut visitor = house.visitor("/");
    let file = attached(&house, &visitor, "cat.png", &png(9, 9));
    say(&house, &mut visitor, "", &[file]);
    until_answered(&mut visitor);
    assert!(visitor.text_of_children("conversation-list").concat().contains("cat.png"), "it is the title");
    let path = visitor.attributes("attachment-picture", "href").remove(0).to_owned();
    let record = house.call(Call::Ledger(LedgerCall::Show { limit: 9 })).unwrap().to_string();
    assert!(record.contains(path.trim_start_matches("/files/")), "{record}");

    let call = json!({"sections": ["conversations"], "passphrase": null, "from": null});
    let text = house.run("export", &call)["text"].clone();
    let other = House::new();
    let import = json!({"text": text, "sections": [], "mode": "merge", "passphrase": null, "preview": false});
    other.run("import", &import);
    let guest = other.visitor("/");
    let there = guest.attributes("attachment-picture", "href").remove(0);
    assert_eq!(there, path, "the same file has the same name");
    assert_eq!(other.get(there, &guest.cookie).status, 200);

    visitor.press("chat-menu-delete");
    assert_eq!(house.get(&path, &visitor.cookie).status, 404);
    visitor.open("/");
    visitor.press("undo");
    assert_eq!(house.get(&path, &visitor.cookie).status, 200);
}
