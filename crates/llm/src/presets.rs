//! The usual services, as data in `presets.json`.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::Format;
use crate::context::Tells;

/// A service people may have an account at, or a server they may run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Preset {
    pub id: String,
    /// As the service calls itself.
    pub name: String,
    pub format: Format,
    /// `None`: only the user knows it.
    pub base_url: Option<String>,
    /// Environment variables that may hold a key, the likeliest first.
    pub key_env: Vec<String>,
    /// The model to begin with; `None`: only the user knows what the server has.
    pub model: Option<String>,
    /// Tokens of context. For servers at home it is small, because they give little unless told otherwise.
    pub window: usize,
    /// How its servers tell the window that they really give; `None` where they do not.
    #[serde(default)]
    pub tells_window: Option<Tells>,
    pub needs_key: bool,
    /// What is said stays on this machine.
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
            assert_eq!(preset.needs_key, !preset.key_env.is_empty(), "{}", preset.id);
            let at_home = preset.base_url.as_deref().is_some_and(|url| url.starts_with("http://127.0.0.1"));
            assert_eq!(preset.local, at_home, "{}", preset.id);
        }
    }
}
