//! Reads the files that are attached to a message on the terminal.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use kai_assistant::attachments::{LARGEST, MOST, Refused};

use crate::call::chats::AskFile;
use crate::failure::{self, Failure};
use crate::terminal::out;

/// Reads a file, up to one byte more than Kai accepts, so that a larger one is refused by whoever answers.
pub(super) fn read(path: &Path) -> Result<AskFile, Failure> {
    let failed = |why: std::io::Error| Failure::failed(failure::unread(path, &why));
    let file = File::open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(Failure::failed(format!(
            "{} is not a file. Attach a picture or a text file.",
            path.display()
        )));
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(LARGEST + 1).unwrap_or(u64::MAX);
    file.take(most).read_to_end(&mut bytes).map_err(failed)?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(AskFile { name, bytes })
}

/// The path in `/attach PATH`.
pub(super) fn named(typed: &str) -> Option<&str> {
    let rest = typed.strip_prefix("/attach")?;
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| rest.trim())
}

/// Adds a file to those of the next message, and says so.
pub(super) fn add(files: &mut Vec<AskFile>, path: Option<&str>) {
    let Some(path) = path.filter(|path| !path.is_empty()) else {
        return out::complain("Type the file's path after the command, for example: /attach photo.jpg");
    };
    if files.len() >= MOST {
        return out::complain(&Refused::TooMany.said().to_string());
    }
    match read(Path::new(path)) {
        Ok(file) => {
            out::note(&format!("Attached {} to your next message.", out::visible(&file.name)));
            files.push(file);
        }
        Err(failure) => out::complain(&failure.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_takes_a_path_with_spaces() {
        for (typed, expected) in [
            ("/attach cat.jpg", Some("cat.jpg")),
            ("/attach  my cat.jpg ", Some("my cat.jpg")),
            ("/attach", Some("")),
            ("/attached", None),
            ("attach cat.jpg", None),
        ] {
            assert_eq!(named(typed), expected, "{typed}");
        }
    }

    #[test]
    fn what_cannot_be_read_gets_a_sentence() {
        let folder = tempfile::tempdir().unwrap();
        let large = folder.path().join("large.bin");
        File::create(&large).unwrap().set_len(u64::try_from(LARGEST).unwrap() + 100).unwrap();
        assert_eq!(read(&large).unwrap().bytes.len(), LARGEST + 1);
        assert!(read(folder.path()).unwrap_err().to_string().contains("is not a file"));
        let gone = read(&folder.path().join("gone")).unwrap_err().to_string();
        assert!(gone.starts_with("There is no file ") && gone.ends_with("gone."), "{gone}");
    }
}
