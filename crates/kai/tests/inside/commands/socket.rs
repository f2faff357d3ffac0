//! What somebody may write to the daemon's socket.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::kit::Home;

/// What somebody may write to the socket, and the word the answer must contain.
#[test]
fn nonsense_on_the_socket_is_answered_and_harms_nothing() {
    let home = Home::served();
    for (line, word) in [
        ("hello\n", "not a valid call"),
        ("{}\n", "not a valid call"),
        ("{\"v\":1}\n", "does not know this call"),
        ("{\"v\":1,\"tty\":false,\"cmd\":\"launch\"}\n", "does not know this call"),
        ("{\"v\":99,\"tty\":false,\"cmd\":\"status\"}\n", "version 99"),
        ("\u{0}\u{1}\u{2}\n", "not a valid call"),
    ] {
        let mut socket = UnixStream::connect(home.app.home.socket()).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        socket.write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        BufReader::new(socket).read_line(&mut answer).unwrap();
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["event"], "error", "{line:?}");
        assert!(answer["message"].as_str().unwrap().contains(word), "{line:?}: {answer}");
    }
    assert_eq!(home.run(&["status"]).code, 0);
}
