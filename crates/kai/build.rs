//! Writes what `kai --version` says, and has the linker write the program's relocations in their short form where the
//! loader of this system reads it. That is a megabyte less of file, and of memory at rest.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The first glibc that reads short relocations, of 2022.
const READS_IT: (u32, u32) = (2, 36);

/// How many digits of a commit are shown.
const SHORT: usize = 8;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=KAI_COMMIT");
    println!("cargo::rustc-env=KAI_VERSION={}", version());
    // Built for another machine, nobody can ask that one.
    let is_for_here = env::var("HOST") == env::var("TARGET");
    if is_for_here && glibc().is_some_and(|version| version >= READS_IT) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version, the commit if it is known, the edition, and whether the engine is in. Nothing of it depends on the time
/// or the place of the build.
fn version() -> String {
    let has = |feature: &str| env::var_os(format!("CARGO_FEATURE_{feature}")).is_some();
    let parts = [
        commit(),
        Some(if has("FOSS") { "foss edition" } else { "store edition" }.to_owned()),
        Some(if has("LOCAL") { "with" } else { "without" }.to_owned() + " the built-in engine"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("{} ({})", env::var("CARGO_PKG_VERSION").unwrap_or_default(), parts.join(", "))
}

/// The first digits of the commit: of `KAI_COMMIT`, for sources that came without their history, or of the history.
fn commit() -> Option<String> {
    let named = env::var("KAI_COMMIT").ok().filter(|named| !named.is_empty());
    let whole = named.or_else(|| {
        let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?).join("../..");
        head(&root)
    })?;
    let is_commit = whole.len() >= SHORT - 1 && whole.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_commit.then(|| whole.chars().take(SHORT).collect())
}

/// The commit that is checked out, read from git's own files: git may be missing, or refuse a folder of another user.
fn head(root: &Path) -> Option<String> {
    let git = git_folder(&root.join(".git"))?;
    let common = fs::read_to_string(git.join("commondir")).map_or(git.clone(), |to| git.join(to.trim()));
    // Each commit and each checkout adds a line to the log. Where none is kept, the files that name the commit change.
    for file in [git.join("HEAD"), git.join("logs/HEAD")] {
        watch(&file);
    }
    let head = read(&git.join("HEAD"))?;
    let Some(reference) = head.strip_prefix("ref: ") else { return Some(head) };
    let loose = common.join(reference);
    let packed = common.join("packed-refs");
    watch(&loose);
    watch(&packed);
    read(&loose).or_else(|| {
        let packed = fs::read_to_string(packed).ok()?;
        let of = |line: &str| Some(line.strip_suffix(reference)?.strip_suffix(' ')?.to_owned());
        packed.lines().find_map(of)
    })
}

/// Git's folder: `.git` itself, or the one that it names in a worktree.
fn git_folder(git: &Path) -> Option<PathBuf> {
    if git.is_dir() {
        return Some(git.to_owned());
    }
    let named = read(git)?;
    Some(git.parent()?.join(named.strip_prefix("gitdir: ")?))
}

/// Builds again when the file changes. A file that does not exist would count as changed at every build.
fn watch(file: &Path) {
    if file.exists() {
        println!("cargo::rerun-if-changed={}", file.display());
    }
}

fn read(file: &Path) -> Option<String> {
    Some(fs::read_to_string(file).ok()?.trim().to_owned())
}

/// `None` where the C library is another.
fn glibc() -> Option<(u32, u32)> {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    let (major, minor) = said.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
