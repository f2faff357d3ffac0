//! The messages in the demo phone's inbox: a birthday, a parcel, a code.

use jiff::{SignedDuration, Timestamp};

/// A message of the demo inbox.
pub(super) struct StoryMessage {
    pub(super) from: &'static str,
    pub(super) text: &'static str,
    pub(super) date: Timestamp,
    pub(super) read: bool,
}

/// All messages, oldest first. The numbers 555-01xx are reserved for fiction.
pub(super) fn messages(now: Timestamp) -> impl Iterator<Item = StoryMessage> {
    STORY.iter().map(move |(minutes, from, text, read)| {
        let ago = SignedDuration::from_mins(*minutes);
        StoryMessage { from, text, date: now.checked_sub(ago).unwrap_or(now), read: *read }
    })
}

/// The contacts of the demo's phone: the people of the story.
pub(super) const CONTACTS: [(&str, &str); 3] =
    [("Lena", "+1 555 0101"), ("Jonas", "+1 555 0142"), ("Grandma", "+1 555 0180")];

const HOUR: i64 = 60;
const DAY: i64 = 24 * HOUR;

/// Minutes ago, sender, text, and whether it has been read.
const STORY: [(i64, &str, &str, bool); 8] = [
    (
        3 * DAY + 2 * HOUR,
        "+15550101",
        "Hi, it's Lena. Grandma turns 80 next week! Dinner at our place, 7 pm. Can you make it?",
        true,
    ),
    (3 * DAY + HOUR, "+15550101", "She asked for the lemon cake again, so I'm on it 🍋", true),
    (2 * DAY, "ParcelPost", "Your parcel from Anselm Books is on its way and should arrive tomorrow.", true),
    (
        DAY + 5 * HOUR,
        "+15550123",
        "Northgate Dental: your next check-up is in two weeks at 9:15 with Dr. Okafor.",
        true,
    ),
    (
        20 * HOUR,
        "+15550142",
        "Jonas here. Shall we share a car to Lena's? I could be at yours at 6.\nThe train is a pain with the present.",
        true,
    ),
    (4 * HOUR, "ParcelPost", "Your parcel was left with your neighbour Weber, 2nd floor.", false),
    (2 * HOUR, "30303", "492 817 is your one-time code for Harbour Bank. It expires in 10 minutes.", false),
    (35, "+15550101", "Quick one, I'm at the shop: does anybody on your side not eat nuts?", false),
];
