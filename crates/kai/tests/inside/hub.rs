//! A hub of models on this machine, with one small model that it serves, cuts, forges or holds back.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kai_local::catalogue::{Entry, Strength};
use kai_local::fetch::Hub;
use kai_local::machine::Machine;
use sha2::{Digest, Sha256};

use crate::app::catalogue::Source;
use crate::app::downloads::Downloads;

/// What the hub does with requests from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    Serve,
    /// Closes the connection after half of the file.
    Cut,
    /// Sends something else of the same length.
    Forge,
    /// Sends half of the file, and the rest when it is told to serve.
    Hold,
}

/// A hub. Clones are the same.
#[derive(Clone)]
pub(super) struct PlayedHub {
    port: u16,
    file: Arc<Vec<u8>>,
    does: Arc<Mutex<Does>>,
    heard: Arc<Mutex<Vec<String>>>,
}

impl PlayedHub {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (does, heard) = (Arc::new(Mutex::new(Does::Serve)), Arc::default());
        let hub = Self { port, file: Arc::new(gguf()), does, heard };
        let serving = hub.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let hub = serving.clone();
                std::thread::spawn(move || drop(hub.answer(stream)));
            }
        });
        hub
    }

    pub(super) fn does(&self, does: Does) {
        *self.does.lock().unwrap() = does;
    }

    /// The heads of all requests.
    pub(super) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    pub(super) fn file(&self) -> &[u8] {
        &self.file
    }

    /// The downloads of a roomy machine that knows this hub alone.
    pub(super) fn downloads(&self) -> Arc<Downloads> {
        let hash = Sha256::digest(&**self.file);
        let sha256 = hash.iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").unwrap();
            text
        });
        let tiny = Entry {
            name: "tiny",
            repository: "kai/tiny",
            revision: "main",
            file: "tiny.gguf",
            bytes: self.file.len() as u64,
            sha256: sha256.leak(),
            licence: "Apache-2.0",
            memory: 1_700_000_000,
            strength: Strength::Everyday,
            tried: true,
        };
        let huge = Entry { name: "huge", file: "huge.gguf", bytes: 1 << 60, tried: false, ..tiny };
        let look = |_: &Path| Machine {
            memory: 16_000_000_000,
            available: 9_000_000_000,
            cores: 8,
            disk: Some(100_000_000_000),
            has_vectors: true,
        };
        Downloads::of(Source { hub: Hub::on_loopback(self.port), entries: vec![tiny, huge], look })
    }

    fn answer(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream.try_clone()?);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if lines.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let after = head.to_lowercase().split("range: bytes=").nth(1).map(str::to_owned);
        let from = after.and_then(|rest| rest.split('-').next()?.parse::<usize>().ok());
        self.heard.lock().unwrap().push(head);
        let (whole, from) = (self.file.len(), from.unwrap_or_default());
        let status = if from > 0 { "206 Partial Content" } else { "200 OK" };
        let mut stream = stream;
        write!(
            stream,
            "HTTP/1.1 {status}\r\ncontent-range: bytes {from}-{}/{whole}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            whole - 1,
            whole - from
        )?;
        let (rest, half) = (&self.file[from..], (whole - from) / 2);
        let does = *self.does.lock().unwrap();
        match does {
            Does::Serve => stream.write_all(rest),
            Does::Cut => stream.write_all(&rest[..half]),
            Does::Forge => stream.write_all(&vec![7; rest.len()]),
            Does::Hold => {
                stream.write_all(&rest[..half])?;
                while *self.does.lock().unwrap() == Does::Hold {
                    std::thread::sleep(Duration::from_millis(20));
                }
                stream.write_all(&rest[half..])
            }
        }
    }
}

/// A model file without weights: a header as the engine's format has it, and some bytes after it.
pub(super) fn gguf() -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let number = |key: &str, n: u32| [&text(key)[..], &4_u32.to_le_bytes(), &n.to_le_bytes()].concat();
    let mut file = [&b"GGUF"[..], &3_u32.to_le_bytes(), &0_u64.to_le_bytes(), &3_u64.to_le_bytes()].concat();
    file.extend([&text("general.architecture")[..], &8_u32.to_le_bytes(), &text("llama")].concat());
    file.extend(number("llama.context_length", 2048));
    let words = [&9_u32.to_le_bytes()[..], &8_u32.to_le_bytes(), &1_u64.to_le_bytes(), &text("a")].concat();
    file.extend([&text("tokenizer.ggml.tokens")[..], &words].concat());
    file.extend((0..600_000_u32).map(|n| n.to_le_bytes()[0]));
    file
}
