//! The manual pages, written from the definitions of the commands: `kai.1`, and a page for each command, which also
//! describes the commands below it.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::builder::PossibleValue;
use clap::{Arg, Command};
use jiff::Timestamp;

use crate::failure::Failure;
use crate::terminal::out;

/// What no definition says.
const SURROUNDINGS: &str = "\
.SH FILES
.TP
.I ~/.local/share/kai
The home, a folder with everything Kai keeps: an encrypted store, its key, and logs. \\fB$XDG_DATA_HOME\\fR moves it.
.SH ENVIRONMENT
.TP
.B KAI_HOME
The home, unless \\fB\\-\\-home\\fR names one.
.TP
.B KAI_LOG
The level of the log, as with \\fB\\-\\-log\\fR.
.TP
.B OPENAI_API_KEY\\fR, \\fBANTHROPIC_API_KEY\\fR, \\fBGEMINI_API_KEY\\fR, \\&...
API keys of services, which Kai finds by itself.
";

/// Writes all pages into a folder, and prints their names.
pub(super) fn write(command: Command, folder: &Path) -> Result<ExitCode, Failure> {
    let unwritable = |e| Failure::failed(format!("{} could not be written: {e}.", folder.display()));
    fs::create_dir_all(folder).map_err(unwritable)?;
    for (name, page) in pages(command, &date()) {
        fs::write(folder.join(&name), page).map_err(unwritable)?;
        out::line(&name);
    }
    Ok(ExitCode::SUCCESS)
}

/// The day of the sources, by which two builds of the same sources agree. Without it, pages have no date.
fn date() -> String {
    let seconds = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse().ok());
    let day = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
    day.map(|day| day.strftime("%Y-%m-%d").to_string()).unwrap_or_default()
}

/// The pages by the names of their files.
fn pages(mut command: Command, date: &str) -> Vec<(String, String)> {
    command.build();
    let mut pages = vec![("kai.1".to_owned(), overview(&command, date))];
    for one in shown(&command) {
        pages.push((format!("kai-{}.1", one.get_name()), page(one, date)));
    }
    pages
}

/// The commands below this one that people can see. clap's own `help` has no page.
fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help")
}

fn overview(command: &Command, date: &str) -> String {
    let mut page = head(command, "kai", date);
    page.push_str(".SH COMMANDS\n");
    for one in shown(command) {
        let _ = writeln!(page, ".TP\n\\fBkai\\-{}\\fR(1)\n{}", dashed(one.get_name()), text(&about(one)));
    }
    page.push_str(&options(command, |_| true, ".SH OPTIONS\n"));
    page.push_str(SURROUNDINGS);
    page.push_str(&after(command, ".SH"));
    page
}

fn page(command: &Command, date: &str) -> String {
    let mut page = head(command, &format!("kai-{}", command.get_name()), date);
    page.push_str(&options(command, is_own, ".SH OPTIONS\n"));
    let below: String = shown(command).map(section).collect();
    if !below.is_empty() {
        page.push_str(".SH COMMANDS\n");
        page.push_str(&below);
    }
    page.push_str(&after(command, ".SH"));
    page.push_str(".SH SEE ALSO\n\\fBkai\\fR(1), which describes the global options\n");
    page
}

/// Title, name, synopsis and description.
fn head(command: &Command, name: &str, date: &str) -> String {
    let (title, short) = (dashed(&name.to_uppercase()), dashed(name));
    let version = env!("CARGO_PKG_VERSION");
    let about = about(command);
    let described = command.get_long_about().map_or_else(|| about.clone(), ToString::to_string);
    format!(
        ".TH \"{title}\" 1 \"{date}\" \"Kai {version}\" \"Kai\"\n.SH NAME\n{short} \\- {}\n.SH SYNOPSIS\n\\fB{}\\fR\n\
         .SH DESCRIPTION\n{}\n",
        text(about.trim_end_matches('.')),
        text(&usage(command)),
        text(&described)
    )
}

/// A command below another one, and those below it.
fn section(command: &Command) -> String {
    let mut section =
        format!(".SS \"{}\"\n{}\n", text(&usage(command)).replace('"', "\\(dq"), text(&about(command)));
    section.push_str(&options(command, is_own, ""));
    section.push_str(&after(command, ".PP"));
    section.extend(shown(command).map(self::section));
    section
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

/// What to type, on one line.
fn usage(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let words: Vec<&str> = usage.trim_start_matches("Usage:").split_whitespace().collect();
    words.join(" ")
}

/// An option that belongs to this command alone.
fn is_own(arg: &Arg) -> bool {
    !arg.is_global_set() && !["help", "version"].contains(&arg.get_id().as_str())
}

/// What can be given, after this heading; nothing if there is nothing.
fn options(command: &Command, which: impl Fn(&Arg) -> bool, heading: &str) -> String {
    let args = command.get_arguments().filter(|arg| !arg.is_hide_set() && which(arg));
    let described: String = args.map(option).collect();
    if described.is_empty() { described } else { format!("{heading}{described}") }
}

fn option(arg: &Arg) -> String {
    let short = arg.get_short().map(|short| format!("\\fB\\-{short}\\fR"));
    let long = arg.get_long().map(|long| format!("\\fB\\-\\-{}\\fR", dashed(long)));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    let values = arg.get_value_names().unwrap_or_default().iter();
    let values: Vec<String> = values.map(|name| format!("\\fI{}\\fR", dashed(name))).collect();
    let takes = arg.is_positional() || arg.get_action().takes_values();
    let values = if takes { values.join(" ") } else { String::new() };
    let words: Vec<String> = [names.join(", "), values].into_iter().filter(|word| !word.is_empty()).collect();
    let help = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string).unwrap_or_default();
    format!(".TP\n{}\n{}{}\n", words.join(" "), text(&help), choices(arg))
}

