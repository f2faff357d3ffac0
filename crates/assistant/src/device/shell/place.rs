//! Decides which of the user's folders a command may read.

use std::fs;
use std::path::{Path, PathBuf};

/// Devices, processes and sockets: they are not the user's files, and they offer a way out of a sandbox.
const NEVER: [&str; 4] = ["/dev", "/proc", "/run", "/sys"];

/// The canonical path of the requested folder, if it is in one of the folders that the user allowed (`folders`, as in
/// the setting) and neither inside Kai's home nor a parent of it. A missing folder gets the same error as one that is
/// not allowed, so that the tool cannot be used to find out what exists.
pub(super) fn allowed(asked: &str, folders: &str, home: &Path) -> Result<PathBuf, String> {
    let within = |real: &PathBuf| {
        let mut folders = folders.split(':').filter_map(|folder| fs::canonicalize(folder).ok());
        real.is_dir() && folders.any(|folder| real.starts_with(folder))
    };
    let real = Some(asked).filter(|asked| asked.starts_with('/'));
    let Some(real) = real.and_then(|asked| fs::canonicalize(asked).ok()).filter(within) else {
        let named = if folders.is_empty() { "none so far" } else { folders };
        return Err(format!(
            "The working_dir must be a folder that the user allowed ({named}). Leave it out to run in an empty scratch \
             folder. The user can allow others: kai settings set shell_folders FOLDER"
        ));
    };
    if real.starts_with(home) || home.starts_with(&real) {
        return Err("Kai's own home is there, and no command can see it. Choose another folder.".to_owned());
    }
    if NEVER.iter().any(|never| real.starts_with(never)) || real.as_path() == Path::new("/") {
        return Err("No command can see that folder.".to_owned());
    }
    Ok(real)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_what_really_lies_in_an_allowed_folder_and_never_the_home() {
        let scratch = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(scratch.path()).unwrap();
        let at = |name: &str| root.join(name).display().to_string();
        for folder in ["mine/project", "mine/kai/files", "mine/other", "theirs"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("mine/file"), "x").unwrap();
        symlink(root.join("theirs"), root.join("mine/out")).unwrap();
        symlink(root.join("mine/kai"), root.join("mine/innocent")).unwrap();
        symlink(root.join("mine/project"), root.join("mine/same")).unwrap();
        let home = root.join("mine/kai");
        let folders = format!("{}:{}", at("nothing"), at("mine"));
        for (asked, expected) in [
            (at("mine/project"), Ok("mine/project")),
            (at("mine/same"), Ok("mine/project")),
            (at("mine/project/../other"), Ok("mine/other")),
            (at("mine"), Err("Kai's own home")),
            (at("mine/kai"), Err("Kai's own home")),
            (at("mine/kai/files"), Err("Kai's own home")),
            (at("mine/innocent"), Err("Kai's own home")),
            (at("mine/out"), Err("that the user allowed")),
            (at("mine/file"), Err("that the user allowed")),
            (at("mine/nothing"), Err("that the user allowed")),
            (at("theirs"), Err("that the user allowed")),
            ("/".to_owned(), Err("that the user allowed")),
            ("mine".to_owned(), Err("that the user allowed")),
            ("~".to_owned(), Err("that the user allowed")),
        ] {
            match (allowed(&asked, &folders, &home), expected) {
                (Ok(real), Ok(name)) => assert_eq!(real, root.join(name), "{asked}"),
                (Err(said), Err(word)) => assert!(said.contains(word), "{asked}: {said}"),
                (got, expected) => panic!("{asked}: {got:?}, not {expected:?}"),
            }
        }
        let everything = |asked: &str| allowed(asked, "/", &home);
        for never in ["/", "/proc", "/proc/self", "/dev", "/sys", "/run"] {
            assert!(everything(never).is_err(), "{never}");
        }
        assert!(everything("/usr").is_ok());
        let none = allowed(&at("mine/project"), "", &home).unwrap_err();
        assert!(none.contains("(none so far)"), "{none}");
    }
}
