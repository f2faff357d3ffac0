//! Ports that stay free until a test listens on them.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// The ports that are given out. The system takes others for connections that go out, so none of these is taken while a
/// test has closed it for a moment.
const FIRST: u16 = 20_000;
const MOST: u16 = 12_000;

/// A port on this machine that nobody listens on. No two calls in a process get the same one.
pub fn free() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Other processes begin elsewhere.
    let begin = u16::try_from(std::process::id() % u32::from(MOST)).unwrap();
    let ports =
        std::iter::repeat_with(|| FIRST + (begin + NEXT.fetch_add(1, Ordering::Relaxed) % MOST) % MOST);
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    ports.take(usize::from(MOST)).find(is_free).unwrap()
}
