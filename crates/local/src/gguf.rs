//! Reads the header of a GGUF file: what kind of model it is, and how much it can hold.
//!
//! The file may be anything that somebody downloaded. Every length in it is a claim: nothing is allocated by it, and
//! reading ends at a limit.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// What the header says about a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// Such as `qwen2` or `llama`.
    pub architecture: String,
    pub name: Option<String>,
    /// Such as `1.5B`.
    pub size: Option<String>,
    /// How many tokens the model was trained to hold.
    pub context: Option<u64>,
    pub has_template: bool,
    /// Memory for each token of the context, with 16-bit keys and values.
    pub bytes_per_token: Option<u64>,
}

/// Why a file cannot be used as a model.
#[derive(Debug, thiserror::Error)]
pub enum GgufError {
    #[error("the file cannot be read: {0}")]
    Io(io::Error),
    /// It does not begin as such a file does.
    #[error("this is not a GGUF file")]
    NotGguf,
    #[error("the file has version {0} of the GGUF format, and Kai reads versions 2 and 3")]
    Version(u32),
    #[error("the file ends within its header, so the download is probably incomplete")]
    Truncated,
    /// A claim in the header that no real model makes.
    #[error("the file's header is damaged: {0}")]
    Damaged(&'static str),
    #[error("the file does not say what kind of model it is")]
    NoArchitecture,
    /// Weights without a vocabulary, such as a projector or an adapter.
    #[error("the file has no vocabulary, so it is not a language model")]
    NoVocabulary,
}

/// The longest header that is read. The vocabularies of known models take up to 20 MB.
const MOST_BYTES: u64 = 64 << 20;
/// The most entries. Known models have fewer than 60.
const MOST_ENTRIES: u64 = 4096;
/// The longest key. Known ones are shorter than 100 bytes.
const LONGEST_KEY: u64 = 512;
/// The longest text that is kept.
const LONGEST_TEXT: u64 = 256;
/// How deep arrays may lie in arrays.
const DEEPEST: u8 = 2;

/// Reads the header of a file.
pub fn read(path: &Path) -> Result<Header, GgufError> {
    let file = File::open(path).map_err(GgufError::Io)?;
    if !file.metadata().map_err(GgufError::Io)?.is_file() {
        return Err(GgufError::NotGguf);
    }
    parse(BufReader::new(file))
}

/// Reads the header from bytes.
pub fn parse(bytes: impl Read) -> Result<Header, GgufError> {
    let mut reader = Reader { bytes: bytes.take(MOST_BYTES) };
    if reader.magic()? != *b"GGUF" {
        return Err(GgufError::NotGguf);
    }
    let version = reader.u32()?;
    if !matches!(version, 2 | 3) {
        return Err(GgufError::Version(version));
    }
    let _tensors = reader.u64()?;
    let entries = reader.u64()?;
    if entries > MOST_ENTRIES {
        return Err(GgufError::Damaged("it claims too many entries"));
    }
    let mut found = Found::default();
    for _ in 0..entries {
        let key = reader.key()?;
        let kind = reader.u32()?;
        found.take(key, reader.value(kind, 0)?);
    }
    found.header()
}

/// What a value is, as far as it matters here.
enum Value {
    Number(u64),
    Text(Kept),
    /// An array, with its largest number if it holds whole numbers.
    Many(Option<u64>),
    Other,
}

/// A text that is short enough to be kept, or only known to be there.
enum Kept {
    Whole(String),
    Long,
}

/// The entries that were read.
#[derive(Default)]
struct Found {
    numbers: HashMap<String, u64>,
    texts: HashMap<String, String>,
    has_template: bool,
    has_vocabulary: bool,
}

impl Found {
    fn take(&mut self, key: String, value: Value) {
        match (key.as_str(), &value) {
            ("tokenizer.chat_template", Value::Text(_)) => self.has_template = true,
            ("tokenizer.ggml.tokens", Value::Many(_)) => self.has_vocabulary = true,
            _ => {}
        }
        match value {
            // Some models have another number of heads in each layer. The largest is on the safe side.
            Value::Number(number) | Value::Many(Some(number)) => drop(self.numbers.insert(key, number)),
            Value::Text(Kept::Whole(text)) => drop(self.texts.insert(key, text)),
            Value::Text(Kept::Long) | Value::Many(None) | Value::Other => {}
        }
    }

