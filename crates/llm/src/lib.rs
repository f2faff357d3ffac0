//! A client for language models. Its types are its own: they use no vendor's terms and know nothing about the
//! assistant.
//!
//! The path of a request: [`repair()`] makes a history acceptable to any provider, [`fit`] makes it small enough,
//! [`Model::body`] encodes it in the provider's format and [`Http`] sends it. The result is a reply in our types, or
//! a [`ModelError`] from which [`retry::after`] decides what to do next.

mod anthropic;
mod as_text;
mod config;
pub mod context;
mod detail;
mod draft;
mod engine;
mod error;
mod format;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod gemini;
mod http;
mod ids;
mod incoming;
pub mod local;
mod message;
mod model;
pub mod names;
mod offered;
mod openai;
mod picture;
mod presets;
#[cfg(test)]
mod recorded;
mod refusal;
mod remote;
pub mod repair;
pub mod retry;
mod schema;
mod scripted;
mod showing;
pub mod sse;
mod verbatim;
pub mod window;
mod wire;

pub use config::{Config, Key};
pub use detail::{Detail, Hint, Unexpected};
pub use engine::EngineTrouble;
pub use error::ModelError;
pub use format::Format;
pub use http::{Http, Limits, client_builder, tls_config, why_no_answer};
pub use message::{CallId, Message, Reply, ToolCall, ToolSpec, Usage};
pub use model::{Delta, Deltas, Judging, Model, Place, Replying, Request, Scale};
pub use offered::{Offered, offered};
pub use picture::{Encoded, Media, Picture};
pub use presets::{Preset, presets};
pub use remote::connect;
pub use repair::repair;
pub use retry::Next;
pub use schema::Schema;
pub use scripted::{Act, Scripted};
pub use showing::{NOT_AGAIN, newest_pictures, without_pictures};
pub use window::{fit, fit_by, request_tokens, tokens};
