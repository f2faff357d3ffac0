//! Fuzzes what strangers write about MCP servers: what a server says of a tool, and the lists of other programs. It is
//! refused, or becomes something bounded that can be shown and offered.

#![expect(clippy::unwrap_used, reason = "a check may fail loudly")]

use serde_json::Value;

use super::import::{self, is_web_address};
use super::naming::{self, is_server_name};
use super::port::Transport;
use super::text::{LONGEST_DESCRIPTION, ToolText};

/// Takes any bytes as a tool that a server describes, and as a list of servers.
pub fn described(bytes: &[u8]) {
    let written = String::from_utf8_lossy(bytes);
    check_tool(&written);
    check_list(&written);
}

/// A tool is refused, or its text is bounded, on one line, and known by a hash that stays the same.
fn check_tool(written: &str) {
    let said: Value = serde_json::from_str(written).unwrap_or_default();
    let text = |name: &str| said[name].as_str().unwrap_or(written).to_owned();
    let Ok(tool) = ToolText::read(&text("name"), &text("description"), &said["inputSchema"], false) else {
        return;
    };
    assert!(tool.description.chars().count() <= LONGEST_DESCRIPTION && !tool.description.contains('\n'));
    assert_eq!(tool.schema["type"], "object");
    let kept: ToolText = serde_json::from_str(&serde_json::to_string(&tool).unwrap()).unwrap();
    assert_eq!((kept.digest(), &kept), (tool.digest(), &tool));
    let name = naming::tool_name("server", &tool.name, |_| false);
    assert!(
        name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)),
        "{name}"
    );
}

/// A list is refused, or its servers have names and can be reached, each name once.
fn check_list(written: &str) {
    let Ok(plan) = import::plan(written, |_| false) else { return };
    let mut names: Vec<&str> = plan.servers.iter().map(|server| server.name.as_str()).collect();
    assert!(names.iter().all(|name| is_server_name(name)), "{names:?}");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), plan.servers.len());
    for server in &plan.servers {
        match &server.transport {
            Transport::Http { url } => assert!(is_web_address(url), "{url}"),
            Transport::Stdio { command, .. } => assert!(!command.trim().is_empty()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TOOLS: [&str; 2] = [
        r##"{"name":"get_sum","description":"Adds.\nNothing else","inputSchema":{"type":"object","properties":
           {"a":{"type":"number","description":"one"},"b":{"$ref":"#/$defs/b"}},"$defs":{"b":{"enum":["x"]}}}}"##,
        r#"{"name":"a.b/c","description":"","inputSchema":{"type":"object"}}"#,
    ];
    const LISTS: [&str; 2] = [
        r#"{"mcpServers":{"My Files":{"command":"npx","args":["-y","x"],"env":{"K":"v"}},"web":{"url":"https://a.test/mcp"}}}"#,
        "{ // ours\n \"servers\": {\"t\": {\"command\": \"uvx\", \"args\": [\"http://a//b\",],},},\n}",
    ];

    proptest! {
        #[test]
        fn a_tool_is_refused_or_bounded(written in kai_mutate::text(TOOLS.map(str::to_owned).to_vec())) {
            check_tool(&written);
        }

        #[test]
        fn a_list_is_refused_or_can_be_added(written in kai_mutate::text(LISTS.map(str::to_owned).to_vec())) {
            check_list(&written);
        }
    }
}
