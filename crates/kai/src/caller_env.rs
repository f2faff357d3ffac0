//! The parts of this process's environment that matter to calls.

use kai_bridges::Environment;
use serde::{Deserialize, Serialize};

/// The caller's locale, model keys and proxy. They are sent with the call, so that the daemon gives the same answer as the
/// command itself would. Only the socket's owner can read them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CallerEnv {
    /// Such as `de_DE.UTF-8`.
    pub(crate) locale: String,
    /// Environment variables with model keys, as name and value.
    pub(crate) keys: Vec<(String, String)>,
    /// The proxy for downloads, from `HTTPS_PROXY` or `ALL_PROXY`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) proxy: Option<String>,
    /// The hosts that are reached without it, from `NO_PROXY`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) no_proxy: Option<String>,
}

/// The environment of this process. Empty in tests, so that the developer's own has no effect.
pub(crate) fn here() -> CallerEnv {
    if cfg!(test) {
        return CallerEnv::default();
    }
    // Programs agree on neither case, so both are common.
    let either = |name: &str| set(name).or_else(|| set(&name.to_lowercase()));
    let proxy = either("HTTPS_PROXY").or_else(|| either("ALL_PROXY"));
    CallerEnv { locale: locale(), keys: keys(), proxy, no_proxy: either("NO_PROXY") }
}

/// The environment for the programs that we start, without model keys.
pub(crate) fn for_programs() -> Environment {
    Environment::of(std::env::vars_os())
}

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

fn locale() -> String {
    set("LC_ALL").or_else(|| set("LC_MESSAGES")).or_else(|| set("LANG")).unwrap_or_default()
}

/// The model keys that are set in the environment.
fn keys() -> Vec<(String, String)> {
    let names = kai_llm::presets().iter().flat_map(|preset| &preset.key_env);
    names.filter_map(|name| Some((name.clone(), set(name)?))).collect()
}
