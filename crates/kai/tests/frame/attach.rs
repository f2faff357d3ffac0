//! Files in a message, in a real browser: by button, paste and drop, on a phone's screen and on a desk's.

use crate::ask::with_model;
use crate::browser::Browser;
use crate::page::{check, look};
use crate::provider::{Act, Provider};

const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";

/// Makes files in the page: a drawn picture of each format, a text, and something that only claims to be a picture.
const FILES: &str = "
    const drawn = (type, w, h) => new Promise((done) => {
        const canvas = Object.assign(document.createElement('canvas'), { width: w, height: h });
        const pen = canvas.getContext('2d');
        pen.fillStyle = '#2f6f5e'; pen.fillRect(0, 0, w, h);
        pen.fillStyle = '#ffd27f'; pen.beginPath(); pen.arc(w / 2, h / 2, h / 3, 0, 7); pen.fill();
        canvas.toBlob(done, type);
    });
    const all = {
        png: () => drawn('image/png', 400, 300).then((b) => new File([b], 'sun.png', { type: b.type })),
        jpeg: () => drawn('image/jpeg', 3200, 1800).then((b) => new File([b], 'a long name of a holiday photo.jpg', { type: b.type })),
        webp: () => drawn('image/webp', 300, 300).then((b) => new File([b], 'drawing.webp', { type: b.type })),
        text: async () => new File(['Milk\\nEggs'], 'list.txt', { type: 'text/plain' }),
        broken: async () => new File([new Uint8Array([255, 216, 255, 224, 0])], 'broken.jpg', { type: 'image/jpeg' }),
    };
    const carry = async (...names) => {
        const carried = new DataTransfer();
        for (const name of names) carried.items.add(await all[name]());
        return carried;
    };";

fn with_files(browser: &Browser, script: &str) {
    browser.run(&format!("{FILES}\nreturn (async () => {{ {script} }})()"));
}

/// As the dialog of the button does it.
fn choose(browser: &Browser, names: &str) {
    with_files(
        browser,
        &format!(
            "const field = document.getElementById('attach-choose');
             field.files = (await carry({names})).files;
             field.dispatchEvent(new Event('change', {{ bubbles: true }}));"
        ),
    );
}

fn paste(browser: &Browser, names: &str) {
    with_files(
        browser,
        &format!(
            "const clipboardData = await carry({names});
             document.getElementById('chat-input').dispatchEvent(new ClipboardEvent('paste', {{ clipboardData, bubbles: true, cancelable: true }}));"
        ),
    );
}

fn drop_on_page(browser: &Browser, names: &str) {
    with_files(
        browser,
        &format!(
            "const dataTransfer = await carry({names}), page = document.querySelector('main');
             const send = (type) => page.dispatchEvent(new DragEvent(type, {{ dataTransfer, bubbles: true, cancelable: true }}));
             if (send('dragover')) throw 'the page does not take it';
             if (!document.querySelector('.app.dropping')) throw 'nothing shows where to drop';
             if (send('drop')) throw 'the browser would open it';
             if (document.querySelector('.app.dropping')) throw 'it still waits';"
        ),
    );
}

fn until_attached(browser: &Browser, count: usize) {
    let script = format!(
        "return document.querySelectorAll('#attached > li').length === {count} && document.querySelectorAll('#attached [data-file]').length === {count}"
    );
    browser.until("files to be attached", &script);
}

fn until_shown(browser: &Browser) {
    let script = "const all = [...document.querySelectorAll('.picture img')];
        return all.length > 0 && all.every((img) => img.complete && img.naturalWidth > 0)";
    browser.until("pictures to be shown", script);
}

#[test]
fn files_are_attached_by_button_paste_and_drop_and_shown_in_the_chat() {
    let provider =
        Provider::start([Act::says("A sun and a list."), Act::says("Two more."), Act::says("And a sun.")]);
    let home = with_model(&provider);
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    for (at, (width, height)) in [(360, 740), (1280, 800)].into_iter().enumerate() {
        look(&browser, width, height, at == 1);
        browser.open(&format!("http://{}/new", daemon.address));
        browser.until_live();
        choose(&browser, "'png', 'text'");
        until_attached(&browser, 2);
        until_shown(&browser);
        check(&browser, &format!("attached at {width}"));
        browser.picture(&format!("attached-{width}"));
        if at == 0 {
            browser.type_into("chat-input", "What is this?");
            browser.click("chat-send");
        } else {
            bad_files_are_refused_and_others_removed(&browser);
            // A message needs no words.
            browser.type_into("chat-input", ENTER);
        }
        browser.until("an answer", "return document.querySelectorAll('.foot').length === 1");
        until_shown(&browser);
        assert_eq!(browser.run("return document.querySelectorAll('#attached > li').length"), 0);
        check(&browser, &format!("shown at {width}"));
        browser.picture(&format!("shown-{width}"));
        a_picture_opens_large(&browser);
    }
    let sent = provider.asked();
    assert!(sent[0].raw.contains("data:image/png;base64,") && sent[0].raw.contains("Milk\\nEggs"));
    assert_eq!(sent[1].raw.matches("data:image/").count(), 3, "sun, photo and drawing");
    assert_eq!(browser.complaints(), Vec::<String>::new());
    browser.leave();
}

/// Begins with a picture and a text; ends with a picture, a photo and a drawing.
fn bad_files_are_refused_and_others_removed(browser: &Browser) {
    paste(browser, "'jpeg'");
    until_attached(browser, 3);
    drop_on_page(browser, "'broken'");
    browser.until_says("Kai can’t read the picture broken.jpg; the file is damaged.");
    until_attached(browser, 3);
    drop_on_page(browser, "'webp', 'png'");
    until_attached(browser, 4);
    browser.until_says("A message can have up to 4 files.");
    browser.run("document.querySelectorAll('[data-testid=attach-remove]')[1].click()");
    until_attached(browser, 3);
    let names = browser.texts("attached-file");
    assert!(names.iter().all(|name| !name.contains("list.txt")), "{names:?}");
}

fn a_picture_opens_large(browser: &Browser) {
    browser.click("attachment-picture");
    browser.until(
        "a large picture",
        "return document.querySelector('dialog.large[open] img')?.naturalWidth > 0",
    );
    check(browser, "a large picture");
    browser.press(ESCAPE);
    browser.until("it to close", "return !document.querySelector('dialog[open]')");
}
