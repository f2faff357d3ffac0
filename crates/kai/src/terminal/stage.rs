//! A terminal for tests: provides piped input and captures output, per thread.

use std::cell::RefCell;
use std::io::Cursor;

/// What a command printed.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) out: Vec<u8>,
    pub(crate) err: Vec<u8>,
}

thread_local! {
    static PIPED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static HEARD: RefCell<Option<Heard>> = const { RefCell::new(None) };
}

/// Runs `work` with this text piped in, and returns its result and what was printed.
pub(crate) fn during<T>(piped: &str, work: impl FnOnce() -> T) -> (T, Heard) {
    PIPED.set(piped.as_bytes().to_vec());
    HEARD.set(Some(Heard::default()));
    let done = work();
    (done, HEARD.take().unwrap())
}

pub(super) fn is_piped() -> bool {
    PIPED.with_borrow(|piped| !piped.is_empty())
}

pub(super) fn piped() -> Cursor<Vec<u8>> {
    Cursor::new(PIPED.take())
}

/// The output stream.
pub(super) enum To {
    Out,
    Err,
}

/// Captures the bytes if a test is capturing on this thread; returns false otherwise.
pub(super) fn hears(to: &To, bytes: &[u8]) -> bool {
    HEARD.with_borrow_mut(|heard| {
        let Some(heard) = heard else { return false };
        match to {
            To::Out => heard.out.extend_from_slice(bytes),
            To::Err => heard.err.extend_from_slice(bytes),
        }
        true
    })
}
