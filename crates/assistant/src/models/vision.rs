//! Whether a model can see pictures, as far as its name tells. Pure.

use serde::{Deserialize, Serialize};

use super::BUILT_IN;

/// Whether a model can see pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vision {
    Yes,
    No,
    #[default]
    Unknown,
}

impl Vision {
    /// What is known of a model: what the user said counts most, then what its server answered, then its name. For those
    /// that run inside Kai nothing of that counts: their engine takes words only.
    pub fn known(preset: &str, set: Option<bool>, refused: bool, model: &str) -> Self {
        match set {
            _ if preset == BUILT_IN => Self::No,
            Some(true) => Self::Yes,
            Some(false) => Self::No,
            None if refused => Self::No,
            None => Self::by_name(model),
        }
    }

    /// What the name of a model tells.
    fn by_name(model: &str) -> Self {
        let name = model.to_ascii_lowercase();
        let is_like = |part: &&str| name.contains(part);
        if SEEING.iter().any(is_like) {
            Self::Yes
        } else if BLIND.iter().any(is_like) {
            Self::No
        } else {
            Self::Unknown
        }
    }
}

/// Parts of names of models that can see. They are looked for first: `llama3.2-vision` can see, `llama3.2` cannot.
const SEEING: &[&str] = &[
    "vision",
    "-vl",
    "vl:",
    "vl-",
    "llava",
    "pixtral",
    "moondream",
    "minicpm-v",
    "internvl",
    "multimodal",
    "omni",
    "gpt-4o",
    "gpt-4.1",
    "gpt-4-turbo",
    "gpt-5",
    "gpt-6",
    "claude-3",
    "claude-4",
    "claude-opus",
    "claude-sonnet",
    "claude-haiku",
    "gemini-",
    "gemma3:4b",
    "gemma3:12b",
    "gemma3:27b",
    "gemma-3-4b",
    "gemma-3-12b",
    "gemma-3-27b",
    "gemma3n",
    "llama-4",
    "llama4",
    "mistral-medium",
    "mistral-small3",
    "mistral-small-3",
    "grok-4",
];

/// Parts of names of models that take words only.
const BLIND: &[&str] = &[
    "gpt-3.5",
    "gpt-oss",
    "o1-mini",
    "o3-mini",
    "deepseek-chat",
    "deepseek-coder",
    "deepseek-r",
    "deepseek-v2",
    "deepseek-v3",
    "qwen2.5",
    "qwen3",
    "qwq",
    "llama2",
    "llama3",
    "llama-2",
    "llama-3",
    "mixtral",
    "codestral",
    "mistral-nemo",
    "mistral:7b",
    "mistral-7b",
    "phi3",
    "phi4",
    "phi-3",
    "phi-4",
    "gemma2",
    "gemma-2",
    "gemma3:1b",
    "gemma3:270m",
    "gemma-3-1b",
    "command-r",
    "granite3",
    "smollm2",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_whether_a_model_can_see() {
        for (model, expected) in [
            ("gpt-5-mini", Vision::Yes),
            ("gpt-6-luna", Vision::Yes),
            ("gemini-2.5-flash", Vision::Yes),
            ("claude-sonnet-4-5", Vision::Yes),
            ("anthropic/claude-3.5-haiku", Vision::Yes),
            ("llama3.2-vision:11b", Vision::Yes),
            ("Qwen/Qwen2.5-VL-7B-Instruct", Vision::Yes),
            ("qwen2.5vl:7b", Vision::Yes),
            ("qwen3-vl:8b", Vision::Yes),
            ("gemma3:27b", Vision::Yes),
            ("mistral-medium-latest", Vision::Yes),
            ("grok-4", Vision::Yes),
            ("deepseek-chat", Vision::No),
            ("deepseek-flash", Vision::Unknown),
            ("deepseek-r1:7b", Vision::No),
            ("qwen3:8b", Vision::No),
            ("llama-3.3-70b-versatile", Vision::No),
            ("meta-llama/Llama-3.3-70B-Instruct-Turbo", Vision::No),
            ("gemma3:1b", Vision::No),
            ("gpt-3.5-turbo", Vision::No),
            ("default", Vision::Unknown),
            ("openrouter/auto", Vision::Unknown),
            ("", Vision::Unknown),
        ] {
            assert_eq!(Vision::by_name(model), expected, "{model}");
        }
    }

    #[test]
    fn what_the_user_says_counts_most() {
        for (preset, set, refused, expected) in [
            ("openai", Some(true), true, Vision::Yes),
            ("openai", Some(false), false, Vision::No),
            ("openai", None, true, Vision::No),
            ("openai", None, false, Vision::Yes),
            (BUILT_IN, None, false, Vision::No),
            (BUILT_IN, Some(true), false, Vision::No),
        ] {
            assert_eq!(Vision::known(preset, set, refused, "gpt-5"), expected, "{preset} {set:?} {refused}");
        }
    }
}
