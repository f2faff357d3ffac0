//! Asks a model's server how large the model's context window is. Each kind of server reports it in a different
//! place.
//!
//! The context a model was trained for is not what its server provides: Ollama and LM Studio load models with less
//! unless configured otherwise, and Ollama silently truncates longer prompts. So we use the window of the loaded
//! model. If it is not loaded, its maximum is used only where that is smaller than the configured window.

use std::time::Duration;

use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::config::{Config, Key, base};
use crate::format::wire;
use crate::http::Http;
use crate::remote::headers;

/// Where a server reports its context window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tells {
    /// `/props`
    Llamacpp,
    /// `/api/ps` for a loaded model, otherwise `/api/show`
    Ollama,
    /// `/api/v0/models`
    Lmstudio,
    /// The list of models, next to the chat completions endpoint
    List,
    /// The model's own resource, `/models/{model}`
    Gemini,
    /// Unknown: try llama.cpp, the list of models, LM Studio and Ollama in turn
    Any,
}

/// Timeout for the whole query. A server that knows its window answers at once.
const PATIENCE: Duration = Duration::from_secs(3);
/// Longest answer that is read, in bytes.
const MOST: usize = 8 << 20;

/// Asks the model's server for the size of its context window; `None` if it does not report one. The key is sent too,
/// so only the model's own address is asked and no redirect is followed.
pub async fn ask_window(config: &Config, tells: Tells, http: &Http) -> Option<usize> {
    timeout(PATIENCE, WindowQuery { config, http }.window(tells)).await.ok().flatten()
}

struct WindowQuery<'a> {
    config: &'a Config,
    http: &'a Http,
}

impl WindowQuery<'_> {
    async fn window(&self, tells: Tells) -> Option<usize> {
        let model = self.config.model.trim();
        match tells {
            Tells::Llamacpp => read::props(&self.get(&self.root(&["props"])?, Some(model)).await?),
            Tells::List => read::listed(&self.get(&self.beside(&["models"])?, None).await?, model),
            Tells::Gemini => {
                let model = model.strip_prefix("models/").unwrap_or(model);
                read::gemini(&self.get(&self.beside(&["models", model])?, None).await?)
            }
            Tells::Lmstudio => {
                let list = self.get(&self.root(&["api", "v0", "models"])?, None).await?;
                read::lmstudio(&list, model, self.config.window)
            }
            Tells::Ollama => self.ollama(model).await,
            Tells::Any => self.any().await,
        }
    }

    async fn ollama(&self, model: &str) -> Option<usize> {
        let running = self.get(&self.root(&["api", "ps"])?, None).await?;
        if let Some(loaded) = read::running(&running, model) {
            return Some(loaded);
        }
        let shown = self.post(&self.root(&["api", "show"])?, &json!({"model": model})).await?;
        read::shown(&shown, self.config.window)
    }

    async fn any(&self) -> Option<usize> {
        for tells in [Tells::Llamacpp, Tells::List, Tells::Lmstudio, Tells::Ollama] {
            if let Some(window) = Box::pin(self.window(tells)).await {
                return Some(window);
            }
        }
        None
    }

    /// A URL below the base URL, next to the endpoint for chat.
    fn beside(&self, path: &[&str]) -> Option<Url> {
        let mut url = base(wire(self.config.format), self.config).ok()?;
        url.path_segments_mut().ok()?.pop_if_empty().extend(path);
        Some(url)
    }

    /// A URL at the root of the server: the base URL without its version.
    fn root(&self, path: &[&str]) -> Option<Url> {
        let mut url = base(wire(self.config.format), self.config).ok()?;
        let written = url.path().trim_end_matches('/');
        let root = written.strip_suffix("/v1").unwrap_or(written).to_owned();
        url.set_path(&root);
        url.path_segments_mut().ok()?.pop_if_empty().extend(path);
        Some(url)
    }

    /// Sends a GET request. `model` selects one model on a server that has several, without making the server load
    /// it.
    async fn get(&self, url: &Url, model: Option<&str>) -> Option<Value> {
        let mut url = url.clone();
        if let Some(model) = model {
            url.query_pairs_mut().append_pair("model", model).append_pair("autoload", "false");
        }
        let answer = self.http.get(&url, self.headers()?).await.ok()?;
        json_of(answer).await
    }

    async fn post(&self, url: &Url, body: &Value) -> Option<Value> {
        let answer = self.http.post(url, self.headers()?, body.to_string().into_bytes()).await.ok()?;
        json_of(answer).await
    }

    fn headers(&self) -> Option<reqwest::header::HeaderMap> {
        let key = self.config.key.as_ref().map(Key::as_str);
        headers(wire(self.config.format), key, "application/json").ok()
    }
}

