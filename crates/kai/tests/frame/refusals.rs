//! A store that cannot be opened: one sentence, exit code 3, and the file as it was.

use std::path::Path;
use std::process::Command;

use crate::kit::{Done, Home, KAI};

fn prepared() -> Home {
    let home = Home::new();
    home.remember("a");
    home
}

/// Every way to come to the store gives the same sentence, and none changes a byte.
fn refused_everywhere(home: &Home, word: &str) {
    let before = std::fs::read(home.path().join("kai.db")).unwrap();
    for command in [
        &["memory", "list"][..],
        &["status"],
        &["serve", "--port", "0"],
        &["settings", "set", "theme", "dark"],
    ] {
        home.run(command).refused(3, word);
    }
    let after = std::fs::read(home.path().join("kai.db")).unwrap();
    assert!(before == after, "a refused store was changed");
}

#[test]
fn a_store_that_is_damaged_or_on_a_bad_disk_is_refused_and_left_alone() {
    a_store_that_is_damaged_is_refused();
    a_read_only_disk_is_said();
    a_full_disk_is_said_when_opening_and_when_writing();
}

fn a_store_that_is_damaged_is_refused() {
    let home = prepared();
    std::fs::write(home.path().join("kai.db"), vec![7; 30_000]).unwrap();
    refused_everywhere(&home, "is damaged");
}

/// Runs a script in a mount namespace of its own, where a disk can be small or read-only. `None` where this
/// machine does not allow namespaces.
fn in_namespace(script: &str, home: &Path) -> Option<Done> {
    let as_root = if rustix::process::geteuid().is_root() { "-m" } else { "-rm" };
    let allowed =
        Command::new("unshare").args([as_root, "true"]).status().is_ok_and(|status| status.success());
    if !allowed {
        return None;
    }
    let mut command = Command::new("unshare");
    command.args([as_root, "sh", "-euc", script]).env("KAI", KAI).env("H", home).env("KAI_HOME", home);
    Some(command.output().unwrap().into())
}

fn a_read_only_disk_is_said() {
    let home = prepared();
    let before = std::fs::read(home.path().join("kai.db")).unwrap();
    let script = r#"mount --bind "$H" "$H"; mount -o remount,ro,bind "$H"; exec "$KAI" memory list"#;
    let Some(done) = in_namespace(script, home.path()) else {
        return skipped("a read-only disk needs a mount namespace, which this machine does not allow");
    };
    done.refused(3, "cannot write to the folder");
    let after = std::fs::read(home.path().join("kai.db")).unwrap();
    assert!(before == after, "a store on a read-only disk was changed");
}

fn a_full_disk_is_said_when_opening_and_when_writing() {
    let home = prepared();
    // A disk of 600 KiB with the store on it, filled to the last byte.
    let full = r#"
        disk="$H/disk"; mkdir "$disk"; mount -t tmpfs -o size=600k tmpfs "$disk"
        cp "$H/kai.db" "$H/kai.key" "$disk/"; export KAI_HOME="$disk"
        fill() { cat /dev/zero > "$disk/filler" 2> /dev/null || true; }
    "#;
    let opening = format!(
        "{full} fill; sum=$(sha256sum < \"$disk/kai.db\"); \"$KAI\" memory list && code=0 || code=$?; \
        [ \"$sum\" = \"$(sha256sum < \"$disk/kai.db\")\" ] || exit 99; exit $code"
    );
    let Some(done) = in_namespace(&opening, home.path()) else {
        return skipped("a full disk needs a mount namespace, which this machine does not allow");
    };
    done.refused(3, "is full");

    std::fs::remove_dir(home.path().join("disk")).unwrap();
    let fresh = format!("{full} rm \"$disk/kai.db\" \"$disk/kai.key\"; fill; exec \"$KAI\" memory list");
    let done = in_namespace(&fresh, home.path()).unwrap();
    assert_eq!(done.code, 3, "{done:?}");

    std::fs::remove_dir(home.path().join("disk")).unwrap();
    // The daemon has the store open; then the disk fills up.
    let writing = format!(
        "{full} \"$KAI\" serve --port 0 > \"$H/line\" 2> \"$H/log\" & pid=$!; \
         until grep -q Open \"$H/line\"; do sleep 0.05; done; export KAI_HOME=\"$H/disk\"; disk=\"$H/disk\"; \
         fill() {{ cat /dev/zero > \"$disk/filler\" 2> /dev/null || true; }}; fill; \
         \"$KAI\" tools call memory_store '{{\"key\": \"big\", \"content\": \"x\"}}' && code=0 || code=$?; \
         rm \"$disk/filler\"; \"$KAI\" memory list; kill $pid; wait $pid; exit $code"
    );
    let done = in_namespace(&writing, home.path()).unwrap();
    assert!(done.out.contains("The disk is full, so nothing was changed"), "{done:?}");
    assert!(done.out.contains("a  b") && !done.out.contains("big"), "what was there is there: {done:?}");
}

pub(crate) fn skipped(why: &str) {
    use std::io::Write;
    drop(writeln!(std::io::stderr(), "skipped: {why}"));
}
