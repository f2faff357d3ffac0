//! A language model on this machine, with nothing else to install: what it takes, how it is fetched, and the engine,
//! which runs in a process of its own.

mod calls;
mod engine;
mod frame;
mod line;
mod model;
mod order;
mod prompt;
mod running;
mod states;
mod worker;

pub use model::{Engine, Local};
pub use running::Launch;
pub use states::States;
pub use worker::{SUBCOMMAND, work};
