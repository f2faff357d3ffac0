//! A language model on this machine, with nothing else to install: what it takes, how it is fetched, and the engine,
//! which runs in a process of its own.

mod calls;
pub mod catalogue;
mod engine;
pub mod fetch;
mod frame;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod gguf;
mod line;
pub mod machine;
mod model;
mod order;
mod part;
mod prompt;
mod running;
mod states;
mod tags;
mod worker;

pub use model::{Engine, Local};
pub use running::Launch;
pub use states::States;
pub use worker::{SUBCOMMAND, work};
