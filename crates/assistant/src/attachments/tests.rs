//! Files as they come, good and bad, and what is kept of them.

use std::io::Cursor;

use image::{DynamicImage, ImageFormat, Rgb, RgbImage, Rgba, RgbaImage};
use jiff::{SignedDuration, Timestamp};
use rusqlite::Transaction;

use super::store::{self, StagedId};
use super::*;
use crate::agent::conversation::{self, Which};
use crate::db::{Db, DbError};

/// A picture whose left half is red and whose right half is blue.
fn halves(width: u32, height: u32) -> DynamicImage {
    let colour = |x| if x < width / 2 { Rgb([220, 20, 20]) } else { Rgb([20, 20, 220]) };
    RgbImage::from_fn(width, height, |x, _| colour(x)).into()
}

fn written(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(vec![]);
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// A JPEG with metadata: turned by 90°, and a text that must not leave.
fn with_exif(jpeg: &[u8]) -> Vec<u8> {
    // TIFF, big-endian, one entry: orientation (0x0112), a short, once, 6 (to be turned clockwise).
    let mut exif = b"Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0".to_vec();
    exif.extend_from_slice(b"GPS 52.5200 13.4050 SECRET PLACE");
    let length = u16::try_from(exif.len() + 2).unwrap().to_be_bytes();
    [&jpeg[..2], b"\xff\xe1", &length, &exif, &jpeg[2..]].concat()
}

/// A PNG that claims a size.
fn claiming(width: u32, height: u32) -> Vec<u8> {
    let mut png = written(&halves(8, 8), ImageFormat::Png);
    png[16..20].copy_from_slice(&width.to_be_bytes());
    png[20..24].copy_from_slice(&height.to_be_bytes());
    let checksum = crc(&png[12..29]).to_be_bytes();
    png[29..33].copy_from_slice(&checksum);
    png
}

fn crc(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| {
        (0..8).fold(
            sum ^ u32::from(*byte),
            |sum, _| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 },
        )
    };
    !bytes.iter().fold(u32::MAX, step)
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn pictures_are_upright_small_and_without_metadata() {
    let jpeg = with_exif(&written(&halves(40, 20), ImageFormat::Jpeg));
    assert!(has(&jpeg, b"SECRET PLACE"));
    let kept = read("photo.jpg", &jpeg).unwrap();
    assert_eq!(
        kept.file.kind,
        FileKind::Picture { media: Media::Jpeg, width: 20, height: 40 },
        "turned upright"
    );
    assert!(!has(&kept.bytes, b"SECRET") && !has(&kept.bytes, b"Exif"));
    let upright = image::load_from_memory(&kept.bytes).unwrap().to_rgb8();
    let [red, _, blue] = upright.get_pixel(10, 2).0;
    assert!(red > 180 && blue < 80, "what was left is now above: {red} {blue}");

    let large = read("large.png", &written(&halves(4000, 1000), ImageFormat::Png)).unwrap();
    assert_eq!(large.file.kind, FileKind::Picture { media: Media::Png, width: 1568, height: 392 });
    let webp = read("drawing.webp", &written(&halves(30, 30), ImageFormat::WebP)).unwrap();
    assert_eq!(webp.file.kind, FileKind::Picture { media: Media::Png, width: 30, height: 30 });
    assert_eq!(webp.file.size, webp.bytes.len());
}

#[test]
fn what_would_be_large_as_png_is_kept_as_jpeg_on_white() {
    // Noise cannot be compressed.
    let mut state = 1_u32;
    let noisy = RgbaImage::from_fn(900, 900, |_, _| {
        let mut byte = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            u8::try_from(state >> 24).unwrap_or_default()
        };
        Rgba([byte(), byte(), byte(), 0])
    });
    let kept = read("noise.png", &written(&noisy.into(), ImageFormat::Png)).unwrap();
    assert_eq!(kept.file.kind, FileKind::Picture { media: Media::Jpeg, width: 900, height: 900 });
    let seen = image::load_from_memory(&kept.bytes).unwrap().to_rgb8();
    assert!(seen.pixels().all(|pixel| pixel.0.iter().all(|part| *part > 250)), "nothing shines through");
}