    fn header(mut self) -> Result<Header, GgufError> {
        let architecture = self.texts.remove("general.architecture").filter(|name| !name.is_empty());
        let architecture = architecture.ok_or(GgufError::NoArchitecture)?;
        if !self.has_vocabulary {
            return Err(GgufError::NoVocabulary);
        }
        let number = |name: &str| self.numbers.get(&format!("{architecture}.{name}")).copied();
        let context = number("context_length").filter(|context| *context > 0);
        let bytes_per_token = per_token(number);
        Ok(Header {
            context,
            bytes_per_token,
            name: self.texts.remove("general.name"),
            size: self.texts.remove("general.size_label"),
            has_template: self.has_template,
            architecture,
        })
    }
}

/// Two numbers of 16 bits for each layer, head and dimension.
fn per_token(number: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let heads = number("attention.head_count")?;
    let of_keys = number("attention.head_count_kv").unwrap_or(heads);
    let dimension = match number("attention.key_length") {
        Some(length) => length,
        None => number("embedding_length")?.checked_div(heads)?,
    };
    let layers = number("block_count")?;
    4_u64.checked_mul(layers)?.checked_mul(of_keys)?.checked_mul(dimension)
}

struct Reader<R> {
    bytes: io::Take<R>,
}

impl<R: Read> Reader<R> {
    fn fill<const N: usize>(&mut self) -> Result<[u8; N], GgufError> {
        let mut bytes = [0; N];
        match self.bytes.read_exact(&mut bytes) {
            Ok(()) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(self.ended()),
            Err(error) => Err(GgufError::Io(error)),
        }
    }

    /// Why there is no more to read: the file ended, or our own limit was reached.
    fn ended(&self) -> GgufError {
        if self.bytes.limit() == 0 { GgufError::Damaged("it is too long") } else { GgufError::Truncated }
    }

    /// The first four bytes. A shorter file is none of ours.
    fn magic(&mut self) -> Result<[u8; 4], GgufError> {
        self.fill().map_err(|error| match error {
            GgufError::Truncated => GgufError::NotGguf,
            other => other,
        })
    }

