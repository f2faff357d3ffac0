//! Fuzz checks for attached files: whatever the bytes and the name are, what is kept is small, of a known kind, and read
//! again as the same.

#![expect(clippy::unwrap_used, reason = "a check may fail loudly")]

use super::picture::LONGEST_SIDE;
use super::{FileKind, LARGEST, fits, read};

/// Fuzz target: checks any bytes as a file, with its name on the first line.
pub fn file(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let (name, inside) = bytes.split_at(end);
    check(&String::from_utf8_lossy(name), inside.get(1..).unwrap_or_default());
}

fn check(name: &str, bytes: &[u8]) {
    match read(name, bytes) {
        Ok(kept) => {
            let name = &kept.file.name;
            assert!(!name.is_empty() && name.chars().count() <= 80, "{name:?}");
            assert!(!name.chars().any(|c| c.is_control() || "\"<>/\\".contains(c)), "{name:?}");
            assert!(kept.bytes.len() <= LARGEST && fits(&kept.file, &kept.bytes));
            if let FileKind::Picture { width, height, .. } = kept.file.kind {
                assert!(width.max(height) <= LONGEST_SIDE && width.min(height) > 0, "{width} × {height}");
            }
            assert_eq!(
                read(name, &kept.bytes).unwrap().file.kind,
                kept.file.kind,
                "it is read again as it is"
            );
        }
        Err(refused) => {
            let sentence = refused.said().to_string();
            assert!(sentence.ends_with('.') && !sentence.contains('\n'), "{sentence}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use image::{DynamicImage, ImageFormat};
    use proptest::prelude::*;

    use super::*;

    fn examples() -> Vec<Vec<u8>> {
        let written = |format| {
            let mut bytes = Cursor::new(vec![]);
            DynamicImage::new_rgb8(12, 7).write_to(&mut bytes, format).unwrap();
            bytes.into_inner()
        };
        let mut all = [ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::WebP].map(written).to_vec();
        all.push(b"\xef\xbb\xbf# Notes\n\nText.".to_vec());
        all
    }

    proptest! {
        #[test]
        fn what_is_kept_is_small_and_of_a_known_kind(
            bytes in kai_mutate::bytes(examples()),
            name in kai_mutate::text(vec!["a/b.png".to_owned(), "notes \u{202e}txt.exe".to_owned()]),
        ) {
            check(&name, &bytes);
        }
    }
}
