//! The preconfigured services and servers, loaded from `presets.json`.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::Format;
use crate::context::Tells;

/// A service people may have an account with, or a server they may run themselves.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Preset {
    pub id: String,
    /// The service's own name.
    pub name: String,
    pub format: Format,
    /// `None` if only the user knows it.
    pub base_url: Option<String>,
    /// Environment variables that may hold a key, most likely first.
    pub key_env: Vec<String>,
    /// The default model; `None` if it depends on what the user's server has.
    pub model: Option<String>,
    /// Size of the context window in tokens. Small for servers people run themselves, because those provide little
    /// unless configured otherwise.
    pub window: usize,
    /// Where its servers report the window they actually provide; `None` if they do not.
    #[serde(default)]
    pub tells_window: Option<Tells>,
    pub needs_key: bool,
    /// The server runs on this machine, so conversations stay on it.
    pub local: bool,
}

static PRESETS: LazyLock<Vec<Preset>> =
    LazyLock::new(|| serde_json::from_str(include_str!("../presets.json")).unwrap_or_default());

pub fn presets() -> &'static [Preset] {
    &PRESETS
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::{Config, Http, Key, Limits, connect};

    /// Models that their services have switched off, or have said that they will.
    const GONE: [&str; 7] = [
        "claude-sonnet-4-5",
        "deepseek-chat",
        "deepseek-reasoner",
        "gemini-2.5-flash",
        "gpt-5-mini",
        "grok-4",
        "llama-3.3-70b-versatile",
    ];

    #[test]
    fn every_preset_can_be_connected() {
        let ids: HashSet<&str> = presets().iter().map(|preset| preset.id.as_str()).collect();
        assert_eq!((ids.len(), presets().len()), (13, 13));
        for preset in presets() {
            let config = Config {
                format: preset.format,
                base_url: preset.base_url.clone().unwrap_or("http://host/v1".into()),
                model: preset.model.clone().unwrap_or("some".into()),
                key: preset.needs_key.then(|| Key::new("k")),
                window: preset.window,
                stream: true,
            };
            assert!(connect(&config, &Http::new(Limits::default())).is_ok(), "{}", preset.id);
            assert!(preset.model.as_deref().is_none_or(|model| !GONE.contains(&model)), "{}", preset.id);
            assert_eq!(preset.needs_key, !preset.key_env.is_empty(), "{}", preset.id);
            let at_home = preset.base_url.as_deref().is_some_and(|url| url.starts_with("http://127.0.0.1"));
            assert_eq!(preset.local, at_home, "{}", preset.id);
        }
    }
}
