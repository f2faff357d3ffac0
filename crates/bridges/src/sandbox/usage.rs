//! Measures what a command and everything it started use, from `/proc`.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::statvfs;
use rustix::process::{getpid, getuid};

use super::limits::{FILES, MEMORY, PROCESSES, SCRATCH};

/// Where the command writes its files.
pub(super) enum Written {
    Folder(PathBuf),
    /// An in-memory file system that only the command sees, by its path there.
    Inside(&'static Path),
}

const MB: u64 = 1024 * 1024;

/// Which limit our descendants exceed, if any, as the rest of a sentence.
pub(super) fn too_much(processes: &[Process], written: &Written) -> Option<String> {
    let all = descendants(processes, getpid().as_raw_pid());
    if all.len() > PROCESSES {
        return Some(format!("it started more than {PROCESSES} processes"));
    }
    if all.iter().filter_map(|pid| memory(*pid)).sum::<u64>() > MEMORY {
        return Some(format!("it used more than {} MB of memory", MEMORY / MB));
    }
    let (bytes, files) = match written {
        Written::Folder(folder) => {
            let (bytes, files) = held(folder);
            (bytes + deleted(&all), files)
        }
        Written::Inside(path) => all.iter().find_map(|pid| inside(*pid, path)).unwrap_or_default(),
    };
    if files > FILES {
        return Some(format!("it wrote more than {FILES} files"));
    }
    (bytes > SCRATCH).then(|| format!("it wrote more than {} MB", SCRATCH / MB))
}

/// Number of processes and threads of our user, which is what the kernel compares with its limit.
pub(super) fn tasks_of_this_user() -> u64 {
    let me = getuid().as_raw();
    let threads = |pid: i32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        (number(&status, "Uid:")? == u64::from(me)).then(|| number(&status, "Threads:")).flatten()
    };
    pids().filter_map(threads).sum()
}

fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// One entry of the process table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    /// It has ended but its parent has not reaped it yet.
    pub(super) dead: bool,
}

/// All processes at the moment.
pub(super) fn processes() -> Vec<Process> {
    let process = |pid: i32| process(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?);
    pids().filter_map(process).collect()
}

/// Parses `/proc/{pid}/stat`. The program's name, in parentheses, may itself contain parentheses and spaces.
fn process(pid: i32, stat: &str) -> Option<Process> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let (state, parent) = (fields.next()?, fields.next()?);
    Some(Process { pid, parent: parent.parse().ok()?, dead: matches!(state, "Z" | "X") })
}

/// All living descendants of a process.
fn descendants(all: &[Process], of: i32) -> Vec<i32> {
    let (mut found, mut at) = (vec![of], 0);
    while let Some(parent) = found.get(at).copied() {
        let children = all.iter().filter(|it| it.parent == parent && !it.dead && !found.contains(&it.pid));
        let children: Vec<i32> = children.map(|it| it.pid).collect();
        found.extend(children);
        at += 1;
    }
    found.split_off(1)
}

/// Bytes that ending the process would free. Pages backed by files do not count, because the kernel can drop them.
fn memory(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kilobytes = ["RssAnon:", "RssShmem:", "VmSwap:"].iter().filter_map(|name| number(&status, name));
    Some(kilobytes.sum::<u64>() * 1024)
}

fn number(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Size and number of the files below a folder. Stops counting once there are too many.
fn held(folder: &Path) -> (u64, u64) {
    let (mut bytes, mut files, mut folders) = (0, 0, vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            // The entry's own metadata; links are not followed.
            let Ok(meta) = entry.metadata() else { continue };
            bytes += meta.blocks() * 512;
            files += 1;
            if files > FILES {
                return (bytes, files);
            }
            if meta.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    (bytes, files)
}

/// Total size of deleted files that a process still holds open.
fn deleted(pids: &[i32]) -> u64 {
    let open =
        pids.iter().flat_map(|pid| fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten());
    let files = open.filter_map(|entry| fs::metadata(entry.path()).ok());
    let mut seen = HashSet::new();
    let nameless =
        files.filter(|file| file.is_file() && file.nlink() == 0 && seen.insert((file.dev(), file.ino())));
    nameless.map(|file| file.blocks() * 512).sum()
}

/// Bytes and files used on the file system at `path` as the process sees it, if it has its own root.
fn inside(pid: i32, path: &Path) -> Option<(u64, u64)> {
    let root = PathBuf::from(format!("/proc/{pid}/root"));
    let ours = fs::metadata("/").ok()?;
    let theirs = fs::metadata(&root).ok()?;
    let disk = statvfs(root.join(path.strip_prefix("/").ok()?)).ok()?;
    let foreign = (ours.dev(), ours.ino()) != (theirs.dev(), theirs.ino());
    foreign.then(|| ((disk.f_blocks - disk.f_bfree) * disk.f_frsize, disk.f_files - disk.f_ffree))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_parent_is_found_behind_any_name() {
        for (stat, expected) in [
            ("7 (sh) S 3 7 7 0", Some((3, false))),
            ("7 (a) S 9) R 4 1 1", Some((4, false))),
            ("7 (a b (c)) Z 5", Some((5, true))),
            ("7 (sh", None),
            ("", None),
        ] {
            let read = process(7, stat).map(|it| (it.parent, it.dead));
            assert_eq!(read, expected, "{stat}");
        }
    }

    #[test]
    fn descendants_are_found_across_generations_and_loops_end() {
        let table = [(1, 0), (2, 1), (3, 2), (4, 2), (5, 4), (6, 1), (7, 7), (0, 0)];
        let mut all = table.map(|(pid, parent)| Process { pid, parent, dead: false });
        assert_eq!(descendants(&all, 2), [3, 4, 5]);
        assert_eq!(descendants(&all, 5), Vec::<i32>::new());
        assert_eq!(descendants(&all, 7), Vec::<i32>::new());
        assert_eq!(descendants(&all, 0).len(), 6);
        all[4].dead = true;
        assert_eq!(descendants(&all, 2), [3, 4]);
    }

    #[test]
    fn what_a_real_process_holds_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("d")).unwrap();
        fs::write(folder.path().join("d/file"), vec![1; 1_000_000]).unwrap();
        std::os::unix::fs::symlink("/usr", folder.path().join("link")).unwrap();
        let (bytes, files) = held(folder.path());
        assert!((1_000_000..1_200_000).contains(&bytes) && files == 3, "{bytes} {files}");

        // The shell itself waits: a process that is just becoming another program holds nothing for a moment.
        let script = "exec 3<>gone; rm gone; head -c 500000 /dev/zero >&3; echo; read end";
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = [0; 1];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let all = descendants(&processes(), getpid().as_raw_pid());
        assert!(all.contains(&pid), "{all:?}");
        assert!((500_000..600_000).contains(&deleted(&[pid])), "{}", deleted(&[pid]));
        assert!(memory(pid).unwrap() > 10_000);
        assert_eq!(inside(pid, Path::new("/tmp")), None, "it sees what we see");
        assert!(tasks_of_this_user() > 1);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
