//! Reads the lists of MCP servers that other programs keep. Pure.
//!
//! Claude Desktop and Cursor write `{"mcpServers": {…}}`, VS Code `{"servers": {…}}` or the same inside `"mcp"`, and Zed
//! `{"context_servers": {…}}`.

use serde_json::{Map, Value};

use super::naming;
use super::port::{Secret, Transport};
use super::store::NewServer;

/// The most bytes and servers of a file.
pub const LARGEST: usize = 1 << 20;
const MOST: usize = 100;

/// What a file would add.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    pub servers: Vec<NewServer>,
    /// The names of those that cannot be added, each with the reason.
    pub left_out: Vec<(String, LeftOut)>,
}

/// Why a server of a file cannot be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftOut {
    /// It has neither a command nor an address.
    Incomplete,
    /// Its address does not begin with http:// or https://.
    Address,
    /// It uses the older transport with two connections.
    OldTransport,
    /// A server of that name is there already.
    Known,
    /// It needs an input that the other program asks for when it starts.
    AsksForInput,
}

/// Why a file cannot be read at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    TooLarge,
    NotJson {
        line: usize,
    },
    /// There is no list of servers in it.
    NoServers,
}

/// Reads a file. `known` says whether there is a server of that name already.
pub fn plan(file: &str, known: impl Fn(&str) -> bool) -> Result<Plan, Unreadable> {
    if file.len() > LARGEST {
        return Err(Unreadable::TooLarge);
    }
    let read: Value = serde_json::from_str(&without_remarks(file))
        .map_err(|error| Unreadable::NotJson { line: error.line() })?;
    let listed = ["/mcpServers", "/servers", "/mcp/servers", "/context_servers"];
    let listed = listed.iter().find_map(|path| read.pointer(path)).and_then(Value::as_object);
    let listed = listed.filter(|all| !all.is_empty()).ok_or(Unreadable::NoServers)?;
    let mut plan = Plan::default();
    for (written, entry) in listed.iter().take(MOST) {
        let name = naming::server_name(written);
        let is_taken = known(&name) || plan.servers.iter().any(|server| server.name == name);
        match transport(entry) {
            _ if is_taken => plan.left_out.push((name, LeftOut::Known)),
            Err(why) => plan.left_out.push((name, why)),
            Ok((transport, secrets)) => plan.servers.push(NewServer { name, transport, secrets }),
        }
    }
    Ok(plan)
}

type Reached = (Transport, Vec<(String, Secret)>);

fn transport(entry: &Value) -> Result<Reached, LeftOut> {
    if entry.to_string().contains("${input:") {
        return Err(LeftOut::AsksForInput);
    }
    if entry.get("type").and_then(Value::as_str) == Some("sse") {
        return Err(LeftOut::OldTransport);
    }
    // Zed puts the command and its arguments into one object.
    let command = entry.get("command");
    let inside = command.filter(|command| command.is_object()).unwrap_or(entry);
    let path = inside.get("path").or(inside.get("command")).and_then(Value::as_str);
    if let Some(command) = path.filter(|path| !path.trim().is_empty()) {
        let args = inside.get("args").and_then(Value::as_array).into_iter().flatten();
        let args = args.filter_map(Value::as_str).map(str::to_owned).collect();
        return Ok((Transport::Stdio { command: command.to_owned(), args }, secrets(inside.get("env"))));
    }
    let url =
        entry.get("url").or(entry.get("serverUrl")).and_then(Value::as_str).ok_or(LeftOut::Incomplete)?;
    if !is_web_address(url) {
        return Err(LeftOut::Address);
    }
    Ok((Transport::Http { url: url.to_owned() }, secrets(entry.get("headers"))))
}

/// Whether an address can be that of a server.
pub fn is_web_address(url: &str) -> bool {
    let is_http = |url: &url::Url| matches!(url.scheme(), "http" | "https") && url.host().is_some();
    url::Url::parse(url).is_ok_and(|url| is_http(&url))
}

fn secrets(listed: Option<&Value>) -> Vec<(String, Secret)> {
    let listed: Option<&Map<String, Value>> = listed.and_then(Value::as_object);
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    listed.into_iter().flatten().map(|(name, value)| (name.clone(), Secret::new(text(value)))).collect()
}

/// Removes `//` remarks and commas before a closing bracket, which VS Code and Zed allow.
fn without_remarks(file: &str) -> String {
    let (mut kept, mut in_text, mut escaped) = (String::with_capacity(file.len()), false, false);
    let mut left = file.chars().peekable();
    while let Some(c) = left.next() {
        match c {
            '"' if !escaped => in_text = !in_text,
            '/' if !in_text && left.peek() == Some(&'/') => {
                while left.peek().is_some_and(|c| *c != '\n') {
                    left.next();
                }
                continue;
            }
            '}' | ']' if !in_text => {
                let end = kept.trim_end().len();
                if kept[..end].ends_with(',') {
                    kept.truncate(end - 1);
                }
            }
            _ => {}
        }
        escaped = in_text && c == '\\' && !escaped;
        kept.push(c);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file: &str) -> Plan {
        plan(file, |name| name == "known").unwrap()
    }

    #[test]
    fn the_files_of_other_programs_are_read() {
        let desktop = r#"{"mcpServers": {
            "My Files": {"command": "npx", "args": ["-y", "server-files", "/tmp"], "env": {"KEY": "s3cret"}},
            "web": {"type": "http", "url": "https://mcp.test/mcp", "headers": {"Authorization": "Bearer t"}},
            "known": {"command": "x"}, "old": {"type": "sse", "url": "https://mcp.test/sse"},
            "odd": {"url": "ftp://x"}, "none": {}, "asks": {"command": "x", "env": {"K": "${input:key}"}}
        }}"#;
        let plan = read(desktop);
        let names: Vec<&str> = plan.servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["my-files", "web"]);
        let Transport::Stdio { command, args } = &plan.servers[0].transport else { panic!() };
        assert_eq!((command.as_str(), args.len()), ("npx", 3));
        assert_eq!(plan.servers[0].secrets[0].1.reveal(), "s3cret");
        assert_eq!(plan.servers[1].secrets[0].0, "Authorization");
        let mut left_out = plan.left_out.clone();
        left_out.sort_by(|one, other| one.0.cmp(&other.0));
        let expected = [
            ("asks", LeftOut::AsksForInput),
            ("known", LeftOut::Known),
            ("none", LeftOut::Incomplete),
            ("odd", LeftOut::Address),
            ("old", LeftOut::OldTransport),
        ];
        assert_eq!(left_out, expected.map(|(name, why)| (name.to_owned(), why)));
        let code = "{ // the user's servers\n \"servers\": {\"time\": {\"command\": \"uvx\", \"args\": [\"http://a//b\",],},},\n}";
        let Transport::Stdio { args, .. } = &read(code).servers[0].transport else { panic!() };
        assert_eq!(args, &["http://a//b"]);
        let zed =
            r#"{"context_servers": {"t": {"command": {"path": "t", "args": ["1"], "env": {"A": "b"}}}}}"#;
        assert_eq!(read(zed).servers[0].secrets.len(), 1);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        let refused = |file: &str| plan(file, |_| false).unwrap_err();
        assert_eq!(refused("{\n{"), Unreadable::NotJson { line: 2 });
        for file in ["{}", "[]", "{\"mcpServers\": []}", "{\"mcpServers\": {}}", "null"] {
            assert_eq!(refused(file), Unreadable::NoServers, "{file}");
        }
        assert_eq!(refused(&" ".repeat(LARGEST + 1)), Unreadable::TooLarge);
    }
}
