//! The names under which models are offered the tools of MCP servers. Pure.

use sha2::{Digest, Sha256};

use crate::hex;

/// Every such name begins so, and no tool of our own does.
pub const PREFIX: &str = "mcp_";
/// The longest name that every provider accepts.
const LONGEST: usize = 64;
/// How many characters tell names apart that would be the same.
const TAIL: usize = 6;
/// The longest name of a server, which leaves room for the tool's.
pub const LONGEST_SERVER: usize = 24;

/// Whether a server can be called so: lower-case letters, digits and hyphens.
pub fn is_server_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty() && name.len() <= LONGEST_SERVER && name.chars().all(allowed) && !name.starts_with('-')
}

/// A server's name made of one that another program uses.
pub fn server_name(written: &str) -> String {
    let plain: String = written
        .to_ascii_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(LONGEST_SERVER)
        .collect();
    let plain = plain.trim_matches('-');
    if plain.is_empty() { "server".to_owned() } else { plain.to_owned() }
}

/// The name of a server's tool, as `mcp_<server>_<tool>`. If that is too long, has other characters or is `taken`, its
/// end is a hash of both names.
pub fn tool_name(server: &str, tool: &str, taken: impl Fn(&str) -> bool) -> String {
    let plain = |text: &str| -> String {
        text.chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' })
            .collect()
    };
    let name = format!("{PREFIX}{}_{}", plain(server), plain(tool));
    let is_exact = name.len() <= LONGEST && plain(tool) == tool;
    if is_exact && !taken(&name) {
        return name;
    }
    let mut hash = Sha256::new();
    hash.update(server.as_bytes());
    hash.update([0]);
    hash.update(tool.as_bytes());
    let tail = &hex::encode(&hash.finalize())[..TAIL];
    let kept: String = name.chars().take(LONGEST - TAIL - 1).collect();
    format!("{kept}_{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_every_provider_and_stay_apart() {
        let free = |_: &str| false;
        assert_eq!(tool_name("time", "get_current_time", free), "mcp_time_get_current_time");
        let dotted = tool_name("a", "x.y", free);
        assert!(dotted.starts_with("mcp_a_x_y_"), "{dotted}");
        assert_ne!(dotted, tool_name("a", "x/y", free));
        let long = tool_name("files", &"n".repeat(100), free);
        assert_eq!(long.len(), LONGEST);
        assert_ne!(long, tool_name("files", &"n".repeat(101), free));
        let taken = tool_name("a-b", "c", |name| name == "mcp_a-b_c");
        assert!(taken.starts_with("mcp_a-b_c_") && taken.len() <= LONGEST, "{taken}");
        for name in [dotted, long, taken] {
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'), "{name}");
        }
    }

    #[test]
    fn servers_have_short_plain_names() {
        for (name, fits) in
            [("time", true), ("my-files2", true), ("", false), ("Time", false), ("-a", false), ("a b", false)]
        {
            assert_eq!(is_server_name(name), fits, "{name}");
        }
        for (written, made) in [("My Files!", "my-files"), ("时间", "server"), ("time", "time")] {
            assert_eq!(server_name(written), made);
            assert!(is_server_name(&server_name(written)));
        }
        assert!(is_server_name(&server_name(&"long ".repeat(20))));
    }
}
