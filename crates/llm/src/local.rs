//! Finds model servers on this machine by asking their default addresses.

use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::{Config, Http, Offered, Preset, offered, presets};

/// Ollama's default address.
const OLLAMA: &str = "127.0.0.1:11434";
/// Timeout. A server running on this machine answers at once.
const PATIENCE: Duration = Duration::from_millis(300);
const MOST: u64 = 1024 * 1024;

/// A model server that runs on this machine, and the models that it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub preset: &'static Preset,
    pub models: Vec<Offered>,
}

/// The model servers that run on this machine at their default addresses and have a model. Nothing leaves the machine.
pub async fn servers(http: &Http) -> Vec<Server> {
    let mut found = vec![];
    for preset in presets().iter().filter(|preset| preset.local) {
        found.extend(server(preset, http).await);
    }
    found
}

async fn server(preset: &'static Preset, http: &Http) -> Option<Server> {
    let config = Config {
        format: preset.format,
        base_url: preset.base_url.clone()?,
        model: String::new(),
        key: None,
        window: preset.window,
        stream: false,
    };
    // Another program may have the port. It counts only if it lists models.
    let models = timeout(PATIENCE, offered(&config, http)).await.ok()?.ok()?;
    (!models.is_empty()).then_some(Server { preset, models })
}

#[derive(Deserialize)]
struct Tags {
    models: Vec<Tag>,
}

#[derive(Deserialize)]
struct Tag {
    name: String,
}

/// The models of the Ollama server on this machine, most recently used first; `None` if none is running.
pub async fn ollama() -> Option<Vec<String>> {
    timeout(PATIENCE, tags(OLLAMA)).await.ok()?
}

async fn tags(address: &str) -> Option<Vec<String>> {
    let mut line = TcpStream::connect(address).await.ok()?;
    line.write_all(format!("GET /api/tags HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    line.take(MOST).read_to_end(&mut answer).await.ok()?;
    let answer = String::from_utf8(answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    if !head.split(' ').nth(1)?.starts_with("200") {
        return None;
    }
    let tags: Tags = serde_json::from_str(body).ok()?;
    Some(tags.models.into_iter().map(|tag| tag.name).collect())
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    async fn answered(answer: &'static str) -> Option<Vec<String>> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            let (mut line, _) = listener.accept().await.unwrap();
            let mut asked = [0; 512];
            let _ = line.read(&mut asked).await;
            let _ = line.write_all(answer.as_bytes()).await;
        });
        tags(&address).await
    }

    #[tokio::test]
    async fn only_a_list_of_models_counts() {
        let list =
            "HTTP/1.1 200 OK\r\n\r\n{\"models\":[{\"name\":\"qwen3:8b\",\"size\":1},{\"name\":\"b\"}]}";
        assert_eq!(answered(list).await, Some(vec!["qwen3:8b".to_owned(), "b".to_owned()]));
        for other in
            ["HTTP/1.1 404 Not Found\r\n\r\n{\"models\":[]}", "HTTP/1.1 200 OK\r\n\r\n<html>", "", "hello"]
        {
            assert_eq!(answered(other).await, None, "{other}");
        }
    }
}
