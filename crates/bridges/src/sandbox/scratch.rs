//! The only folder that a command in the built-in sandbox can write to. It is deleted when the command ends.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(super) struct Scratch(pub(super) PathBuf);

/// How many names are tried. Some may be taken, by leftovers or by someone who wants to interfere.
const TRIES: u32 = 1_000;

impl Scratch {
    /// Creates a folder that only its owner can access.
    pub(super) fn within(folder: &Path) -> io::Result<Self> {
        let name = |n| folder.join(format!("kai-shell-{}-{n}", std::process::id()));
        for path in (0..TRIES).map(name) {
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map(|()| Self(path)),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if fs::remove_dir_all(&self.0).is_ok() {
            return;
        }
        // It was nested too deeply, or the command removed permissions from a folder inside.
        let swept = "chmod -R u+rwx -- \"$0\"; rm -rf -- \"$0\"";
        let mut sweep = Command::new(super::system::SHELL);
        sweep.args(["-c", swept]).arg(&self.0).env_clear().env("PATH", super::system::PATH);
        drop(sweep.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status());
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn it_is_private_and_goes_with_all_that_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) =
            (Scratch::within(folder.path()).unwrap(), Scratch::within(folder.path()).unwrap());
        assert_ne!(first.0, second.0);
        assert_eq!(fs::metadata(&first.0).unwrap().permissions().mode() & 0o777, 0o700);
        let deep = first.0.join("d/".repeat(400));
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("file"), "x").unwrap();
        fs::set_permissions(first.0.join("d"), Permissions::from_mode(0o000)).unwrap();
        std::os::unix::fs::symlink("/", first.0.join("up")).unwrap();
        drop((first, second));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(Scratch::within(&folder.path().join("none")).is_err());
    }
}
