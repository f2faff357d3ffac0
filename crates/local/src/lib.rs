//! A language model on this machine, with nothing else to install: what it takes, how it is fetched, and the engine,
//! which runs in a process of its own.

pub mod catalogue;
pub mod fetch;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod gguf;
pub mod machine;
mod part;
