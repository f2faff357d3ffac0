//! A store that cannot be opened: one sentence, exit code 3, and the file as it was.

use super::kit::Disk;

/// Every command gives the same sentence, and none changes a byte.
fn refused_everywhere(home: &Disk, word: &str) {
    let before = std::fs::read(home.file("kai.db")).unwrap();
    for command in [&["memory", "list"][..], &["status"], &["settings", "set", "theme", "dark"]] {
        home.run(command).refused(3, word);
    }
    assert!(before == std::fs::read(home.file("kai.db")).unwrap(), "a refused store was changed");
}

#[test]
fn a_store_that_is_not_whole_or_not_ours_is_refused_and_left_alone() {
    let home = Disk::prepared();
    let other = Disk::prepared();
    std::fs::copy(other.file("kai.key"), home.file("kai.key")).unwrap();
    refused_everywhere(&home, "the key belongs to another store");

    let home = Disk::prepared();
    let file = std::fs::OpenOptions::new().write(true).open(home.file("kai.db")).unwrap();
    file.set_len(8192).unwrap();
    refused_everywhere(&home, "is damaged");

    let home = Disk::prepared();
    std::fs::write(home.file("kai.db"), vec![7; 30_000]).unwrap();
    refused_everywhere(&home, "is damaged");

    let home = Disk::prepared();
    std::fs::remove_file(home.file("kai.key")).unwrap();
    refused_everywhere(&home, "not its key, kai.key");

    let home = Disk::prepared();
    std::fs::write(home.file("kai.key"), "{").unwrap();
    refused_everywhere(&home, "not a valid key file");
}

#[test]
fn a_link_to_a_missing_disk_is_no_room_for_a_new_store() {
    let home = Disk::prepared();
    let store = home.file("kai.db");
    std::fs::remove_file(&store).unwrap();
    std::os::unix::fs::symlink("/nowhere/kai.db", &store).unwrap();
    home.run(&["status"]).refused(3, "not mounted");
    assert!(std::fs::symlink_metadata(&store).unwrap().is_symlink(), "the link is left alone");
    std::fs::remove_file(&store).unwrap();
    std::fs::create_dir(&store).unwrap();
    home.run(&["status"]).refused(3, "is not a store");
}

/// Killed between the first key and the first store, a home has had no store that could be missing.
#[test]
fn a_new_key_may_wait_for_its_store() {
    let home = Disk::new();
    assert_eq!(home.run(&["key", "show"]).code, 0);
    assert!(home.file("kai.key").exists() && !home.file("kai.db").exists(), "a key and no store");
    let moved = home.run(&["key", "move", "file"]);
    assert_eq!(moved.code, 0, "{moved:?}");
    assert_eq!(home.run(&["memory", "list"]).out, "No memories yet.\n", "the store is made");
    // Killed between the store and the word that there is one, the next start says it.
    let file = home.file("kai.key");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains("awaits_store"), "{text}");
    std::fs::write(&file, text.replacen('{', "{\"awaits_store\":true,", 1)).unwrap();
    assert_eq!(home.run(&["status"]).code, 0);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains("awaits_store"), "a store that is there is waited for no more: {text}");
}
