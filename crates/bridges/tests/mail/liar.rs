//! A server on loopback that plays a script, whoever connects.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// A step of the script.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Say(&'static str),
    /// Waits for a line.
    Hear,
    /// Waits for the line with the dot that ends a mail.
    HearMail,
    /// Says the same until nobody listens any more.
    Flood(&'static str),
    /// Says nothing more.
    Hang,
}

/// A server that plays a script and then ends the connection.
pub(crate) struct Liar {
    pub(crate) port: u16,
    heard: Arc<Mutex<Vec<String>>>,
    /// How many bytes were said.
    said: Arc<Mutex<usize>>,
}

impl Liar {
    pub(crate) async fn playing(script: Vec<Act>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (heard, said) = (Arc::default(), Arc::default());
        let liar = Self { port, heard: Arc::clone(&heard), said: Arc::clone(&said) };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(play(stream, script.clone(), Arc::clone(&heard), Arc::clone(&said)));
            }
        });
        liar
    }

    /// The lines that it was told.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    pub(crate) fn said(&self) -> usize {
        *self.said.lock().unwrap()
    }
}

async fn play(
    stream: TcpStream,
    script: Vec<Act>,
    heard: Arc<Mutex<Vec<String>>>,
    said: Arc<Mutex<usize>>,
) -> Option<()> {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    for act in script {
        match act {
            Act::Say(words) => say(&mut write, words, &said).await?,
            Act::Hear => drop(hear(&mut read, &heard).await?),
            Act::HearMail => while hear(&mut read, &heard).await? != "." {},
            Act::Flood(words) => {
                let many = words.repeat(8_192 / words.len() + 1).leak();
                loop {
                    say(&mut write, many, &said).await?;
                }
            }
            Act::Hang => std::future::pending().await,
        }
    }
    Some(())
}

async fn say(write: &mut OwnedWriteHalf, words: &str, said: &Mutex<usize>) -> Option<()> {
    write.write_all(words.as_bytes()).await.ok()?;
    *said.lock().unwrap() += words.len();
    Some(())
}

async fn hear(read: &mut BufReader<OwnedReadHalf>, heard: &Mutex<Vec<String>>) -> Option<String> {
    let mut line = Vec::new();
    read.read_until(b'\n', &mut line).await.ok().filter(|read| *read > 0)?;
    let line = String::from_utf8_lossy(&line).trim_end().to_owned();
    heard.lock().unwrap().push(line.clone());
    Some(line)
}
