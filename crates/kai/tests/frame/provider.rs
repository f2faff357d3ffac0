//! A model's server on loopback that plays a script and remembers what it was asked.

pub(crate) use kai_stand_ins::{Act, Asked, Provider};
