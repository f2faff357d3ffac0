//! Lists the models that Kai can use, in order: those that the user added, then those with a key in the environment,
//! then a server found on this machine.

pub mod store;
pub mod trouble;
pub mod vision;
pub mod window;

use kai_llm::{Config, Key, Preset, presets};
use kai_words::{Said, said};
use url::{Host, Url};

use self::vision::Vision;
use self::window::{Window, WindowSource};
use crate::db::Migration;

pub(crate) const MIGRATION: Migration =
    Migration { name: "models/1", sql: include_str!("../../migrations/models.sql") };
pub(crate) const WINDOWS: Migration =
    Migration { name: "models/2", sql: include_str!("../../migrations/models2.sql") };

pub(crate) const VISION: Migration =
    Migration { name: "models/vision", sql: include_str!("../../migrations/models_vision.sql") };

/// The preset of models that run inside Kai. Their address is that of a file.
pub const BUILT_IN: &str = "local";

/// A model that the user added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredModel {
    /// The user's name for it; unique.
    pub name: String,
    pub preset: String,
    pub base_url: String,
    pub model: String,
    pub key: Option<Key>,
    /// The context window that the user set, in tokens.
    pub context: Option<usize>,
    /// Whether it can see pictures, if the user said so.
    pub sees: Option<bool>,
}

/// How Kai knows of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The user added it.
    Added,
    /// Its key is in the environment.
    Environment,
    /// Its server runs on this machine.
    Found,
}

/// A model that Kai could use, or the reason why it cannot.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub name: String,
    pub preset: String,
    pub origin: Origin,
    /// It runs on this machine, so requests do not leave it ([`stays_here`]).
    pub local: bool,
    pub config: Config,
    /// Where the window in `config` comes from.
    pub window_source: WindowSource,
    pub vision: Vision,
    /// Whether it can see pictures, if the user said so.
    pub sees: Option<bool>,
    /// Why Kai cannot use it, with the model's name in the sentence.
    pub why_not: Option<Said>,
}

/// Keys and servers found on this machine, which Kai can use without any setup.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// Environment variables that contain keys, by name.
    pub keys: Vec<(String, Key)>,
    /// The models of the local Ollama server, if one is running.
    pub ollama: Vec<String>,
}

pub fn preset(id: &str) -> Option<&'static Preset> {
    presets().iter().find(|preset| preset.id == id)
}

/// All candidates, in the order in which Kai tries them.
pub fn candidates(added: &[ConfiguredModel], around: &Surroundings) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = added.iter().map(|model| from_added(model, around)).collect();
    let missing = |preset: &Preset| added.iter().all(|model| model.preset != preset.id);
    for preset in presets().iter().filter(|preset| missing(preset)) {
        if let Some(key) = key_for(preset, around) {
            all.extend(by_itself(preset, preset.model.clone(), Some(key), Origin::Environment));
        }
    }
    if let Some(ollama) = preset("ollama").filter(|preset| missing(preset)) {
        // One that leaves the machine is used only if the user adds it.
        let at = ollama.base_url.as_deref().unwrap_or_default();
        let model = around.ollama.iter().find(|model| stays_here(at, model)).cloned();
        all.extend(by_itself(ollama, model, None, Origin::Found));
    }
    all
}

/// The key for this preset in the environment.
pub fn key_for(preset: &Preset, around: &Surroundings) -> Option<Key> {
    preset
        .key_env
        .iter()
        .find_map(|name| around.keys.iter().find(|(n, _)| n == name))
        .map(|(_, key)| key.clone())
}

fn from_added(added: &ConfiguredModel, around: &Surroundings) -> Candidate {
    let preset = preset(&added.preset);
    let key = added.key.clone().or_else(|| preset.and_then(|preset| key_for(preset, around)));
    let why_not = match preset {
        None if added.preset == BUILT_IN => None,
        None => Some(said::unready_unknown_preset(&added.name)),
        Some(preset) if preset.needs_key && key.is_none() => Some(said::unready_no_key(&added.name)),
        Some(_) => None,
    };
    let preset_window = preset.map_or(kai_llm::window::UNKNOWN, |preset| preset.window);
    let window = Window::assumed(added.context, preset_window, None);
    Candidate {
        name: added.name.clone(),
        preset: added.preset.clone(),
        origin: Origin::Added,
        local: stays_here(&added.base_url, &added.model),
        config: Config {
            format: preset.map_or(kai_llm::Format::OpenAi, |preset| preset.format),
            base_url: added.base_url.clone(),
            model: added.model.clone(),
            key,
            window: window.tokens,
            stream: true,
        },
        window_source: window.source,
        vision: Vision::known(&added.preset, added.sees, false, &added.model),
        sees: added.sees,
        why_not,
    }
}

