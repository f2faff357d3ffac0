//! `shell_command`: declared, so that models and settings know it, but it runs nothing before its sandbox exists.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{Run, Tool, ToolError};

/// Run a command in a shell on the user's device and get its output.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ShellCommandInput {
    /// The command line, as for sh -c.
    pub command: String,
    /// Seconds the command may take, 1 to 120; 30 if left out.
    pub timeout: Option<u32>,
    /// The folder to run it in; an empty scratch folder if left out.
    pub working_dir: Option<String>,
    /// Environment variables to set.
    pub env: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Serialize)]
pub struct ShellOutput {
    stdout: String,
    stderr: String,
    exit_code: i32,
    timed_out: bool,
}

pub struct ShellCommand;

const LACKS: &str = "Kai has no sandbox to run commands in yet, and without one it runs none.";

impl Tool for ShellCommand {
    const NAME: &'static str = "shell_command";
    const ALIASES: &'static [&'static str] = &["execute_shell_command"];
    const TIMEOUT: Duration = Duration::from_secs(30);
    type Input = ShellCommandInput;
    type Output = ShellOutput;

    fn lacks(&self) -> Option<String> {
        Some(LACKS.to_owned())
    }

    async fn run(&self, _: ShellCommandInput, _: &Run) -> Result<ShellOutput, ToolError> {
        Err(ToolError(LACKS.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Values;
    use crate::tool::{AnyTool, execute};

    #[tokio::test]
    async fn it_is_declared_in_full_and_refuses_whatever_is_asked() {
        let parameters = ShellCommand.spec().parameters;
        let names: Vec<_> = parameters["properties"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(names, ["command", "env", "timeout", "working_dir"]);
        assert_eq!(parameters["properties"]["env"]["type"], "object");
        assert_eq!(parameters["required"], serde_json::json!(["command"]));
        for (arguments, word) in [
            (r#"{"command": "id"}"#, "no sandbox"),
            (r#"{"command": "id", "timeout": 5, "working_dir": "/", "env": {"A": "b"}}"#, "no sandbox"),
            ("{}", "\\\"command\\\" must be a string"),
            (r#"{"command": "id", "env": "A=b"}"#, "\\\"env\\\" must be a JSON object"),
        ] {
            let result = execute(Ok(&ShellCommand), &Values::default(), arguments, &Run::BY_HAND).await;
            assert!(!result.success && result.text.contains(word), "{arguments}: {}", result.text);
        }
    }
}