#[test]
fn each_bad_file_gets_its_sentence() {
    let png = written(&halves(50, 50), ImageFormat::Png);
    let cut = &png[..png.len() / 2];
    let named = |name: &str| name.to_owned();
    let big = vec![b'a'; LARGEST + 1];
    let long = vec![b'a'; LONGEST_TEXT + 1];
    let gif = b"GIF89a\x01\0\x01\0\0\0\0;".to_vec();
    for (what, bytes, expected) in [
        ("nothing", vec![], Refused::Empty { name: named("f") }),
        ("only space", b" \n".to_vec(), Refused::Empty { name: named("f") }),
        ("too many bytes", big, Refused::TooBig { name: named("f") }),
        ("a long text", long, Refused::TextTooLong { name: named("f") }),
        ("half a picture", cut.to_vec(), Refused::Broken { name: named("f") }),
        ("only a beginning", b"\xff\xd8\xff\xe0".to_vec(), Refused::Broken { name: named("f") }),
        (
            "a RIFF that is no picture",
            b"RIFF\x04\0\0\0WEBPVP8 ".to_vec(),
            Refused::Broken { name: named("f") },
        ),
        ("a bomb", claiming(60_000, 60_000), Refused::TooMuch { name: named("f") }),
        ("a long one", claiming(30_000, 1), Refused::TooMuch { name: named("f") }),
        ("too many pixels", claiming(9_000, 9_000), Refused::TooMuch { name: named("f") }),
        ("less than it claims", claiming(3_000, 3_000), Refused::Broken { name: named("f") }),
        ("another format", gif, Refused::UnknownKind { name: named("f") }),
        ("a program", b"\x7fELF\x02\x01\x01\0".to_vec(), Refused::UnknownKind { name: named("f") }),
    ] {
        assert_eq!(read("f", &bytes), Err(expected.clone()), "{what}");
        let sentence = expected.said().to_string();
        assert!(sentence.ends_with('.') && sentence.contains('f'), "{sentence}");
    }
}

#[test]
fn text_is_kept_as_it_is_without_the_mark_before_it() {
    let kept = read("../notes.md", b"\xef\xbb\xbf# Notes\r\n").unwrap();
    assert_eq!((kept.file.name.as_str(), kept.bytes.as_slice()), ("notes.md", &b"# Notes\r\n"[..]));
    assert_eq!(kept.file.kind, FileKind::Text);
    assert!(fits(&kept.file, &kept.bytes));
    assert!(!fits(&kept.file, b"# Other\r\n"), "altered");
}

#[test]
fn what_was_altered_in_an_export_fits_no_more() {
    let kept = read("a.png", &written(&halves(9, 9), ImageFormat::Png)).unwrap();
    assert!(fits(&kept.file, &kept.bytes));
    let text = kept.file.with_bytes(b"<script>alert(1)</script>");
    assert!(!fits(&text, b"<script>alert(1)</script>"), "text that calls itself a picture");
    let other =
        Attachment { kind: FileKind::Picture { media: Media::Png, width: 8, height: 9 }, ..kept.file };
    assert!(!fits(&other, &kept.bytes), "another size");
}

#[tokio::test]
async fn two_pictures_at_once_are_read_one_after_the_other() {
    let png = written(&halves(60, 60), ImageFormat::Png);
    let (one, two) = tokio::join!(prepare("a.png".into(), png.clone()), prepare("b.png".into(), png));
    assert_eq!(one.unwrap().file.hash, two.unwrap().file.hash);
}

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn later(hours: i64) -> Timestamp {
    NOW.checked_add(SignedDuration::from_hours(hours)).unwrap()
}