/// The values that an argument can have, and the one that it has otherwise.
fn choices(arg: &Arg) -> String {
    let possible = arg.get_possible_values();
    let takes = arg.is_positional() || arg.get_action().takes_values();
    let names: Vec<&str> =
        possible.iter().filter(|value| takes && !value.is_hide_set()).map(PossibleValue::get_name).collect();
    let usual: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    let mut said = String::new();
    if !names.is_empty() {
        let _ = write!(said, "\n.br\nOne of: {}.", text(&names.join(", ")));
    }
    if takes && !usual.is_empty() {
        let _ = write!(said, "\n.br\nDefault: {}.", text(&usual.join(" ")));
    }
    said
}

/// What the help says at its end: examples as they are, exit codes, and other remarks.
fn after(command: &Command, level: &str) -> String {
    let said = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    said.split("\n\n").filter(|part| !part.trim().is_empty()).map(|part| paragraph(part, level)).collect()
}

fn paragraph(part: &str, level: &str) -> String {
    let (first, rest) = part.split_once('\n').unwrap_or((part, ""));
    let is_page = level == ".SH";
    if matches!(first, "Example:" | "Examples:") {
        let heading = if is_page { ".SH EXAMPLES\n" } else { ".PP\n" };
        let lines: Vec<String> = rest.lines().map(|line| text(line.trim_start())).collect();
        let lines = lines.join("\n");
        return format!("{heading}.RS 4\n.nf\n{lines}\n.fi\n.RE\n");
    }
    match part.strip_prefix("Exit codes: ").filter(|_| is_page) {
        Some(codes) => format!(".SH EXIT STATUS\n{}\n", text(codes)),
        None if is_page => format!(".SH NOTES\n{}\n", text(part)),
        None => format!(".PP\n{}\n", text(part)),
    }
}

/// A text as roff reads it: what stands in backticks is bold, and an empty line begins a paragraph.
fn text(plain: &str) -> String {
    let mut bold = false;
    let mut written = String::new();
    for line in plain.trim().lines() {
        if !written.is_empty() {
            written.push('\n');
        }
        match line.trim() {
            "" => written.push_str(".PP"),
            line => escape(line, &mut bold, &mut written),
        }
    }
    written
}

fn escape(line: &str, bold: &mut bool, written: &mut String) {
    // A line that begins with one of these would be an order to roff.
    if line.starts_with(['.', '\'']) {
        written.push_str("\\&");
    }
    for c in line.chars() {
        match c {
            '`' => {
                *bold = !*bold;
                written.push_str(if *bold { "\\fB" } else { "\\fR" });
            }
            '\\' => written.push_str("\\e"),
            '-' => written.push_str("\\-"),
            '\'' => written.push_str("\\(aq"),
            '^' => written.push_str("\\(ha"),
            '~' => written.push_str("\\(ti"),
            c => written.push(c),
        }
    }
}

fn dashed(name: &str) -> String {
    name.replace('-', "\\-")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::args::Args;

    /// What is typed for every command that people can see.
    fn typed(command: &Command, so_far: &str) -> Vec<String> {
        let below = shown(command).flat_map(|one| typed(one, &format!("{so_far} {}", one.get_name())));
        [so_far.to_owned()].into_iter().chain(below).collect()
    }

    #[test]
    fn every_command_and_every_option_is_in_a_page() {
        let written = pages(Args::command(), "2026-01-02");
        let page = |name: &str| &written.iter().find(|(file, _)| file == name).unwrap().1;
        let all = typed(&Args::command(), "kai");
        assert!(all.len() > 40, "{}", all.len());
        for typed in &all {
            let mut words = typed.split(' ').skip(1);
            let name = words.next().map_or("kai.1".to_owned(), |first| format!("kai-{first}.1"));
            let page = page(&name);
            assert!(page.contains(&dashed(typed)), "{typed} in {name}:\n{page}");
            assert!(!page.contains("__") && !page.contains('`'), "{name}:\n{page}");
        }
        assert!(page("kai.1").contains("\\fB\\-\\-home\\fR \\fIDIR\\fR\n"), "{}", page("kai.1"));
        assert!(page("kai-ask.1").contains("\\fB\\-\\-attach\\fR \\fIFILE\\fR\n"));
        assert!(page("kai-doctor.1").contains(".SH EXIT STATUS\n0 no problems"), "{}", page("kai-doctor.1"));
        assert!(page("kai-open.1").contains("One of: chat, heartbeat"), "{}", page("kai-open.1"));
    }

    #[test]
    fn a_text_gives_roff_no_orders() {
        for (plain, expected) in [
            (".so /etc/passwd", "\\&.so /etc/passwd"),
            ("'quoted'", "\\&\\(aqquoted\\(aq"),
            ("a\\b --c", "a\\eb \\-\\-c"),
            ("from `kai chats list`", "from \\fBkai chats list\\fR"),
            ("one\n\ntwo", "one\n.PP\ntwo"),
        ] {
            assert_eq!(text(plain), expected);
        }
    }
}
