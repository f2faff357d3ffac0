//! The one place that prints: on a pipe that was closed it is quiet.

pub(crate) mod out;
pub(crate) mod waiting;
