//! Speaks to language models. The vocabulary here is ours alone: no vendor's word, and nothing of what the
//! assistant does with it.

mod message;

pub use message::ToolSpec;
