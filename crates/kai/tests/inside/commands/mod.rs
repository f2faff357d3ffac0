//! Calls on an app, as the command line makes them.

#[cfg(feature = "foss")]
mod shapes;
