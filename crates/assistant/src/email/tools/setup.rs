//! The tool with which a model tells the user how to add a mail account.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::email::Mailboxes;
use crate::tool::{Run, Tool, ToolError, ToolOutput};

/// Find out how the user adds an email account. You cannot add one: never ask for a password, it must not be part of a chat.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct SetupEmailInput {}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SetupEmailOutput {
    /// The addresses of the accounts that there are.
    accounts: Vec<String>,
    message: &'static str,
}

const HOW: &str = "The user adds an account in Kai's settings (Settings → Agent → Email), or in a terminal with `kai email \
                   add ADDRESS`. They type the password there; it never goes through a model, so do not ask for it.";

pub struct SetupEmail {
    pub mailboxes: Mailboxes,
}

impl Tool for SetupEmail {
    const NAME: &'static str = "setup_email";
    type Input = SetupEmailInput;
    type Output = SetupEmailOutput;

    async fn run(&self, _: SetupEmailInput, _: &Run) -> Result<ToolOutput<SetupEmailOutput>, ToolError> {
        let accounts = self.mailboxes.accounts().await?;
        let accounts = accounts.into_iter().map(|account| account.address).collect();
        Ok(ToolOutput::own(SetupEmailOutput { accounts, message: HOW }))
    }
}