async fn json_of(mut answer: crate::http::Answer) -> Option<Value> {
    if !(200..300).contains(&answer.status()) {
        return None;
    }
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.ok()? {
        body.extend_from_slice(chunk.as_ref());
        if body.len() > MOST {
            return None;
        }
    }
    serde_json::from_slice(&body).ok()
}

/// Reads the window from each kind of server's answer. Pure.
mod read {
    use serde_json::Value;

    /// A token count; `None` if it is a placeholder, because no real window is below 256.
    fn tokens(value: &Value) -> Option<usize> {
        value.as_u64().and_then(|tokens| usize::try_from(tokens).ok()).filter(|tokens| *tokens >= 256)
    }

    /// llama.cpp: the context of one slot. The total is shared by all slots.
    pub(super) fn props(answer: &Value) -> Option<usize> {
        tokens(&answer["default_generation_settings"]["n_ctx"]).or_else(|| tokens(&answer["n_ctx"]))
    }

    /// Ollama: the context of the model if it is loaded.
    pub(super) fn running(answer: &Value, model: &str) -> Option<usize> {
        let is_meant = |entry: &&Value| {
            ["name", "model"].iter().any(|field| entry[*field].as_str().is_some_and(|name| same(name, model)))
        };
        answer["models"].as_array()?.iter().find(is_meant).and_then(|entry| tokens(&entry["context_length"]))
    }

    /// Compares Ollama model names. A name without a tag means `:latest`.
    fn same(name: &str, model: &str) -> bool {
        let bare = |name: &str| name.strip_suffix(":latest").unwrap_or(name).to_lowercase();
        bare(name) == bare(model)
    }

    /// Ollama, for a model that is not loaded: the context its model file sets, or its maximum if that is below
    /// `usual`.
    pub(super) fn shown(answer: &Value, usual: usize) -> Option<usize> {
        let set = answer["parameters"].as_str().unwrap_or_default().lines().find_map(|line| {
            let number = line.trim().strip_prefix("num_ctx")?.trim();
            tokens(&Value::from(number.parse::<u64>().ok()?))
        });
        set.or_else(|| {
            let info = answer["model_info"].as_object()?;
            let (_, most) = info.iter().find(|(name, _)| name.ends_with(".context_length"))?;
            tokens(most).filter(|most| *most < usual)
        })
    }

    /// LM Studio: the context of a loaded model, or the maximum of one that is not loaded if that is below `usual`.
    pub(super) fn lmstudio(answer: &Value, model: &str, usual: usize) -> Option<usize> {
        let entry = entry(answer, model)?;
        let most = || tokens(&entry["max_context_length"]).filter(|most| *most < usual);
        tokens(&entry["loaded_context_length"]).or_else(most)
    }

    /// Reads the window from a list of models, which name it in many ways. Takes the smallest, because the provider
    /// behind a service may allow less than the model supports.
    pub(super) fn listed(answer: &Value, model: &str) -> Option<usize> {
        let entry = entry(answer, model)?;
        let told = ["context_length", "context_window", "max_model_len"].map(|name| tokens(&entry[name]));
        let behind = tokens(&entry["top_provider"]["context_length"]);
        let given = told.into_iter().chain([behind]).flatten().min();
        // LM Studio lists `max_context_length` too, but there it is not what the model was loaded with. Its entries
        // have a `state`.
        let most = || tokens(&entry["max_context_length"]).filter(|_| entry.get("state").is_none());
        given.or_else(|| tokens(&entry["meta"]["n_ctx"])).or_else(most)
    }

