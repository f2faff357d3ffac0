//! How many tokens of context a model's own server says it gives. Each kind of server tells it elsewhere.
//!
//! What a model was trained for is not what a server gives it: Ollama and LM Studio load models with less unless they
//! are told otherwise, and Ollama silently cuts what is longer. So the window of the loaded model counts; what the
//! model could hold at most counts only where that is less than what is assumed anyway.

use std::time::Duration;

use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::config::{Config, Key, base};
use crate::format::wire;
use crate::http::Http;
use crate::remote::headers;

/// How a server tells its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tells {
    /// `/props`
    Llamacpp,
    /// `/api/ps` for a loaded model, else `/api/show`
    Ollama,
    /// `/api/v0/models`
    Lmstudio,
    /// The list of models beside the chat completions
    List,
    /// The model's own page
    Gemini,
    /// One of these, to be found out
    Any,
}

/// A server that knows answers at once; nobody waits longer for one that does not.
const PATIENCE: Duration = Duration::from_secs(3);
/// The longest list of models that is read.
const MOST: usize = 8 << 20;

/// Asks the model's server for the model's window; `None` where it does not say. Only the model's own address is asked: the
/// key goes along, and no redirect is followed.
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

    /// An address next to the one that is asked.
    fn beside(&self, path: &[&str]) -> Option<Url> {
        let mut url = base(wire(self.config.format), self.config).ok()?;
        url.path_segments_mut().ok()?.pop_if_empty().extend(path);
        Some(url)
    }

    /// An address of the server itself: that of its chat completions without the version.
    fn root(&self, path: &[&str]) -> Option<Url> {
        let mut url = base(wire(self.config.format), self.config).ok()?;
        let written = url.path().trim_end_matches('/');
        let root = written.strip_suffix("/v1").unwrap_or(written).to_owned();
        url.set_path(&root);
        url.path_segments_mut().ok()?.pop_if_empty().extend(path);
        Some(url)
    }

    /// `model` names the one that is meant where a server has several; it is not to be loaded for this.
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

/// Pure: the window in what each kind of server answers.
mod read {
    use serde_json::Value;

    /// A window, and not a placeholder.
    fn tokens(value: &Value) -> Option<usize> {
        value.as_u64().and_then(|tokens| usize::try_from(tokens).ok()).filter(|tokens| *tokens >= 256)
    }

    /// llama.cpp: what one slot has, however many share the whole.
    pub(super) fn props(answer: &Value) -> Option<usize> {
        tokens(&answer["default_generation_settings"]["n_ctx"]).or_else(|| tokens(&answer["n_ctx"]))
    }

    /// Ollama's loaded models.
    pub(super) fn running(answer: &Value, model: &str) -> Option<usize> {
        let is_meant = |entry: &&Value| {
            ["name", "model"].iter().any(|field| entry[*field].as_str().is_some_and(|name| same(name, model)))
        };
        answer["models"].as_array()?.iter().find(is_meant).and_then(|entry| tokens(&entry["context_length"]))
    }

    /// Ollama means `:latest` where no tag is written.
    fn same(name: &str, model: &str) -> bool {
        let bare = |name: &str| name.strip_suffix(":latest").unwrap_or(name).to_lowercase();
        bare(name) == bare(model)
    }

    /// Ollama's model that is not loaded: what its file sets, or what it can hold if that is less than usual.
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

    /// LM Studio: what a loaded model has, or what one that is not loaded can hold if that is less than usual.
    pub(super) fn lmstudio(answer: &Value, model: &str, usual: usize) -> Option<usize> {
        let entry = entry(answer, model)?;
        let most = || tokens(&entry["max_context_length"]).filter(|most| *most < usual);
        tokens(&entry["loaded_context_length"]).or_else(most)
    }

    /// The many names under which lists of models tell it. The provider behind a service may give less than the model has.
    pub(super) fn listed(answer: &Value, model: &str) -> Option<usize> {
        let entry = entry(answer, model)?;
        let told = ["context_length", "context_window", "max_model_len"].map(|name| tokens(&entry[name]));
        let behind = tokens(&entry["top_provider"]["context_length"]);
        let given = told.into_iter().chain([behind]).flatten().min();
        // Without `loaded_context_length`, the same name means what a model can hold at most: LM Studio lists so, too.
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
