//! Deleting a chat, and taking that back.

use jiff::SignedDuration;
use kai_stand_ins::{Act, Provider};

use super::kit::Home;

#[test]
fn a_chat_is_deleted_when_its_user_is_sure_and_comes_back_for_a_minute() {
    let provider = Provider::start([Act::says("Hello.")]);
    let home = Home::with_model(&provider);
    assert_eq!(home.run(&["ask", "hi"]).code, 0);
    home.run(&["chats", "undo"]).refused(1, "nothing to take back");
    home.run(&["chats", "delete", "9"]).refused(1, "no chat");
    home.run(&["chats", "delete", "1"]).refused(2, "kai chats delete 1 --yes");
    let before = home.run(&["chats", "show", "1"]).out;
    assert!(before.contains("Hello."), "nothing was deleted: {before}");

    let deleted = home.run(&["chats", "delete", "1", "--yes"]);
    assert!(deleted.code == 0 && deleted.out.contains("kai chats undo"), "{deleted:?}");
    assert_eq!(home.run(&["chats", "list"]).out, "No chats found.\n");
    let back = home.run(&["chats", "undo", "--json"]).json();
    assert_eq!(back["restored"], true);
    let id = back["id"].to_string();
    assert_eq!(home.run(&["chats", "show", &id]).out, before);
    home.run(&["chats", "undo"]).refused(1, "nothing to take back");

    assert_eq!(home.run(&["chats", "delete", &id, "--yes"]).code, 0);
    home.clock.advance(SignedDuration::from_mins(1));
    home.run(&["chats", "undo"]).refused(1, "within the last minute");
    assert_eq!(home.run(&["chats", "list"]).out, "No chats found.\n");
}
