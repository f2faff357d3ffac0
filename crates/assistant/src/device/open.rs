//! `open_url`: opens a web page, or a file in a folder that the user allowed, with the machine's default program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kai_words::said;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use super::PortFuture;
use crate::db::Db;
use crate::settings::{self, OPEN_URL_FOLDERS, Values};
use crate::tool::{Lack, Run, Tool, ToolError, ToolOutput};

/// The port that opens pages and files on this machine.
pub trait Opener: Send + Sync {
    fn open<'a>(&'a self, target: &'a Target) -> PortFuture<'a>;

    /// Opens a target because the user just tapped something that Kai showed, such as a notification. `activation` is
    /// the desktop's token that lets the window come to the front, on platforms that have one.
    fn open_for_tap<'a>(&'a self, target: &'a Target, activation: Option<&'a str>) -> PortFuture<'a> {
        let _ = activation;
        self.open(target)
    }
}

/// What can be opened. Neither variant can be mistaken for a command-line option: one starts with `http`, the other
/// with `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An `http` or `https` address.
    Web(String),
    /// An absolute path without symlinks.
    File(PathBuf),
}

/// Open a web page, or a file that Kai may show, on the user's device.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct OpenUrlInput {
    /// The address: http://…, https://…, or file:///… for a file in an allowed folder.
    pub url: String,
}

/// The result of `open_url`.
#[derive(Debug, Serialize)]
pub struct Opened {
    opened: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

pub struct OpenUrl {
    pub opener: Option<Arc<dyn Opener>>,
    pub db: Db,
    /// The folder that is allowed if the user set no others.
    pub files: PathBuf,
}

/// The note for the model if the user's browser may be on another machine, so that nothing is opened here. The web page
/// shows the card for the call; see `web/talk` in the binary.
const CARD: &str = "The user has a card with this address in the chat and opens it with one click.";
/// The longest address, in bytes. Browsers cut longer ones anyway.
const LONGEST: usize = 8_000;

impl Tool for OpenUrl {
    const NAME: &'static str = "open_url";
    type Input = OpenUrlInput;
    type Output = Opened;

    fn lacks(&self) -> Option<Lack> {
        self.opener.is_none().then(|| said::lacks_opener().into())
    }

