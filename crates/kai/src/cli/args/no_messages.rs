//! The store edition's twin of `messages.rs`: nothing of it can be typed.

use clap::Subcommand;
use kai_assistant::home::Home;

use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct DemoArg {}

impl DemoArg {
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the foss edition has a demo")]
    pub(crate) fn home(&self, home: Home, _: bool) -> Result<Home, Failure> {
        Ok(home)
    }
}

#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum MessagesCommand {}
