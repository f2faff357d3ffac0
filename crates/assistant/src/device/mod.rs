//! Tools about the machine Kai runs on.

mod time;

pub use time::LocalTime;