    async fn run(&self, input: OpenUrlInput, run: &Run) -> Result<ToolOutput<Opened>, ToolError> {
        let opener = self.opener.as_ref().ok_or_else(said::lacks_opener)?;
        let folders = allowed(&self.db.read(settings::load).await?, &self.files);
        let target = understand(&input.url).and_then(|asked| match asked {
            Target::File(path) => inside(&path, &folders).map(Target::File),
            web @ Target::Web(_) => Ok(web),
        });
        let target = target.map_err(ToolError)?;
        let name = match &target {
            Target::Web(url) => url.clone(),
            Target::File(path) => path.display().to_string(),
        };
        if run.elsewhere && matches!(target, Target::Web(_)) {
            return Ok(ToolOutput::own(Opened { opened: name, note: Some(CARD) }));
        }
        let failed = |e| ToolError(format!("{name} could not be opened: {e}."));
        opener.open(&target).await.map_err(failed)?;
        Ok(ToolOutput::own(Opened { opened: name, note: None }))
    }
}

fn allowed(values: &Values, files: &Path) -> Vec<PathBuf> {
    match values.of(&OPEN_URL_FOLDERS).as_str() {
        "" => vec![files.to_owned()],
        named => named.split(':').map(PathBuf::from).collect(),
    }
}

/// Parses an address, and rejects schemes that are never opened. Pure.
fn understand(typed: &str) -> Result<Target, String> {
    let typed = typed.trim();
    if typed.len() > LONGEST {
        return Err(format!("The address is longer than {LONGEST} bytes."));
    }
    let url = Url::parse(typed)
        .map_err(|_| "The address must be complete, such as https://example.org/.".to_owned())?;
    match url.scheme() {
        "http" | "https" => Ok(Target::Web(url.into())),
        "file" => {
            let path = url.to_file_path();
            path.map(Target::File).map_err(|()| "That is not a file on this machine.".to_owned())
        }
        other => Err(format!("Kai opens only http, https and file addresses, not {other}.")),
    }
}

/// The canonical path of a file in one of the allowed folders. A symlink that leads out of them counts as outside. A
/// missing file gets the same error as one outside, so that the tool cannot be used to find out which files exist.
fn inside(path: &Path, folders: &[PathBuf]) -> Result<PathBuf, String> {
    let within = |real: &PathBuf| {
        folders
            .iter()
            .filter_map(|folder| fs::canonicalize(folder).ok())
            .any(|folder| real.starts_with(folder))
    };
    let Some(real) = fs::canonicalize(path).ok().filter(within) else {
        let named = folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ");
        return Err(format!(
            "There is no such file in the folders that Kai can open files from ({named}). The user can allow others: kai \
             settings set open_url_folders FOLDER"
        ));
    };
    let program = |file: &fs::Metadata| file.permissions().mode() & 0o111 != 0;
    match fs::metadata(&real) {
        Ok(file) if !file.is_file() => Err("That is not a file.".to_owned()),
        // Opening one of these could run it.
        Ok(file) if program(&file) || real.extension().is_some_and(|end| end == "desktop") => {
            Err("That file is a program, and Kai does not open programs.".to_owned())
        }
        Ok(_) => Ok(real),
        Err(error) => Err(format!("The file cannot be read: {error}.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_and_files_are_understood() {
        let web = |url: &str| Some(Target::Web(url.to_owned()));
        let file = |path: &str| Some(Target::File(PathBuf::from(path)));
        for (typed, expected) in [
            ("https://example.org/a?b=c#d", web("https://example.org/a?b=c#d")),
            ("  HTTP://Example.org ", web("http://example.org/")),
            ("https://example.org/a b\n\t", web("https://example.org/a%20b")),
            ("file:///srv/a%20b.html", file("/srv/a b.html")),
            ("file://localhost/srv/a", file("/srv/a")),
            ("file:///srv/files/../kai.key", file("/srv/kai.key")),
            ("file:///srv/files/%2e%2e/kai.key", file("/srv/kai.key")),
            ("file://elsewhere/srv/a", None),
            ("tel:+15550100", None),
            ("sms:+15550100?body=hi", None),
            ("mailto:a@example.org", None),
            ("intent://x#Intent;scheme=http;end", None),
            ("javascript:alert(1)", None),
            ("java\nscript:alert(1)", None),
            ("data:text/html,<b>hi</b>", None),
            ("content://x/y", None),
            ("ftp://example.org/", None),
            ("view-source:https://example.org", None),
            ("example.org", None),
            ("/etc/passwd", None),
            ("--help", None),
            ("https://", None),
            ("", None),
        ] {
            assert_eq!(understand(typed).ok(), expected, "{typed:?}");
        }
        assert!(understand(&format!("https://example.org/{}", "a".repeat(LONGEST))).is_err());
        assert_eq!(
            understand("tel:1").unwrap_err(),
            "Kai opens only http, https and file addresses, not tel."
        );
    }

    #[test]
    fn a_file_is_opened_only_where_it_really_lies_inside() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        fs::create_dir_all(at("files/deep")).unwrap();
        fs::create_dir_all(at("files-of-others")).unwrap();
        for file in [
            "kai.key",
            "files/a.ics",
            "files/deep/b.txt",
            "files/run",
            "files/x.desktop",
            "files-of-others/c",
        ] {
            fs::write(at(file), "x").unwrap();
        }
        fs::set_permissions(at("files/run"), fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(at("kai.key"), at("files/innocent.txt")).unwrap();
        std::os::unix::fs::symlink(home.path(), at("files/up")).unwrap();
        std::os::unix::fs::symlink(at("files/a.ics"), at("files/same.ics")).unwrap();
        let folders = [at("files"), at("not there")];
        for (name, expected) in [
            ("files/a.ics", Some("files/a.ics")),
            ("files/deep/b.txt", Some("files/deep/b.txt")),
            ("files/deep/../a.ics", Some("files/a.ics")),
            ("files/same.ics", Some("files/a.ics")),
            ("files/../kai.key", None),
            ("kai.key", None),
            ("files/innocent.txt", None),
            ("files/up/kai.key", None),
            ("files-of-others/c", None),
            ("files/nothing", None),
            ("files/deep", None),
            ("files", None),
            ("files/run", None),
            ("files/x.desktop", None),
        ] {
            let expected = expected.map(|name| fs::canonicalize(at(name)).unwrap());
            assert_eq!(inside(&at(name), &folders).ok(), expected, "{name}");
        }
    }
}