    fn entry<'a>(answer: &'a Value, model: &str) -> Option<&'a Value> {
        let list = answer.as_array().or_else(|| answer["data"].as_array())?;
        list.iter().find(|entry| entry["id"].as_str() == Some(model))
    }

    pub(super) fn gemini(answer: &Value) -> Option<usize> {
        tokens(&answer["inputTokenLimit"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;

    #[rustfmt::skip]
    #[test]
    fn each_server_tells_it_in_its_own_words() {
        let of = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let show = |rest: &str| of(&format!(r#"{{"details":{{}},{rest}}}"#));
        for (name, read, expected) in [
            ("llama.cpp", read::props(&of(r#"{"default_generation_settings":{"n_ctx":4096,"params":{}},"total_slots":2}"#)), Some(4096)),
            ("a router's placeholder", read::props(&of(r#"{"default_generation_settings":{"n_ctx":0}}"#)), None),
            ("loaded", read::running(&of(r#"{"models":[{"name":"qwen3:8b","context_length":4096},{"name":"m:latest","context_length":32768}]}"#), "m"), Some(32_768)),
            ("not loaded", read::running(&of(r#"{"models":[]}"#), "m"), None),
            ("an older Ollama", read::running(&of(r#"{"models":[{"name":"m:latest"}]}"#), "m"), None),
            ("set in the model's file", read::shown(&show(r#""parameters":"temperature 0.7\nnum_ctx                        16384","model_info":{"llama.context_length":40960}"#), 8192), Some(16_384)),
            ("trained for more than is given", read::shown(&show(r#""model_info":{"qwen3.context_length":40960}"#), 8192), None),
            ("trained for less", read::shown(&show(r#""model_info":{"gpt2.context_length":1024}"#), 8192), Some(1024)),
            ("LM Studio, loaded", read::lmstudio(&of(r#"{"data":[{"id":"m","state":"loaded","max_context_length":131072,"loaded_context_length":4096}]}"#), "m", 8192), Some(4096)),
            ("LM Studio, not loaded", read::lmstudio(&of(r#"{"data":[{"id":"m","state":"not-loaded","max_context_length":131072}]}"#), "m", 8192), None),
            ("LM Studio, another model", read::lmstudio(&of(r#"{"data":[{"id":"n","loaded_context_length":4096}]}"#), "m", 8192), None),
            ("OpenRouter", read::listed(&of(r#"{"data":[{"id":"a/m","context_length":200000,"top_provider":{"context_length":131072}}]}"#), "a/m"), Some(131_072)),
            ("OpenRouter's own", read::listed(&of(r#"{"data":[{"id":"a/m","context_length":200000,"top_provider":{"context_length":null}}]}"#), "a/m"), Some(200_000)),
            ("vLLM", read::listed(&of(r#"{"data":[{"id":"m","max_model_len":32768}]}"#), "m"), Some(32_768)),
            ("Groq", read::listed(&of(r#"{"data":[{"id":"m","context_window":131072}]}"#), "m"), Some(131_072)),
            ("Mistral", read::listed(&of(r#"{"data":[{"id":"m","max_context_length":32768}]}"#), "m"), Some(32_768)),
            ("a bare list", read::listed(&of(r#"[{"id":"m","context_length":8193}]"#), "m"), Some(8193)),
            ("llama.cpp's list", read::listed(&of(r#"{"data":[{"id":"m","meta":{"n_ctx":8192,"n_ctx_train":40960}}]}"#), "m"), Some(8192)),
            ("only names", read::listed(&of(r#"{"data":[{"id":"m","object":"model"}]}"#), "m"), None),
            ("Gemini", read::gemini(&of(r#"{"name":"models/m","inputTokenLimit":1048576,"outputTokenLimit":65536}"#)), Some(1_048_576)),
            ("something else", read::gemini(&of(r#""hello""#)), None),
        ] {
            assert_eq!(read, expected, "{name}");
        }
    }

    #[test]
    fn every_address_is_the_models_own() {
        let http = Http::new(crate::Limits::default());
        for (format, base_url, root, beside) in [
            (Format::OpenAi, "http://h:1/v1", "http://h:1/props", "http://h:1/v1/models"),
            (Format::OpenAi, "http://h:1", "http://h:1/props", "http://h:1/models"),
            (
                Format::OpenAi,
                "http://h/llama/v1/chat/completions",
                "http://h/llama/props",
                "http://h/llama/v1/models",
            ),
            (Format::Gemini, "https://h", "https://h/v1beta/props", "https://h/v1beta/models"),
        ] {
            let config = Config {
                format,
                base_url: base_url.to_owned(),
                model: "m".to_owned(),
                key: None,
                window: 8192,
                stream: true,
            };
            let query = WindowQuery { config: &config, http: &http };
            assert_eq!(query.root(&["props"]).unwrap().as_str(), root);
            assert_eq!(query.beside(&["models"]).unwrap().as_str(), beside);
        }
    }
}
