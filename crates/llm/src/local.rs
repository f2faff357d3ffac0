//! Finds model servers on this machine by asking their default addresses.

use std::time::Duration;

use reqwest::Url;
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::{Config, Http, Offered, Preset, offered, presets};

/// Ollama's default address.
const OLLAMA: &str = "127.0.0.1:11434";
const OLLAMAS_PORT: &str = ":11434";
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

/// A model of an Ollama server. Some it does not run itself: it passes their requests on to another server.
#[derive(Deserialize)]
struct Tag {
    name: String,
    /// That other server.
    remote_host: Option<String>,
    /// What the model is called there.
    remote_model: Option<String>,
}

impl Tag {
    fn runs_elsewhere(&self) -> bool {
        [&self.remote_host, &self.remote_model].into_iter().flatten().any(|place| !place.is_empty())
    }

    /// Whether requests mean this model by that name. Ollama adds the tag if nobody names one.
    fn is_called(&self, model: &str) -> bool {
        let plain = self.name.strip_suffix(":latest").unwrap_or(&self.name);
        [plain, &self.name].iter().any(|name| name.eq_ignore_ascii_case(model.trim()))
    }
}

/// The models that the Ollama server on this machine runs itself, most recently used first; `None` if none is running.
/// Those that it passes on are left out, because nobody has agreed yet that anything leaves the machine.
pub async fn ollama() -> Option<Vec<String>> {
    timeout(PATIENCE, tags(OLLAMA)).await.ok()?.map(own)
}

/// The names of the models that their server runs itself.
fn own(tags: Vec<Tag>) -> Vec<String> {
    tags.into_iter().filter(|tag| !tag.runs_elsewhere()).map(|tag| tag.name).collect()
}

/// Whether the server at this address says that it passes requests for this model on to another one. Only Ollama says so,
/// and only Ollama is asked.
pub async fn passes_on(preset: &Preset, base_url: &str, model: &str) -> bool {
    let Some(address) = address_of_ollama(preset, base_url) else { return false };
    let tags = timeout(PATIENCE, tags(&address)).await.ok().flatten().unwrap_or_default();
    is_passed_on(&tags, model)
}

fn is_passed_on(tags: &[Tag], model: &str) -> bool {
    tags.iter().any(|tag| tag.is_called(model) && tag.runs_elsewhere())
}

/// Host and port of a base URL, if that is an Ollama server: one of its preset, or one at its port.
fn address_of_ollama(preset: &Preset, base_url: &str) -> Option<String> {
    let url = Url::parse(base_url.trim()).ok()?;
    let address = format!("{}:{}", url.host_str()?, url.port_or_known_default()?);
    (preset.id == "ollama" || address.ends_with(OLLAMAS_PORT)).then_some(address)
}

async fn tags(address: &str) -> Option<Vec<Tag>> {
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
    Some(tags.models)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// The address of a server that answers one request, with this.
    async fn served(answer: String) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            let (mut line, _) = listener.accept().await.unwrap();
            let mut asked = [0; 512];
            let _ = line.read(&mut asked).await;
            let _ = line.write_all(answer.as_bytes()).await;
        });
        address
    }

    /// The models that are taken by themselves from a server with this answer.
    async fn taken(answer: &str) -> Option<Vec<String>> {
        tags(&served(answer.to_owned()).await).await.map(own)
    }

    #[tokio::test]
    async fn only_a_list_of_models_counts() {
        let list =
            "HTTP/1.1 200 OK\r\n\r\n{\"models\":[{\"name\":\"qwen3:8b\",\"size\":1},{\"name\":\"b\"}]}";
        assert_eq!(taken(list).await, Some(vec!["qwen3:8b".to_owned(), "b".to_owned()]));
        for other in
            ["HTTP/1.1 404 Not Found\r\n\r\n{\"models\":[]}", "HTTP/1.1 200 OK\r\n\r\n<html>", "", "hello"]
        {
            assert_eq!(taken(other).await, None, "{other}");
        }
    }

    /// Two models that Ollama passes on, one under a name that does not say so, and one that it runs itself.
    const MIXED: &str = r#"{"models":[
        {"name":"gpt-oss:120b-cloud","model":"gpt-oss:120b-cloud","remote_model":"gpt-oss:120b","remote_host":"https://ollama.com:443","size":384},
        {"name":"mine:latest","remote_host":"https://ollama.com:443","size":384},
        {"name":"qwen3:8b","remote_host":"","size":5225388164}]}"#;

    #[tokio::test]
    async fn a_model_that_ollama_passes_on_is_not_taken_by_itself() {
        let answer = format!("HTTP/1.1 200 OK\r\n\r\n{MIXED}");
        assert_eq!(taken(&answer).await, Some(vec!["qwen3:8b".to_owned()]));
    }

    #[tokio::test]
    async fn ollama_says_which_models_it_passes_on_whatever_they_are_called() {
        let tags = tags(&served(format!("HTTP/1.1 200 OK\r\n\r\n{MIXED}")).await).await.unwrap();
        for (model, expected) in [
            ("gpt-oss:120b-cloud", true),
            ("mine", true),
            (" Mine:latest ", true),
            ("qwen3:8b", false),
            ("unknown", false),
        ] {
            assert_eq!(is_passed_on(&tags, model), expected, "{model}");
        }
    }

    #[test]
    fn only_ollama_is_asked_what_it_passes_on() {
        for (id, base_url, expected) in [
            ("ollama", "http://127.0.0.1:11434/v1", Some("127.0.0.1:11434")),
            ("ollama", " http://[::1]:8000/v1", Some("[::1]:8000")),
            ("openai-compatible", "http://localhost:11434/v1", Some("localhost:11434")),
            ("openai-compatible", "http://localhost:8080/v1", None),
            ("ollama", "nonsense", None),
        ] {
            let preset = presets().iter().find(|preset| preset.id == id).unwrap();
            assert_eq!(address_of_ollama(preset, base_url).as_deref(), expected, "{id} {base_url}");
        }
        assert!(OLLAMA.ends_with(OLLAMAS_PORT));
    }
}
