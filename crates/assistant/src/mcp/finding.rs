//! Finds tools by words in their names and descriptions. Pure.

/// With more MCP tools than so many, a model is offered `find_tools` instead of all of them.
pub const OFFERED_AT_ONCE: usize = 20;
/// How many tools a search finds at most.
pub const MOST: usize = 8;

/// The best tools for a query, best first. `all` holds each tool's name and description.
pub fn best<'a, T>(query: &str, all: impl IntoIterator<Item = (T, &'a str, &'a str)>) -> Vec<T> {
    let wanted: Vec<String> = words(query).collect();
    let mut found: Vec<(usize, usize, T)> = all
        .into_iter()
        .enumerate()
        .map(|(place, (tool, name, about))| (score(&wanted, name, about), place, tool))
        .filter(|(score, _, _)| *score > 0)
        .collect();
    found.sort_by_key(|(score, place, _)| (std::cmp::Reverse(*score), *place));
    found.into_iter().take(MOST).map(|(_, _, tool)| tool).collect()
}

/// A word in the name counts more than one in the description, and a whole word more than a part of one.
fn score(wanted: &[String], name: &str, about: &str) -> usize {
    let (name, about): (Vec<String>, Vec<String>) = (words(name).collect(), words(about).collect());
    wanted.iter().map(|word| 4 * hit(word, &name) + hit(word, &about)).sum()
}

fn hit(word: &str, within: &[String]) -> usize {
    let is_alike = |other: &String| {
        word.len() > 2 && (other.starts_with(word) || (other.len() > 2 && word.starts_with(other.as_str())))
    };
    if within.iter().any(|other| other == word) {
        3
    } else if within.iter().any(is_alike) {
        2
    } else {
        0
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let lower = text.to_lowercase();
    let all: Vec<String> = lower.split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect();
    all.into_iter().filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_come_first_and_never_more_than_asked_for() {
        let tools = [
            ("mcp_files_read_file", "Read a file from disk"),
            ("mcp_time_convert", "Convert a time between zones"),
            ("mcp_notes_search", "Search notes; reads files too"),
        ];
        let found = |query| best(query, tools.iter().map(|(name, about)| (*name, *name, *about)));
        assert_eq!(found("read file"), ["mcp_files_read_file", "mcp_notes_search"]);
        assert_eq!(found("time zone"), ["mcp_time_convert"]);
        assert_eq!(found("converting times"), ["mcp_time_convert"]);
        assert_eq!(found("weather"), Vec::<&str>::new());
        assert_eq!(found("  !"), Vec::<&str>::new());
        let many: Vec<String> = (0..100).map(|n| format!("mcp_a_tool{n}")).collect();
        assert_eq!(best("tool", many.iter().map(|name| (name, name.as_str(), "a tool"))).len(), MOST);
    }
}