/// A candidate that the user did not add; `None` if its preset has no address or no model is known.
fn by_itself(preset: &Preset, model: Option<String>, key: Option<Key>, origin: Origin) -> Option<Candidate> {
    let config = Config {
        format: preset.format,
        base_url: preset.base_url.clone()?,
        model: model?,
        key,
        window: preset.window,
        stream: true,
    };
    let local = stays_here(&config.base_url, &config.model);
    let vision = Vision::known(&preset.id, None, false, &config.model);
    Some(Candidate {
        name: preset.id.clone(),
        preset: preset.id.clone(),
        origin,
        local,
        config,
        window_source: WindowSource::Preset,
        vision,
        sees: None,
        why_not: None,
    })
}

/// Whether requests to this model stay on this machine.
pub fn stays_here(base_url: &str, model: &str) -> bool {
    is_local(base_url) && !is_passed_on(base_url, model)
}

/// Whether a server on this machine passes requests to this model on to another one. Ollama does so with the models of
/// its cloud, which it offers like its own. Their names tell; a proxy that says nothing cannot be recognised.
pub fn is_passed_on(base_url: &str, model: &str) -> bool {
    // Kai runs a file itself, whatever it is called.
    let is_file = Url::parse(base_url).is_ok_and(|url| url.scheme() == "file");
    is_local(base_url) && !is_file && is_of_the_cloud(model)
}

/// Whether this is how Ollama calls the models of its cloud: `glm-4.6:cloud`, `gpt-oss:120b-cloud`.
fn is_of_the_cloud(model: &str) -> bool {
    let name = model.trim().to_ascii_lowercase();
    // Ollama adds this tag to a name without one.
    let name = name.strip_suffix(":latest").unwrap_or(&name);
    name.ends_with("-cloud") || name.rsplit_once(':').is_some_and(|(_, tag)| tag.trim() == "cloud")
}

/// Whether the address is on this machine. Whether requests stay there depends on the model, too: [`stays_here`].
pub fn is_local(base_url: &str) -> bool {
    // Parse the address as the HTTP client does, or the two could disagree about the host.
    let url = Url::parse(base_url).ok();
    match url.as_ref().and_then(Url::host) {
        None => url.is_some_and(|url| url.scheme() == "file"),
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
    }
}

