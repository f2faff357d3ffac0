//! What packages are made of: the version, manual pages, the desktop entry, and the script that installs without root.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::kit::{Done, Home};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_version_names_commit_edition_and_engine() {
    let said = Home::new().run(&["--version"]).out;
    let said = said.strip_prefix(concat!("kai ", env!("CARGO_PKG_VERSION"), " (")).unwrap();
    let parts: Vec<&str> = said.strip_suffix(")\n").unwrap().split(", ").collect();
    let edition = if cfg!(feature = "foss") { "foss edition" } else { "store edition" };
    let engine =
        if cfg!(feature = "local") { "with the built-in engine" } else { "without the built-in engine" };
    assert_eq!(parts[parts.len() - 2..], [edition, engine]);
    let git = |words: &[&str]| {
        let done = Command::new("git").arg("-C").arg(root()).args(words).output();
        done.is_ok_and(|done| done.status.success())
    };
    // Not the one that is checked out: somebody may have committed since this was built.
    if git(&["rev-parse", "HEAD"]) && option_env!("KAI_COMMIT").is_none() {
        assert!(
            git(&["cat-file", "-e", &format!("{}^{{commit}}", parts[0])]),
            "a commit of this repository: {parts:?}"
        );
    }
}

#[test]
fn manual_pages_are_written_for_every_command() {
    let folder = Home::new();
    let pages = folder.path().join("man1");
    let mut command = crate::kit::kai(folder.path());
    command.args(["__man", pages.to_str().unwrap()]).env("SOURCE_DATE_EPOCH", "1800000000");
    let done = Done::from(command.output().unwrap());
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    let help = folder.run(&["--help"]).out;
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names: Vec<&str> = commands
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty() && *name != "help")
        .collect();
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        let page = fs::read_to_string(pages.join(format!("kai-{name}.1"))).unwrap();
        assert!(page.starts_with(".TH ") && page.contains("\"2027-01-15\""), "{page}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no home was made");
}

#[test]
fn the_desktop_entry_starts_what_exists() {
    let entry = fs::read_to_string(root().join("packaging/kai.desktop")).unwrap();
    let exec = entry.lines().find_map(|line| line.strip_prefix("Exec=kai ")).unwrap();
    let words: Vec<&str> = exec.split(' ').chain(["--help"]).collect();
    assert_eq!(Home::new().run(&words).code, 0, "{exec}");
}

/// An unpacked archive whose program is a script, and a user who installs it.
struct Archive {
    folder: Home,
}

impl Archive {
    fn with(arch: &str, libc: &str) -> Self {
        let archive = Self { folder: Home::new() };
        archive.pack(arch, libc, &["bin/kai", "share/man/man1/kai.1.gz", "share/doc/kai/LICENSE"]);
        let entry = archive.path("unpacked/files/share/applications/kai.desktop");
        fs::create_dir_all(entry.parent().unwrap()).unwrap();
        fs::copy(root().join("packaging/kai.desktop"), entry).unwrap();
        fs::create_dir(archive.path("home")).unwrap();
        archive
    }

    fn pack(&self, arch: &str, libc: &str, files: &[&str]) {
        let script = fs::read_to_string(root().join("packaging/install.sh")).unwrap();
        let script = script.replace("@VERSION@", "1.2.3").replace("@ARCH@", arch).replace("@LIBC@", libc);
        for file in files {
            let file = self.path("unpacked/files").join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "#!/bin/sh\necho stand-in\n").unwrap();
        }
        fs::write(self.path("unpacked/install.sh"), script).unwrap();
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    fn run(&self, words: &[&str]) -> Done {
        let mut command = Command::new("sh");
        command.arg(self.path("unpacked/install.sh")).args(words).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.path("home"));
        command.output().unwrap().into()
    }

    /// Everything below the user's home.
    fn everything(&self) -> Vec<String> {
        let found = Command::new("find").arg(".").current_dir(self.path("home")).output().unwrap();
        let mut lines: Vec<String> =
            String::from_utf8(found.stdout).unwrap().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }
}

fn refused(done: &Done, word: &str) {
    assert!(done.code == 1 && done.out.is_empty() && done.err.contains(word), "{word:?} in {done:?}");
}

#[test]
fn the_script_removes_exactly_what_it_installed() {
    let archive = Archive::with(std::env::consts::ARCH, "none");
    let data = archive.path("home/.local/share/kai");
    fs::create_dir_all(&data).unwrap();
    fs::write(data.join("kai.db"), "precious").unwrap();
    let before = archive.everything();

    let installed = archive.run(&[]);
    assert!(installed.code == 0 && installed.out.contains("Installed Kai 1.2.3"), "{installed:?}");
    let kai = archive.path("home/.local/bin/kai");
    assert_eq!(fs::metadata(&kai).unwrap().permissions().mode() & 0o777, 0o755);
    let entry = fs::read_to_string(archive.path("home/.local/share/applications/kai.desktop")).unwrap();
    assert!(entry.contains(&format!("\nExec=\"{}\" open --start\n", kai.display())), "{entry}");

    // A newer version has another page and lacks one.
    fs::remove_file(archive.path("unpacked/files/share/man/man1/kai.1.gz")).unwrap();
    archive.pack(std::env::consts::ARCH, "none", &["share/man/man1/kai-ask.1.gz"]);
    assert_eq!(archive.run(&[]).code, 0);
    let man = archive.path("home/.local/share/man/man1");
    assert!(!man.join("kai.1.gz").exists() && man.join("kai-ask.1.gz").exists());

    fs::write(man.join("other.1.gz"), "of another program").unwrap();
    let removed = archive.run(&["--uninstall"]);
    assert!(removed.code == 0 && removed.out.contains("Your data is untouched"), "{removed:?}");
    let left: Vec<String> = archive.everything().into_iter().filter(|path| !before.contains(path)).collect();
    let man = "./.local/share/man";
    assert_eq!(
        left,
        [man, &format!("{man}/man1"), &format!("{man}/man1/other.1.gz")],
        "only what others put there"
    );
    refused(&archive.run(&["--uninstall"]), "is not installed");
}

#[test]
fn the_script_refuses_what_would_not_work() {
    for (arch, libc, words, expected) in [
        ("z80", "none", &[][..], "This package is for z80"),
        (std::env::consts::ARCH, "99.1", &[], "needs glibc 99.1 or newer"),
        (std::env::consts::ARCH, "2.999", &[], "needs glibc 2.999 or newer"),
        (std::env::consts::ARCH, "none", &["--prefix"], "needs a folder"),
        (std::env::consts::ARCH, "none", &["--prefix", "/tmp/a$b"], "cannot have"),
        (std::env::consts::ARCH, "none", &["--frob"], "--frob is unknown"),
    ] {
        let archive = Archive::with(arch, libc);
        refused(&archive.run(words), expected);
        assert_eq!(archive.everything(), ["."], "{expected}");
    }
    let archive = Archive::with(std::env::consts::ARCH, "none");
    fs::create_dir_all(archive.path("home/.local/bin")).unwrap();
    fs::write(archive.path("home/.local/bin/kai"), "mine").unwrap();
    refused(&archive.run(&[]), "did not install it");
    assert_eq!(fs::read_to_string(archive.path("home/.local/bin/kai")).unwrap(), "mine");
}

#[test]
fn the_scripts_parse() {
    for (shell, script) in
        [("bash", "scripts/package"), ("bash", "scripts/try-package"), ("sh", "packaging/install.sh")]
    {
        let parsed = Command::new(shell).arg("-n").arg(root().join(script)).status().unwrap();
        assert!(parsed.success(), "{script}");
    }
}
