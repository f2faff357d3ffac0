//! Asks a service or a server which models it offers. Every wire format has a list of its own.

use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use crate::config::{Config, Key, base, check_key};
use crate::detail::{Detail, Unexpected};
use crate::format::wire;
use crate::http::{Answer, Http, place};
use crate::refusal::{Refused, classify};
use crate::remote::headers;
use crate::{Format, Hint, ModelError};

/// A model that a service offers for chats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// Its name in requests.
    pub id: String,
    /// What the service calls it, if that differs.
    pub name: Option<String>,
}

/// Timeout for the whole query.
const PATIENCE: Duration = Duration::from_secs(15);
/// Longest list that is read, in bytes. `OpenRouter`'s has about 1 MB.
const MOST_BYTES: usize = 8 << 20;
/// How many models are listed at most.
const MOST: usize = 1000;

/// The models that the server of this configuration offers for chats, sorted by name. The model that the configuration
/// names plays no role. The key is sent along, so only the server's own address is asked and no redirect is followed.
pub async fn offered(config: &Config, http: &Http) -> Result<Vec<Offered>, ModelError> {
    let asked = timeout(PATIENCE, ask(config, http)).await;
    let late = || ModelError::TimedOut { at: config.base_url.clone(), after: PATIENCE };
    let list = asked.unwrap_or_else(|_| Err(late()));
    let key = config.key.as_ref().map(Key::as_str);
    list.map(|list| read::models(config.format, &list)).map_err(|error| error.tidied(key))
}

async fn ask(config: &Config, http: &Http) -> Result<Value, ModelError> {
    let wire = wire(config.format);
    let key = config.key.as_ref().map(Key::as_str);
    key.map_or(Ok(()), check_key)?;
    let mut url = base(wire, config)?;
    let (path, query) = match config.format {
        Format::OpenAi => ("/models", None),
        Format::Anthropic => ("/v1/models", Some("limit=1000")),
        Format::Gemini => ("/models", Some("pageSize=1000")),
    };
    url.set_path(&format!("{}{path}", url.path().trim_end_matches('/')));
    url.set_query(query);
    let mut answer = http.get(&url, headers(wire, key, "application/json")?).await?;
    let status = answer.status();
    if (200..300).contains(&status) {
        return json_of(&mut answer).await;
    }
    let wait = answer.wait();
    let body = answer.words().await;
    let refused = Refused { status, body: &body, model: &config.model, wait };
    let what = || Detail::Status(Box::new(Unexpected { path: url.path().to_owned(), status }));
    let no_list = || ModelError::NotAnApi { at: place(&url), what: what(), hint: Hint::CheckFormat };
    // A list that is not there says nothing about a model.
    let error = classify(&refused).filter(|error| !matches!(error, ModelError::NoSuchModel { .. }));
    Err(error.unwrap_or_else(no_list))
}

async fn json_of(answer: &mut Answer) -> Result<Value, ModelError> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        body.extend_from_slice(chunk.as_ref());
        if body.len() > MOST_BYTES {
            return Err(ModelError::TooLarge { limit: MOST_BYTES });
        }
    }
    serde_json::from_slice(&body).map_err(|_| ModelError::Garbled { what: Detail::OtherJson })
}

/// Reads each format's list. Pure.
mod read {
    use serde_json::Value;

    use super::{MOST, Offered};
    use crate::Format;

    /// The models in a list that can chat. What a service says about a model counts before its name does.
    pub(super) fn models(format: Format, list: &Value) -> Vec<Offered> {
        let entries = match format {
            Format::Gemini => &list["models"],
            // Together AI sends the bare list.
            Format::OpenAi | Format::Anthropic => list.get("data").unwrap_or(list),
        };
        let entries = entries.as_array().map(Vec::as_slice).unwrap_or_default();
        let mut models: Vec<Offered> = entries
            .iter()
            .filter(|entry| chats(entry))
            .filter_map(|entry| model(format, entry))
            .take(MOST)
            .collect();
        models.sort_by(|a, b| a.id.cmp(&b.id));
        models.dedup_by(|a, b| a.id == b.id);
        models
    }

    fn model(format: Format, entry: &Value) -> Option<Offered> {
        let text = |field: &str| entry[field].as_str().map(str::trim).filter(|text| !text.is_empty());
        let (id, name) = match format {
            Format::OpenAi => (text("id")?, text("name")),
            Format::Anthropic => (text("id")?, text("display_name")),
            Format::Gemini => (text("name")?, text("displayName")),
        };
        let id = id.strip_prefix("models/").filter(|_| format == Format::Gemini).unwrap_or(id);
        let is_legible = |text: &str| text.len() <= 200 && !text.chars().any(char::is_control);
        let name = name.filter(|name| *name != id && is_legible(name)).map(str::to_owned);
        is_legible(id).then(|| Offered { id: id.to_owned(), name })
    }