/// Whether requests to this address, and the key in them, cross the network unencrypted.
pub fn is_unencrypted(base_url: &str) -> bool {
    !is_local(base_url) && Url::parse(base_url).is_ok_and(|url| url.scheme() == "http")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(name: &str, preset_id: &str, key: Option<&str>) -> ConfiguredModel {
        let base_url = preset(preset_id).and_then(|p| p.base_url.clone()).unwrap_or_default();
        let key = key.map(Key::new);
        ConfiguredModel {
            name: name.into(),
            preset: preset_id.into(),
            base_url,
            model: "m".into(),
            key,
            context: None,
            sees: None,
        }
    }

    fn names(added: &[ConfiguredModel], around: &Surroundings) -> Vec<String> {
        let sign = |c: Candidate| format!("{}{}", c.name, if c.why_not.is_some() { "!" } else { "" });
        candidates(added, around).into_iter().map(sign).collect()
    }

    #[test]
    fn what_was_added_comes_first_and_what_was_found_last() {
        let key = |name: &str| (name.to_owned(), Key::new("k"));
        let around = Surroundings { keys: vec![key("ANTHROPIC_API_KEY")], ollama: vec!["qwen".to_owned()] };
        for (name, set_up, surroundings, expected) in [
            ("nothing at all", vec![], Surroundings::default(), vec![]),
            ("only found", vec![], around.clone(), vec!["anthropic", "ollama"]),
            (
                "added first",
                vec![added("mine", "openai", Some("k"))],
                around.clone(),
                vec!["mine", "anthropic", "ollama"],
            ),
            (
                "added twice is not found again",
                vec![added("local", "ollama", None)],
                around.clone(),
                vec!["local", "anthropic"],
            ),
            ("no key", vec![added("mine", "openai", None)], Surroundings::default(), vec!["mine!"]),
            ("key from the environment", vec![added("a", "anthropic", None)], around, vec!["a", "ollama"]),
            ("unknown preset", vec![added("old", "gone", None)], Surroundings::default(), vec!["old!"]),
            ("inside Kai", vec![added("here", BUILT_IN, None)], Surroundings::default(), vec!["here"]),
        ] {
            assert_eq!(names(&set_up, &surroundings), expected, "{name}");
        }
    }

    #[test]
    fn a_model_of_ollamas_cloud_is_not_taken_by_itself() {
        for (models, expected) in [
            (&["gpt-oss:120b-cloud", "glm-4.6:cloud"][..], vec![]),
            (&["gpt-oss:120b-cloud", "qwen3:8b"], vec!["qwen3:8b"]),
        ] {
            let ollama = models.iter().copied().map(str::to_owned).collect();
            let found = candidates(&[], &Surroundings { keys: vec![], ollama });
            let taken: Vec<&str> = found.iter().map(|candidate| candidate.config.model.as_str()).collect();
            assert_eq!(taken, expected, "{models:?}");
        }
    }

    #[test]
    fn a_model_of_ollamas_cloud_leaves_this_machine_through_whichever_server_here() {
        const OLLAMA: &str = "http://127.0.0.1:11434/v1";
        for (url, model, stays) in [
            (OLLAMA, "qwen3:8b", true),
            (OLLAMA, "gpt-oss:120b-cloud", false),
            (OLLAMA, "deepseek-v3.1:671b-cloud", false),
            (OLLAMA, "glm-4.6:cloud", false),
            (OLLAMA, " GLM-4.6:Cloud ", false),
            (OLLAMA, "mine-cloud:latest", false),
            (OLLAMA, "someone/cloudy:8b", true),
            (OLLAMA, "cloud-nine", true),
            ("http://localhost:8080", "kimi-k2:1t-cloud", false),
            ("http://[::1]:4000/v1", "glm-4.6:cloud", false),
            ("https://ollama.com/v1", "glm-4.6:cloud", false),
            ("https://api.openai.com/v1", "gpt-5", false),
            ("file:///home/kai/models/a-cloud.gguf", "a-cloud", true),
            ("file://elsewhere.example/small.gguf", "small", false),
        ] {
            assert_eq!(stays_here(url, model), stays, "{model} at {url}");
            assert_eq!(is_passed_on(url, model), is_local(url) && !stays, "{model} at {url}");
            let model = ConfiguredModel {
                base_url: url.to_owned(),
                model: model.to_owned(),
                ..added("mine", "openai-compatible", None)
            };
            let candidate = candidates(&[model], &Surroundings::default()).remove(0);
            assert_eq!(candidate.local, stays, "{candidate:?}");
        }
    }

    #[test]
    fn a_model_that_kai_runs_itself_sees_no_pictures() {
        for (preset, sees, expected) in [
            (BUILT_IN, None, Vision::No),
            (BUILT_IN, Some(true), Vision::No),
            ("openai-compatible", None, Vision::Yes),
            ("openai-compatible", Some(false), Vision::No),
        ] {
            let model = "qwen2.5-vl-3b".to_owned();
            let model = ConfiguredModel { model, sees, ..added("mine", preset, None) };
            let candidate = candidates(&[model], &Surroundings::default()).remove(0);
            assert_eq!(candidate.vision, expected, "{preset} {sees:?}");
        }
    }

    #[test]
    fn local_means_this_machine_and_plain_http_is_read_on_the_way_to_others() {
        for (url, local, unencrypted) in [
            ("http://127.0.0.1:11434/v1", true, false),
            ("http://localhost:8080", true, false),
            ("http://[::1]:8080/v1", true, false),
            ("file:///home/kai/models/small.gguf", true, false),
            ("file://elsewhere.example/small.gguf", false, false),
            ("https://api.openai.com/v1", false, false),
            ("http://localhost.evil.example/v1", false, true),
            ("http://127.0.0.1@evil.example/v1", false, true),
            ("HTTP://192.168.1.5:11434", false, true),
        ] {
            assert_eq!((is_local(url), is_unencrypted(url)), (local, unencrypted), "{url}");
        }
    }
}
