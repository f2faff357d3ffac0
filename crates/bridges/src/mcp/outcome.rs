//! What a call returned, made ours: bounded, and with what cannot be shown only named. Pure.

use kai_assistant::mcp::port::Outcome;
use kai_assistant::untrusted::Untrusted;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

/// The most bytes of text, and of structured content.
const LARGEST_TEXT: usize = 256 * 1024;
/// The most pictures, sounds and links that are named.
const MOST_NAMED: usize = 100;
/// The most characters of a link's name and address, and of a media type.
const LONGEST_LINK: usize = 500;
const LONGEST_KIND: usize = 60;

pub(super) fn outcome(result: CallToolResult) -> Outcome {
    let mut read = Read::default();
    for block in result.content {
        read.add(block);
    }
    let structured = result.structured_content.filter(|value| !value.is_null());
    let structured = structured.and_then(|value| read.small(value));
    Outcome {
        failed: result.is_error.unwrap_or_default(),
        text: Untrusted::new(read.text),
        structured,
        media: read.media,
        links: read.links,
    }
}

#[derive(Default)]
struct Read {
    text: String,
    media: Vec<String>,
    links: Vec<(Untrusted, Untrusted)>,
}

impl Read {
    fn add(&mut self, block: ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.say(&text.text),
            ContentBlock::Image(image) => self.name(&image.mime_type, image.data.len()),
            ContentBlock::Audio(audio) => self.name(&audio.mime_type, audio.data.len()),
            ContentBlock::Resource(embedded) => match embedded.resource {
                ResourceContents::TextResourceContents { text, .. } => self.say(&text),
                ResourceContents::BlobResourceContents { mime_type, blob, .. } => {
                    self.name(mime_type.as_deref().unwrap_or_default(), blob.len());
                }
                _ => {}
            },
            ContentBlock::ResourceLink(link) if self.links.len() < MOST_NAMED => {
                self.links.push((line(&link.name), line(&link.uri)));
            }
            _ => {}
        }
    }

    fn say(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let room = LARGEST_TEXT.saturating_sub(self.text.len());
        self.text.push_str(&text[..text.floor_char_boundary(room)]);
    }

    fn name(&mut self, kind: &str, encoded: usize) {
        if self.media.len() < MOST_NAMED {
            self.media.push(format!("{}, {}", media_type(kind), size(encoded / 4 * 3)));
        }
    }

    /// The value if it is small enough. Otherwise its beginning becomes the text, unless there is a text.
    fn small(&mut self, value: Value) -> Option<Value> {
        let written = value.to_string();
        if written.len() <= LARGEST_TEXT {
            return Some(value);
        }
        if self.text.is_empty() {
            self.say(&written);
        }
        None
    }
}

fn line(text: &str) -> Untrusted {
    Untrusted::new(Untrusted::new(text).line(LONGEST_LINK))
}

/// The type as the server names it, if it looks like one.
fn media_type(kind: &str) -> &str {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/.+-".contains(c);
    let fits = !kind.is_empty() && kind.len() <= LONGEST_KIND && kind.chars().all(plain);
    if fits { kind } else { "data" }
}

fn size(bytes: usize) -> String {
    const KB: usize = 1024;
    match bytes {
        0..KB => format!("{bytes} bytes"),
        _ => format!("{} KB", bytes.div_ceil(KB)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(result: Value) -> Outcome {
        outcome(serde_json::from_value(result).unwrap())
    }

    #[test]
    fn each_kind_of_content_finds_its_place() {
        let result = read(json!({
            "content": [
                {"type": "text", "text": "one"},
                {"type": "image", "mimeType": "image/png", "data": "AAAA".repeat(4_096)},
                {"type": "audio", "mimeType": "audio/wav\nIgnore this", "data": "AAAA"},
                {"type": "resource", "resource": {"uri": "file:///a", "text": "two"}},
                {"type": "resource", "resource": {"uri": "file:///b", "blob": "AAAA", "mimeType": "image/gif"}},
                {"type": "resource_link", "name": "three\nfour", "uri": "https://example.org/"},
            ],
            "structuredContent": {"n": 1},
            "isError": true,
        }));
        assert_eq!(result.text.as_written(), "one\ntwo");
        assert_eq!(result.media, ["image/png, 12 KB", "data, 3 bytes", "image/gif, 3 bytes"]);
        let [(name, address)] = &result.links[..] else { panic!("one link") };
        assert_eq!((name.as_written(), address.as_written()), ("three four", "https://example.org/"));
        assert_eq!((result.structured, result.failed), (Some(json!({"n": 1})), true));
    }

    #[test]
    fn a_result_is_bounded() {
        let many: Vec<_> = (0..1_000).map(|_| json!({"type": "text", "text": "ä".repeat(1_000)})).collect();
        assert!(read(json!({"content": many})).text.as_written().len() < LARGEST_TEXT + 1_000);
        let pictures: Vec<_> =
            (0..1_000).map(|_| json!({"type": "image", "mimeType": "image/png", "data": ""})).collect();
        assert_eq!(read(json!({"content": pictures})).media.len(), MOST_NAMED);
        let large = json!({"content": [], "structuredContent": {"a": "x".repeat(LARGEST_TEXT)}});
        let result = read(large);
        assert_eq!((result.structured, result.text.as_written().len()), (None, LARGEST_TEXT));
    }
}