    fn u32(&mut self) -> Result<u32, GgufError> {
        self.fill().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, GgufError> {
        self.fill().map(u64::from_le_bytes)
    }

    fn skip(&mut self, length: u64) -> Result<(), GgufError> {
        if length > self.bytes.limit() {
            return Err(GgufError::Damaged("it is too long"));
        }
        let skipped =
            io::copy(&mut self.bytes.by_ref().take(length), &mut io::sink()).map_err(GgufError::Io)?;
        if skipped == length { Ok(()) } else { Err(GgufError::Truncated) }
    }

    /// Reads so many bytes, which the caller has checked to be few.
    fn some(&mut self, length: u64) -> Result<Vec<u8>, GgufError> {
        let mut bytes = vec![];
        let read = self.bytes.by_ref().take(length).read_to_end(&mut bytes).map_err(GgufError::Io)?;
        if read as u64 == length { Ok(bytes) } else { Err(self.ended()) }
    }

    fn key(&mut self) -> Result<String, GgufError> {
        let length = self.u64()?;
        if length > LONGEST_KEY {
            return Err(GgufError::Damaged("a key is too long"));
        }
        String::from_utf8(self.some(length)?).map_err(|_| GgufError::Damaged("a key is not text"))
    }

    fn text(&mut self) -> Result<Kept, GgufError> {
        let length = self.u64()?;
        if length > LONGEST_TEXT {
            self.skip(length)?;
            return Ok(Kept::Long);
        }
        let text = String::from_utf8_lossy(&self.some(length)?).into_owned();
        Ok(Kept::Whole(text))
    }

    fn value(&mut self, kind: u32, depth: u8) -> Result<Value, GgufError> {
        Ok(match kind {
            0 => Value::Number(self.fill().map(u8::from_le_bytes)?.into()),
            2 => Value::Number(self.fill().map(u16::from_le_bytes)?.into()),
            4 => Value::Number(self.u32()?.into()),
            10 => Value::Number(self.u64()?),
            1 => whole(self.fill().map(i8::from_le_bytes)?),
            3 => whole(self.fill().map(i16::from_le_bytes)?),
            5 => whole(self.fill().map(i32::from_le_bytes)?),
            11 => whole(self.fill().map(i64::from_le_bytes)?),
            8 => Value::Text(self.text()?),
            9 => self.array(depth)?,
            kind => {
                let width = width(kind).ok_or(GgufError::Damaged("a value has an unknown type"))?;
                self.skip(width)?;
                Value::Other
            }
        })
    }

    fn array(&mut self, depth: u8) -> Result<Value, GgufError> {
        if depth >= DEEPEST {
            return Err(GgufError::Damaged("its lists are too deep"));
        }
        let (kind, length) = (self.u32()?, self.u64()?);
        // Reading each number would cost more than it tells, so only short lists are looked at.
        if let Some(width) = width(kind).filter(|_| length > MOST_ENTRIES) {
            self.skip(length.checked_mul(width).ok_or(GgufError::Damaged("a list is too long"))?)?;
            return Ok(Value::Many(None));
        }
        let mut largest = None;
        for _ in 0..length {
            match self.value(kind, depth + 1)? {
                Value::Number(number) => largest = largest.max(Some(number)),
                Value::Text(_) | Value::Many(_) | Value::Other => {}
            }
        }
        Ok(Value::Many(largest))
    }
}

fn whole(number: impl TryInto<u64>) -> Value {
    number.try_into().map_or(Value::Other, Value::Number)
}

/// The bytes of a value whose length is fixed.
fn width(kind: u32) -> Option<u64> {
    match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

/// Headers for tests.
#[cfg(any(test, fuzzing))]
pub(crate) mod made {
    /// A header in the making.
    pub(crate) struct Made {
        bytes: Vec<u8>,
        entries: u64,
    }

    impl Made {
        pub(crate) fn new(version: u32) -> Self {
            let mut bytes = b"GGUF".to_vec();
            bytes.extend(version.to_le_bytes());
            bytes.extend(7_u64.to_le_bytes());
            bytes.extend(0_u64.to_le_bytes());
            Self { bytes, entries: 0 }
        }

        pub(crate) fn entry(mut self, key: &str, kind: u32, value: &[u8]) -> Self {
            self.bytes.extend((key.len() as u64).to_le_bytes());
            self.bytes.extend(key.as_bytes());
            self.bytes.extend(kind.to_le_bytes());
            self.bytes.extend(value);
            self.entries += 1;
            self
        }

        pub(crate) fn text(self, key: &str, text: &str) -> Self {
            let value = [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat();
            self.entry(key, 8, &value)
        }

        pub(crate) fn number(self, key: &str, number: u32) -> Self {
            self.entry(key, 4, &number.to_le_bytes())
        }

        pub(crate) fn words(self, key: &str, words: &[&str]) -> Self {
            let mut value = [&8_u32.to_le_bytes()[..], &(words.len() as u64).to_le_bytes()].concat();
            for word in words {
                value.extend((word.len() as u64).to_le_bytes());
                value.extend(word.as_bytes());
            }
            self.entry(key, 9, &value)
        }

        pub(crate) fn done(mut self) -> Vec<u8> {
            self.bytes[16..24].copy_from_slice(&self.entries.to_le_bytes());
            self.bytes
        }
    }

    /// The header of a small model as Qwen publishes it, with a vocabulary of three words.
    pub(crate) fn qwen() -> Made {
        Made::new(3)
            .text("general.architecture", "qwen2")
            .text("general.name", "qwen2.5-1.5b-instruct")
            .text("general.size_label", "1.5B")
            .number("qwen2.block_count", 28)
            .number("qwen2.context_length", 32_768)
            .number("qwen2.embedding_length", 1536)
            .number("qwen2.attention.head_count", 12)
            .number("qwen2.attention.head_count_kv", 2)
            .entry("qwen2.rope.freq_base", 6, &1_000_000_f32.to_le_bytes())
            .words("tokenizer.ggml.tokens", &["a", "b", "<|im_end|>"])
            .text("tokenizer.chat_template", &"{% for m in messages %}".repeat(30))
            .entry("tokenizer.ggml.add_bos_token", 7, &[0])
    }
}

#[cfg(test)]
mod tests {
    use super::made::{Made, qwen};
    use super::*;

    #[test]
    fn a_model_says_what_it_is() {
        let header = parse(&qwen().done()[..]).unwrap();
        let expected = Header {
            architecture: "qwen2".to_owned(),
            name: Some("qwen2.5-1.5b-instruct".to_owned()),
            size: Some("1.5B".to_owned()),
            context: Some(32_768),
            has_template: true,
            bytes_per_token: Some(2 * 2 * 28 * 2 * 128),
        };
        assert_eq!(header, expected);
    }

    #[test]
    fn the_head_size_may_be_named_and_heads_may_differ_between_layers() {
        let heads = [&5_u32.to_le_bytes()[..], &3_u64.to_le_bytes()].concat();
        let heads = [&heads[..], &0_i32.to_le_bytes(), &8_i32.to_le_bytes(), &4_i32.to_le_bytes()].concat();
        let header = Made::new(2)
            .words("tokenizer.ggml.tokens", &["a"])
            .number("x.attention.head_count", 16)
            .entry("x.attention.head_count_kv", 9, &heads)
            .number("x.attention.key_length", 64)
            .number("x.block_count", 3)
            .text("general.architecture", "x");
        let header = parse(&header.done()[..]).unwrap();
        assert_eq!(header.bytes_per_token, Some(4 * 3 * 8 * 64));
        assert_eq!((header.context, header.has_template), (None, false));
    }

    #[test]
    fn what_is_no_model_is_refused_in_words() {
        let claim = |entries: u64| {
            let mut bytes = qwen().done();
            bytes[16..24].copy_from_slice(&entries.to_le_bytes());
            bytes
        };
        let long = |kind: u32, length: u64| [&kind.to_le_bytes()[..], &length.to_le_bytes()].concat();
        let deep = [long(9, 1), long(9, 1), long(4, 1)].concat();
        for (name, bytes, expected) in [
            ("empty", vec![], "this is not a GGUF file"),
            ("short", b"GG".to_vec(), "this is not a GGUF file"),
            ("a zip", b"PK\x03\x04aaaaaaaaaaaaaaaaaaaaaaaaa".to_vec(), "this is not a GGUF file"),
            ("version 1", Made::new(1).done(), "version 1"),
            ("big endian", Made::new(3_u32.swap_bytes()).done(), "version 50331648"),
            ("cut", qwen().done()[..100].to_vec(), "ends within its header"),
            ("more entries than there are", claim(13), "ends within its header"),
            ("a billion entries", claim(1 << 30), "too many entries"),
            ("no architecture", Made::new(3).words("tokenizer.ggml.tokens", &["a"]).done(), "what kind"),
            ("no words", Made::new(3).text("general.architecture", "clip").done(), "no vocabulary"),
            ("unknown type", Made::new(3).entry("a", 13, &[]).done(), "unknown type"),
            ("a text without end", Made::new(3).entry("a", 8, &u64::MAX.to_le_bytes()).done(), "too long"),
            ("a list without end", Made::new(3).entry("a", 9, &long(12, u64::MAX)).done(), "too long"),
            ("many words", Made::new(3).entry("a", 9, &long(8, u64::MAX)).done(), "ends within"),
            ("deep lists", Made::new(3).entry("a", 9, &deep).done(), "too deep"),
        ] {
            let said = parse(&bytes[..]).unwrap_err().to_string();
            assert!(said.contains(expected), "{name}: {said}");
        }
    }

    #[test]
    fn a_header_that_never_ends_is_left() {
        let begun = Made::new(3).entry("a", 9, &[&8_u32.to_le_bytes()[..], &u64::MAX.to_le_bytes()].concat());
        let said = parse(begun.done().chain(io::repeat(0))).unwrap_err().to_string();
        assert!(said.contains("too long"), "{said}");
    }

    #[test]
    fn a_folder_is_no_model() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(read(folder.path()), Err(GgufError::NotGguf)));
        assert!(matches!(read(&folder.path().join("none")), Err(GgufError::Io(_))));
    }
}
