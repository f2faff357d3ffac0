//! Stands between the bridge and a server, and counts.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Passes everything on, and notes the commands and how many bytes came back.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    asked: Arc<Mutex<Vec<u8>>>,
    answered: Arc<Mutex<usize>>,
}

impl Proxy {
    pub(crate) async fn to(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (asked, answered) = (Arc::<Mutex<Vec<u8>>>::default(), Arc::<Mutex<usize>>::default());
        let proxy = Self { port, asked: Arc::clone(&asked), answered: Arc::clone(&answered) };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                let (mut from_client, mut to_client) = client.into_split();
                let (mut from_server, mut to_server) = server.into_split();
                let (asked, answered) = (Arc::clone(&asked), Arc::clone(&answered));
                tokio::spawn(async move {
                    let mut chunk = vec![0; 8_192];
                    while let Ok(read @ 1..) = from_client.read(&mut chunk).await {
                        asked.lock().unwrap().extend_from_slice(&chunk[..read]);
                        if to_server.write_all(&chunk[..read]).await.is_err() {
                            break;
                        }
                    }
                });
                tokio::spawn(async move {
                    let mut chunk = vec![0; 8_192];
                    while let Ok(read @ 1..) = from_server.read(&mut chunk).await {
                        *answered.lock().unwrap() += read;
                        if to_client.write_all(&chunk[..read]).await.is_err() {
                            break;
                        }
                    }
                });
            }
        });
        proxy
    }

    /// Everything that was said to the server so far.
    pub(crate) fn asked(&self) -> Vec<u8> {
        self.asked.lock().unwrap().clone()
    }

    /// The commands so far, without tags and arguments; forgets them.
    pub(crate) fn commands(&self) -> Vec<String> {
        let asked = std::mem::take(&mut *self.asked.lock().unwrap());
        let text = String::from_utf8_lossy(&asked).into_owned();
        text.lines().filter_map(|line| line.split(' ').nth(1)).map(str::to_owned).collect()
    }

    /// How many bytes came back so far; counts from zero again.
    pub(crate) fn bytes(&self) -> usize {
        std::mem::take(&mut *self.answered.lock().unwrap())
    }
}
