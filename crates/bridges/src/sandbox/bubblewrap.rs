//! The arguments that make bubblewrap isolate a command. Pure.
//!
//! The command sees only what is listed here: no home, no `/run`, no sockets, no network, no other processes. Its
//! scratch folder is a size-limited in-memory file system at `/tmp`; everything else is read-only.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{Order, environment, limits, system};

/// The scratch folder inside the sandbox.
pub(super) const TMP: &str = "/tmp";

/// How a folder of programs exists on this system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ProgramDir {
    Folder(&'static str),
    /// A symbolic link and its target.
    Link(&'static str, PathBuf),
}

/// The arguments for one command. `calls` is the file descriptor of the seccomp filter.
pub(super) fn arguments(order: &Order, programs: &[ProgramDir], calls: i32) -> Vec<OsString> {
    let mut all = Arguments::default();
    all.add(["--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]);
    all.add(["--hostname", "sandbox", "--cap-drop", "ALL", "--seccomp", &calls.to_string()]);
    for lies in programs {
        match lies {
            ProgramDir::Folder(path) => all.add(["--ro-bind", path, path]),
            ProgramDir::Link(path, to) => all.add([OsString::from("--symlink"), to.into(), path.into()]),
        }
    }
    for path in system::SETTINGS {
        all.add(["--ro-bind-try", path, path]);
    }
    all.add(["--proc", "/proc", "--dev", "/dev"]);
    all.add(["--size", &limits::SCRATCH.to_string(), "--tmpfs", TMP]);
    if let Some(folder) = &order.folder {
        all.add([OsString::from("--ro-bind"), folder.into(), folder.into()]);
    }
    all.add(["--remount-ro", "/dev", "--remount-ro", "/"]);
    for (name, value) in environment(order, Path::new(TMP)) {
        all.add(["--setenv", name, value]);
    }
    let begin = order.folder.as_deref().unwrap_or(Path::new(TMP));
    all.add([OsString::from("--chdir"), begin.into()]);
    all.add(["--", system::SHELL, "-c", &order.command]);
    all.0
}

#[derive(Default)]
struct Arguments(Vec<OsString>);

impl Arguments {
    fn add<T: Into<OsString>, const N: usize>(&mut self, more: [T; N]) {
        self.0.extend(more.map(Into::into));
    }
}

/// Finds out which folders of programs exist here, and which are links.
pub(super) fn programs() -> Vec<ProgramDir> {
    let lies = |path: &&'static str| match std::fs::read_link(path) {
        Ok(to) => Some(ProgramDir::Link(path, to)),
        Err(_) => Path::new(path).is_dir().then_some(ProgramDir::Folder(path)),
    };
    system::PROGRAMS.iter().filter_map(lies).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::super::Way;
    use super::*;

    #[test]
    fn the_command_stands_last_and_whole_and_nothing_it_holds_is_an_option() {
        let order = Order {
            way: Way::BuiltIn,
            command: "--share-net\n--bind / /".to_owned(),
            env: BTreeMap::from([
                ("LD_PRELOAD".to_owned(), "--share-net".to_owned()),
                ("HOME".to_owned(), "/x".to_owned()),
            ]),
            folder: Some(PathBuf::from("/srv/a b")),
            scratch: PathBuf::new(),
            patience: Duration::ZERO,
        };
        let programs = [ProgramDir::Folder("/usr"), ProgramDir::Link("/bin", PathBuf::from("usr/bin"))];
        let all = arguments(&order, &programs, 9);
        let all: Vec<&str> = all.iter().map(|argument| argument.to_str().unwrap()).collect();
        let (end, before) =
            (all.len() - 4, |words: &[&str]| all.windows(words.len()).position(|w| w == words));
        assert_eq!(all[end..], ["--", "/bin/sh", "-c", "--share-net\n--bind / /"]);
        for words in [
            &["--unshare-all", "--die-with-parent"][..],
            &["--seccomp", "9"],
            &["--ro-bind", "/usr", "/usr"],
            &["--symlink", "usr/bin", "/bin"],
            &["--ro-bind", "/srv/a b", "/srv/a b"],
            &["--setenv", "LD_PRELOAD", "--share-net"],
            &["--setenv", "HOME", "/x"],
            &["--chdir", "/srv/a b"],
        ] {
            assert!(before(words).is_some_and(|at| at < end), "{words:?} in {all:?}");
        }
        let allowed = |word: &&&str| word.starts_with("--bind") || word.starts_with("--dev-bind");
        assert_eq!(all[..end].iter().filter(allowed).count(), 0, "nothing of the machine can be written");
        assert!(before(&["--remount-ro", "/"]) > before(&["--ro-bind", "/srv/a b", "/srv/a b"]));
        assert_eq!(all[..end].iter().filter(|word| **word == "--share-net").count(), 1, "only as a value");
    }
}
