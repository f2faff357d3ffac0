//! Takes away this process's rights, except for reading one file: no other file, no network, no other program. For the
//! engine of a model, which reads files that strangers made.

use std::collections::BTreeMap;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, Scope, path_beneath_rules,
};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter};

use super::calls::{self, Strictness};

/// The newest Landlock version that was reviewed.
const NEWEST: ABI = ABI::V9;

/// Confines this thread, and those that it starts, to reading `file`. A kernel without Landlock still refuses the
/// network and other programs.
pub fn only_reads(file: &Path) -> Result<(), String> {
    only_this_file(file).map_err(|error| format!("Landlock: {error}"))?;
    calls::refuse(Some(Strictness { signals_are_kept_in: false, sees_a_folder: true }))?;
    starts_nothing()
}

fn only_this_file(file: &Path) -> Result<(), RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        .add_rules(path_beneath_rules([file], AccessFs::from_read(NEWEST)))?
        .restrict_self()
        .map(drop)
}

fn starts_nothing() -> Result<(), String> {
    let calls = [libc::SYS_execve, libc::SYS_execveat].map(|call| (call, vec![]));
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| error.to_string())?;
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(BTreeMap::from(calls), SeccompAction::Allow, refused, arch);
    let program: BpfProgram =
        filter.and_then(TryInto::try_into).map_err(|error: seccompiler::BackendError| error.to_string())?;
    apply_filter(&program).map_err(|error| format!("seccomp: {error}"))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::net::TcpListener;
    use std::process::Command;
    use std::thread;

    use super::*;

    #[test]
    fn one_file_can_be_read_and_nothing_else_can_be_done() {
        let folder = tempfile::tempdir().unwrap();
        let (model, other) = (folder.path().join("model.gguf"), folder.path().join("secret"));
        fs::write(&model, "weights").unwrap();
        fs::write(&other, "secret").unwrap();
        // In a thread of its own: rights do not come back.
        let tried = thread::spawn(move || {
            only_reads(&model).unwrap();
            [
                fs::read_to_string(&model).is_ok_and(|read| read == "weights"),
                fs::read_to_string(&other).is_err(),
                File::options().append(true).open(&model).is_err(),
                fs::write(other.with_extension("new"), "x").is_err(),
                TcpListener::bind("127.0.0.1:0").is_err(),
                Command::new("/bin/true").status().is_err(),
                // Threads can still be started: the engine needs them.
                thread::spawn(|| 1).join().is_ok(),
            ]
        });
        assert_eq!(tried.join().unwrap(), [true; 7]);
    }
}
