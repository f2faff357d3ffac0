//! The one place that prints, and the one that listens: on a pipe that was closed it is quiet.

pub(crate) mod input;
pub(crate) mod out;
#[cfg(test)]
pub(crate) mod stage;
pub(crate) mod waiting;