    fn chats(entry: &Value) -> bool {
        let says = |flag: &Value| flag.as_bool();
        // Gemini, Mistral and Together AI tell what a model is for; OpenRouter tells what it writes.
        if let Some(methods) = entry["supportedGenerationMethods"].as_array() {
            return methods.iter().any(|method| method == "generateContent") && by_name(entry);
        }
        if let Some(chats) = says(&entry["capabilities"]["completion_chat"]) {
            return chats;
        }
        if let Some(writes) = entry["architecture"]["output_modalities"].as_array() {
            return writes.iter().any(|kind| kind == "text");
        }
        match entry["type"].as_str() {
            Some("embedding" | "embeddings" | "image" | "audio" | "moderation" | "rerank" | "transcribe") => {
                false
            }
            Some("chat") => true,
            _ => by_name(entry),
        }
    }

    /// Parts of the names of models that do something else. `OpenAI` and Groq list them all, and say no more.
    const OTHERS: [&str; 22] = [
        "embed",
        "whisper",
        "tts",
        "dall-e",
        "moderation",
        "transcribe",
        "realtime",
        "gpt-image",
        "gpt-audio",
        "-audio-",
        "audio-preview",
        "sora",
        "davinci-",
        "babbage-",
        "-instruct-0914",
        "guard",
        "rerank",
        "imagen",
        "veo-",
        "aqa",
        "computer-use",
        "-image",
    ];

    fn by_name(entry: &Value) -> bool {
        let id = entry["id"].as_str().or_else(|| entry["name"].as_str()).unwrap_or_default().to_lowercase();
        !OTHERS.iter().any(|other| id.contains(other))
    }

    #[cfg(test)]
    mod tests {
        use serde_json::json;

        use super::*;

        #[test]
        fn each_service_lists_its_models_in_its_own_way() {
            let openai = json!({"object": "list", "data": [
                {"id": "gpt-5-mini", "object": "model", "created": 1, "owned_by": "system"},
                {"id": "text-embedding-3-small", "object": "model"}, {"id": "whisper-1"}, {"id": "gpt-5"},
                {"id": "gpt-5"}, {"id": "omni-moderation-latest"}, {"id": ""}, {"id": 7}, "odd",
                {"id": "two\nlines"}]});
            let anthropic = json!({"data": [
                {"type": "model", "id": "claude-sonnet-4-5", "display_name": "Claude Sonnet 4.5"}], "has_more": false});
            let gemini = json!({"models": [
                {"name": "models/gemini-2.5-flash", "displayName": "Gemini 2.5 Flash",
                 "supportedGenerationMethods": ["generateContent", "countTokens"]},
                {"name": "models/text-embedding-004", "supportedGenerationMethods": ["embedContent"]}]});
            let mistral = json!({"data": [
                {"id": "mistral-medium-latest", "capabilities": {"completion_chat": true}},
                {"id": "mistral-ocr-latest", "capabilities": {"completion_chat": false}}]});
            let together =
                json!([{"id": "meta-llama/Llama-3.3", "type": "chat"}, {"id": "flux", "type": "image"}]);
            let openrouter = json!({"data": [
                {"id": "a/text", "name": "A: Text", "architecture": {"output_modalities": ["text"]}},
                {"id": "a/picture", "architecture": {"output_modalities": ["image"]}}]});
            let ollama = json!({"object": "list", "data": [{"id": "qwen3:8b", "owned_by": "library"}]});
            for (format, list, expected) in [
                (Format::OpenAi, &openai, vec![("gpt-5", None), ("gpt-5-mini", None)]),
                (Format::Anthropic, &anthropic, vec![("claude-sonnet-4-5", Some("Claude Sonnet 4.5"))]),
                (Format::Gemini, &gemini, vec![("gemini-2.5-flash", Some("Gemini 2.5 Flash"))]),
                (Format::OpenAi, &mistral, vec![("mistral-medium-latest", None)]),
                (Format::OpenAi, &together, vec![("meta-llama/Llama-3.3", None)]),
                (Format::OpenAi, &openrouter, vec![("a/text", Some("A: Text"))]),
                (Format::OpenAi, &ollama, vec![("qwen3:8b", None)]),
                (Format::OpenAi, &json!({"error": "no"}), vec![]),
                (Format::Gemini, &json!([]), vec![]),
            ] {
                let found = models(format, list);
                let found: Vec<_> = found.iter().map(|it| (it.id.as_str(), it.name.as_deref())).collect();
                assert_eq!(found, expected, "{list}");
            }
        }
    }
}
