//! Terminal input and output: the only place that prints or reads standard input.

pub(crate) mod input;
pub(crate) mod out;
pub(crate) mod qr;
#[cfg(test)]
pub(crate) mod stage;
pub(crate) mod waiting;
