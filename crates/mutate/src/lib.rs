//! Generates hostile input for tests: real examples, truncated, duplicated, spliced and corrupted.
//!
//! Random bytes rarely get past the first line of a parser. A valid example changed in a few places gets deep into
//! it. `PROPTEST_CASES` sets how many are tried; `scripts/fuzz` runs for as long as you like.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// Bytes that parsers stumble over: delimiters of strings and nesting, numbers that overflow, unusual line endings,
/// incomplete characters, markup, and our own markers.
const STUMBLES: &[&[u8]] = &[
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"null",
    b"true",
    b"{}",
    b"[]",
    b"\"\"",
    b"-1",
    b"0",
    b"1e999",
    b"4.5",
    b"99999999999999999999",
    b"18446744073709551615",
    b"-9223372036854775808",
    b"\\u0000",
    b"\\ud800",
    b"\\n",
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"\t",
    b"\0",
    b"\x1b[31m",
    b"\xff",
    b"\xc3",
    b"\xe2\x80\xa8",
    b"\xe2\x80\xae",
    b"\xc2\x85",
    b"\xef\xbb\xbf",
    b"\xf0\x9f\x91\x8b",
    b"data: ",
    b"event: ",
    b"[DONE]",
    b"<",
    b">",
    b"</",
    b"<!--",
    b"-->",
    b"<script>",
    b"</script>",
    b"<img src=x onerror=a()>",
    b"&#",
    b"&amp;",
    b"'",
    b"=",
    b"`",
    b"](javascript:a())",
    b"\n## New SMS\n",
    b"<<<",
    b">>>",
    b"code 482913",
    b"*/",
    b"-",
    b"/",
    b"2026-02-30",
    b"T24:00",
    b"[Europe/Berlin]",
];

/// Numbers at the limits of number types.
const NUMBERS: &[&str] = &[
    "0",
    "-1",
    "1",
    "255",
    "65536",
    "2147483648",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "1e30",
    "1e999",
    "0.5",
];

/// One change to an example.
#[derive(Debug, Clone)]
enum Edit {
    /// Removes everything from there on.
    Cut(Index),
    Remove(Index, usize),
    Double(Index, usize),
    Change(Index, u8),
    Insert(Index, Index),
    /// Inserts the same bytes many times.
    Repeat(Index, Index, usize),
    /// Replaces the next number.
    Number(Index, Index),
    /// Continues with another example, from some position in it.
    Splice(Index, Index, Index),
}

/// Generates examples changed in up to seven places, some unchanged, and some random bytes.
pub fn bytes(examples: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    lay_out(&examples);
    let changed = (any::<Index>(), vec(edit(), 0..8))
        .prop_map(move |(example, edits)| edited(&examples, example.get(&examples).as_slice(), edits));
    prop_oneof![9 => changed, 1 => vec(any::<u8>(), 0..300)]
}

/// The same as text. Invalid UTF-8 becomes the replacement character.
pub fn text(examples: Vec<String>) -> impl Strategy<Value = String> {
    let examples = examples.into_iter().map(String::into_bytes).collect();
    bytes(examples).prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Writes the examples to the folder in `KAI_SEEDS`, if it is set, as the initial corpus for `fuzz/`.
#[expect(clippy::disallowed_methods, reason = "a tool for tests")]
fn lay_out(examples: &[Vec<u8>]) {
    let Some(folder) = std::env::var_os("KAI_SEEDS").map(PathBuf::from) else { return };
    for example in examples {
        let mut hasher = DefaultHasher::new();
        example.hash(&mut hasher);
        // A missing folder must not fail a test.
        drop(fs::write(folder.join(format!("{:016x}", hasher.finish())), example));
    }
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = any::<Index>;
    prop_oneof![
        1 => at().prop_map(Edit::Cut),
        2 => (at(), 1..40_usize).prop_map(|(at, length)| Edit::Remove(at, length)),
        2 => (at(), 1..40_usize).prop_map(|(at, length)| Edit::Double(at, length)),
        2 => (at(), any::<u8>()).prop_map(|(at, byte)| Edit::Change(at, byte)),
        5 => (at(), at()).prop_map(|(at, what)| Edit::Insert(at, what)),
        1 => (at(), at(), 2..400_usize).prop_map(|(at, what, times)| Edit::Repeat(at, what, times)),
        2 => (at(), at()).prop_map(|(at, what)| Edit::Number(at, what)),
        2 => (at(), at(), at()).prop_map(|(at, other, from)| Edit::Splice(at, other, from)),
    ]
}

fn edited(examples: &[Vec<u8>], example: &[u8], edits: Vec<Edit>) -> Vec<u8> {
    edits.into_iter().fold(example.to_vec(), |mut bytes, edit| {
        let place = |at: Index| at.index(bytes.len() + 1);
        match edit {
            Edit::Cut(at) => bytes.truncate(place(at)),
            Edit::Remove(at, length) => {
                let from = place(at);
                bytes.drain(from..(from + length).min(bytes.len()));
            }
            Edit::Double(at, length) => {
                let from = place(at);
                let part = bytes[from..(from + length).min(bytes.len())].to_vec();
                bytes.splice(from..from, part);
            }
            Edit::Change(at, byte) => {
                if let Some(changed) = bytes.get_mut(at.index(example.len() + 1)) {
                    *changed = byte;
                }
            }
            Edit::Insert(at, what) => drop(bytes.splice(place(at)..place(at), what.get(STUMBLES).to_vec())),
            Edit::Repeat(at, what, times) => {
                drop(bytes.splice(place(at)..place(at), what.get(STUMBLES).repeat(times)));
            }
            Edit::Number(at, what) => {
                let digits = |bytes: &[u8]| bytes.iter().position(u8::is_ascii_digit);
                let from = place(at);
                let from = digits(&bytes[from..]).map_or(bytes.len(), |next| from + next);
                let length = bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                drop(bytes.splice(from..from + length, what.get(NUMBERS).bytes()));
            }
            Edit::Splice(at, other, from) => {
                bytes.truncate(place(at));
                let other = other.get(examples);
                bytes.extend_from_slice(&other[from.index(other.len() + 1)..]);
            }
        }
        bytes
    })
}
