//! What this process finds in its environment, for itself or to send along with a call.

use kai_bridges::Environment;
use serde::{Deserialize, Serialize};

/// What the caller's environment says. It travels with the call, so that the answer is the same whether the daemon
/// gives it or the command itself. The socket is its owner's alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CallerEnv {
    /// Such as `de_DE.UTF-8`.
    pub(crate) locale: String,
    /// Variables that hold keys of models.
    pub(crate) keys: Vec<(String, String)>,
}

/// Of this process. Tests have none, so that nothing of the developer's own counts.
pub(crate) fn here() -> CallerEnv {
    if cfg!(test) {
        return CallerEnv::default();
    }
    CallerEnv { locale: locale(), keys: keys() }
}

/// What of our environment the programs that we start may see. Keys of models are not for them.
pub(crate) fn for_programs() -> Environment {
    Environment::of(std::env::vars_os())
}

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

fn locale() -> String {
    set("LC_ALL").or_else(|| set("LC_MESSAGES")).or_else(|| set("LANG")).unwrap_or_default()
}

/// Keys for models that the person keeps in the environment.
fn keys() -> Vec<(String, String)> {
    let names = kai_llm::presets().iter().flat_map(|preset| &preset.key_env);
    names.filter_map(|name| Some((name.clone(), set(name)?))).collect()
}
