//! Gets what proves who the user is: their password, or a token that a command of theirs prints.

use std::path::{Path, PathBuf};

use kai_assistant::email::account::Credentials;
use kai_assistant::email::port::Why;
use kai_words::said;

use super::limits::Limits;
use super::sign_in::{self, Proof};
use crate::environment::Environment;
use crate::program::{self, Start, Terms};

/// The proof for these credentials.
pub(super) async fn proof(
    credentials: &Credentials,
    environment: &Environment,
    limits: &Limits,
) -> Result<Proof, Why> {
    match credentials {
        Credentials::Password(password) => Ok(Proof::Password(password.reveal().to_owned())),
        Credentials::TokenCommand(command) => {
            let (shell, args) = (shell(environment), ["-c", command]);
            let start = Start { program: &shell, environment };
            let printed = program::run(start, &args, &Terms::within(limits.token)).await;
            let printed = printed.map_err(|failed| Why::TokenCommand(failed.sentence()))?;
            let token = sign_in::token(&printed);
            token.map(Proof::Token).ok_or_else(|| Why::TokenCommand(said::mail_no_token()))
        }
    }
}

/// The user wrote the command for a shell, as other mail programs take it.
fn shell(environment: &Environment) -> PathBuf {
    let path = environment.variables().find(|(name, _)| *name == "PATH");
    let path = path.and_then(|(_, value)| value.to_str()).unwrap_or_default();
    let folders = path.split(':').filter(|folder| folder.starts_with('/'));
    let found = folders.map(|folder| Path::new(folder).join("sh")).find(|file| file.is_file());
    found.unwrap_or_else(|| "/bin/sh".into())
}