fn count(tx: &Transaction<'_>, table: &str) -> i64 {
    tx.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

fn note(text: &str) -> Prepared {
    read("note.txt", text.as_bytes()).unwrap()
}

#[tokio::test]
async fn a_file_is_stored_once_and_goes_with_the_last_that_has_it() {
    let db = Db::in_memory(crate::MIGRATIONS).unwrap();
    let checked = db.write(|tx| {
        let (first, second) = (store::stage(tx, &note("same"), NOW)?, store::stage(tx, &note("same"), NOW)?);
        assert_eq!((count(tx, "attachments"), count(tx, "staged_attachments")), (1, 2));
        let files = store::staged(tx, &[first, second])?.unwrap();
        let chat = |tx: &Transaction<'_>| conversation::find_or_begin(tx, Which::New, NOW);
        let (one, two) = (chat(tx)?.unwrap(), chat(tx)?.unwrap());
        for (id, file) in [(one, &files[..1]), (two, &files[1..])] {
            let said = kai_llm::Message::user("Look.");
            conversation::append(tx, id, &[said], None, NOW)?;
            store::attach(tx, tx.query_row("SELECT max(id) FROM entries", [], |row| row.get(0))?, file)?;
        }
        store::unstage(tx, first)?;
        store::unstage(tx, second)?;
        assert_eq!(conversation::entries(tx, one)?[0].files, files[..1]);
        conversation::delete(tx, one)?;
        assert_eq!((count(tx, "attachments"), count(tx, "entry_attachments")), (1, 1), "the other has it");
        conversation::delete(tx, two)?;
        assert_eq!((count(tx, "attachments"), count(tx, "entry_attachments")), (0, 0));
        assert_eq!(store::staged(tx, &[first])?, Err(Refused::Gone));
        assert_eq!(store::staged(tx, &[StagedId(1); 5])?, Err(Refused::TooMany));
        Ok::<_, DbError>(())
    });
    checked.await.unwrap();
}

#[tokio::test]
async fn what_is_never_sent_does_not_stay() {
    let db = Db::in_memory(crate::MIGRATIONS).unwrap();
    let checked = db.write(|tx| {
        store::stage(tx, &note("old"), NOW)?;
        let new = store::stage(tx, &note("new"), later(20))?;
        store::sweep(tx, later(23))?;
        assert_eq!(count(tx, "attachments"), 2);
        store::sweep(tx, later(25))?;
        assert_eq!((count(tx, "attachments"), count(tx, "staged_attachments")), (1, 1));
        assert!(store::staged(tx, &[new])?.is_ok());
        for n in 0..60 {
            store::stage(tx, &note(&n.to_string()), later(25))?;
        }
        assert_eq!(count(tx, "staged_attachments"), 40, "nor do very many");
        Ok::<_, DbError>(())
    });
    checked.await.unwrap();
}

#[tokio::test]
async fn a_deleted_chat_comes_back_with_its_files() {
    let db = Db::in_memory(crate::MIGRATIONS).unwrap();
    let checked = db.write(|tx| {
        let picture = read("cat.png", &written(&halves(9, 9), ImageFormat::Png)).unwrap();
        let id = conversation::create(tx, NOW)?;
        conversation::append(tx, id, &[kai_llm::Message::user("Look.")], None, NOW)?;
        store::keep(tx, &picture.file.hash, &picture.bytes)?;
        store::attach(tx, 1, std::slice::from_ref(&picture.file))?;
        let whole = conversation::with_contents(tx, conversation::whole(tx, id)?.unwrap())?;
        conversation::delete(tx, id)?;
        assert_eq!(store::bytes(tx, &picture.file.hash)?, None);
        let back = conversation::restore(tx, &whole)?;
        assert_eq!(conversation::entries(tx, back)?[0].files.first(), Some(&picture.file));
        assert_eq!(store::find(tx, &picture.file.hash)?, Some(picture.clone()));
        assert_eq!(conversation::level(tx, back)?, crate::gate::Level::Web);
        conversation::delete(tx, back)?;
        let mut altered = whole.clone();
        altered
            .contents
            .values_mut()
            .for_each(|content| *content = conversation::FileContent::Text("x".into()));
        let back = conversation::restore(tx, &altered)?;
        assert_eq!(conversation::entries(tx, back)?[0].files, [], "altered bytes are left out");
        Ok::<_, DbError>(())
    });
    checked.await.unwrap();
}

/// A question that is asked again after a report came moves behind it, and its files with it.
#[tokio::test]
async fn a_question_that_moves_keeps_its_files() {
    let db = Db::in_memory(crate::MIGRATIONS).unwrap();
    let checked = db.write(|tx| {
        let id = conversation::create(tx, NOW)?;
        conversation::append(tx, id, &[kai_llm::Message::user("Look.")], None, NOW)?;
        let file = note("moved");
        store::keep(tx, &file.file.hash, &file.bytes)?;
        store::attach(tx, 1, std::slice::from_ref(&file.file))?;
        let answer = kai_llm::Message::Assistant { text: "Hm.".into(), calls: vec![], signature: None };
        conversation::append(tx, id, &[answer.clone(), answer], Some(("m", kai_llm::Usage::default())), NOW)?;
        tx.execute("UPDATE entries SET report = 1 WHERE id = 3", [])?;
        assert!(conversation::reopen(tx, id)?);
        let files: Vec<usize> =
            conversation::entries(tx, id)?.iter().map(|entry| entry.files.len()).collect();
        assert_eq!(files, [0, 1], "the report, then the question");
        assert_eq!(store::find(tx, &file.file.hash)?.map(|found| found.bytes), Some(file.bytes));
        Ok::<_, DbError>(())
    });
    checked.await.unwrap();
}
