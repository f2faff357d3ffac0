//! Kai on Android. Built in Termux it is a program for Android; the static build is one for Linux that also runs there,
//! where names, the time zone and the sandbox are not where Linux has them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kai_assistant::clock::find_zone_by;
use kai_llm::names::{self, Own};

/// Prints a property of the system. Only Android has it.
const GETPROP: &str = "/system/bin/getprop";
/// Where Termux keeps its files if the environment does not say.
const PREFIX: &str = "/data/data/com.termux/files/usr";

/// Whether this machine runs Android. A static build learns it only now.
pub(crate) fn is_here() -> bool {
    cfg!(target_os = "android") || found(cfg!(target_env = "musl"), Path::new(GETPROP))
}

/// A build for glibc runs on Linux whatever it finds: a Linux phone may carry Android's files beside its own, and there the
/// sandbox stays on.
fn found(is_static: bool, getprop: &Path) -> bool {
    is_static && getprop.exists()
}

/// Prepares this process for a system that is not the one it was built for. Does nothing in builds that use the system's
/// own C library, which knows where everything is.
pub(crate) fn settle_in() {
    if cfg!(target_env = "musl") {
        names::look_up_by(Own::below(&prefix(std::env::var_os("PREFIX").map(PathBuf::from))));
        find_zone_by(|| zone(Path::new(GETPROP)));
    }
}

fn prefix(named: Option<PathBuf>) -> PathBuf {
    named.filter(|path| path.is_absolute()).unwrap_or_else(|| PREFIX.into())
}

/// The name of the phone's time zone.
fn zone(getprop: &Path) -> Option<String> {
    let mut asking = Command::new(getprop);
    asking.arg("persist.sys.timezone").stdin(Stdio::null()).stderr(Stdio::null());
    let printed = asking.output().ok().filter(|printed| printed.status.success())?;
    String::from_utf8(printed.stdout).ok().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_zone_is_what_the_system_prints() {
        let folder = tempfile::tempdir().unwrap();
        let getprop = folder.path().join("getprop");
        assert_eq!(zone(&getprop), None, "there is no such program");
        for (does, expected) in [
            ("echo Europe/Berlin # $1", Some("Europe/Berlin")),
            ("test \"$1\" = persist.sys.timezone && echo Asia/Tokyo", Some("Asia/Tokyo")),
            ("echo", None),
            ("echo Asia/Tokyo; exit 1", None),
        ] {
            fs::write(&getprop, format!("#!/bin/sh\n{does}\n")).unwrap();
            fs::set_permissions(&getprop, fs::Permissions::from_mode(0o700)).unwrap();
            assert_eq!(zone(&getprop).as_deref(), expected, "{does}");
        }
    }

    #[test]
    fn only_a_static_build_takes_a_file_for_a_sign_of_android() {
        let folder = tempfile::tempdir().unwrap();
        let getprop = folder.path().join("getprop");
        assert!(!found(true, &getprop), "nothing is there");
        fs::write(&getprop, "").unwrap();
        assert!(found(true, &getprop));
        assert!(!found(false, &getprop), "this one is linked against glibc, which Android lacks");
    }

    #[test]
    fn the_prefix_is_where_termux_says_or_usually_is() {
        assert_eq!(prefix(Some("/somewhere/usr".into())), Path::new("/somewhere/usr"));
        assert_eq!(prefix(Some("usr".into())), Path::new(PREFIX));
        assert_eq!(prefix(None), Path::new(PREFIX));
    }
}
