//! Decides whether a post is kept, and if not, why. Pure.

use super::record::{Post, Visibility};
use crate::untrusted::Untrusted;

/// The user's settings for notifications.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    pub on: bool,
    /// Package names of apps to ignore.
    pub ignored: Vec<String>,
}

/// Why a post is not kept, in the order in which [`dropped`] checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// The feature is off.
    Off,
    /// It comes from Kai itself or from the system. Reading Kai's own notifications would feed back into Kai.
    Blocked,
    /// The user ignores this app, or may ignore it: its sender is unknown.
    Ignored,
    /// It is not an event: it stays while something is running, such as a download or a service.
    Ongoing,
    /// The app marked it as secret.
    Secret,
    /// It only summarises a group, whose other notifications are the events.
    Summary,
    /// It has no text.
    Blank,
}

/// Packages whose notifications are never kept: Kai itself (on a phone it notifies through Termux), the system and the
/// desktop shells.
const BLOCKED: &[&str] = &[
    "kai",
    "com.termux",
    "com.termux.api",
    "android",
    "com.android.systemui",
    "gnome-shell",
    "org.gnome.shell",
    "plasmashell",
    "org.kde.plasmashell",
];

/// The reason to drop a post, or `None` to keep it.
pub fn dropped(post: &Post, rules: &Rules) -> Option<Dropped> {
    let package = post.package_name.trim().to_lowercase();
    let ongoing = post.ongoing == Some(true) || post.foreground_service == Some(true);
    [
        (!rules.on, Dropped::Off),
        (BLOCKED.contains(&package.as_str()), Dropped::Blocked),
        (is_ignored(post, rules), Dropped::Ignored),
        (ongoing, Dropped::Ongoing),
        (post.visibility == Some(Visibility::Secret), Dropped::Secret),
        (post.group_summary == Some(true), Dropped::Summary),
        (says_nothing(post), Dropped::Blank),
    ]
    .into_iter()
    .find_map(|(applies, why)| applies.then_some(why))
}

/// Whether the user ignores the app, under any of its names. If the sender is unknown, it could be any ignored app, so
/// it counts as ignored too: nothing from an ignored app may ever get through.
fn is_ignored(post: &Post, rules: &Rules) -> bool {
    let plain = |name: &String| name.trim().to_lowercase();
    let ignored: Vec<String> = rules.ignored.iter().map(plain).collect();
    let mut names = post.other_names.iter().chain([&post.package_name]).map(plain);
    names.any(|name| ignored.contains(&name)) || (post.sender_unknown && !ignored.is_empty())
}

fn says_nothing(post: &Post) -> bool {
    let long = post.big_text.as_ref().is_none_or(Untrusted::is_blank);
    let silent = post.messages.iter().all(|message| message.text.is_blank());
    post.title.is_blank() && post.text.is_blank() && long && silent
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notifications::record::{ChatMessage, NotificationId};

    fn post(package: &str, title: &str, text: &str) -> Post {
        Post::new(NotificationId::new("1"), package, title, text)
    }

    #[test]
    fn what_is_kept_and_why_the_rest_is_not() {
        let rules = Rules { on: true, ignored: vec!["org.noisy".to_owned()] };
        let chat = ChatMessage { sender: Untrusted::new("A"), text: Untrusted::new("x"), time: None };
        let plain = || post("org.app", "t", "x");
        for (name, post, expected) in [
            ("plain", plain(), None),
            ("only a title", post("org.app", "t", " "), None),
            ("only a text", post("org.app", "\n", "x"), None),
            ("only a long text", Post { big_text: Some(Untrusted::new("x")), ..post("a", "", "") }, None),
            ("only messages", Post { messages: vec![chat], ..post("a", "", "") }, None),
            (
                "what is not known is not guessed",
                Post { ongoing: None, group_summary: None, ..plain() },
                None,
            ),
            ("not ongoing", Post { ongoing: Some(false), ..plain() }, None),
            ("private", Post { visibility: Some(Visibility::Private), ..plain() }, None),
            ("Kai's own", post("kai", "t", "x"), Some(Dropped::Blocked)),
            ("Kai's own on a phone", post("com.termux.api", "t", "x"), Some(Dropped::Blocked)),
            ("the system", post("android", "t", "x"), Some(Dropped::Blocked)),
            ("its face", post("com.android.systemui", "t", "x"), Some(Dropped::Blocked)),
            ("a desktop's face", post("org.gnome.Shell", "t", "x"), Some(Dropped::Blocked)),
            ("not wanted", post("Org.Noisy", "t", "x"), Some(Dropped::Ignored)),
            (
                "not wanted, by another name",
                Post { other_names: vec!["ORG.noisy".to_owned()], ..plain() },
                Some(Dropped::Ignored),
            ),
            ("perhaps not wanted", Post { sender_unknown: true, ..plain() }, Some(Dropped::Ignored)),
            ("ongoing", Post { ongoing: Some(true), ..plain() }, Some(Dropped::Ongoing)),
            ("a service", Post { foreground_service: Some(true), ..plain() }, Some(Dropped::Ongoing)),
            ("secret", Post { visibility: Some(Visibility::Secret), ..plain() }, Some(Dropped::Secret)),
            ("a summary", Post { group_summary: Some(true), ..plain() }, Some(Dropped::Summary)),
            ("blank", post("org.app", " \t", "\u{2028}\0"), Some(Dropped::Blank)),
        ] {
            assert_eq!(dropped(&post, &rules), expected, "{name}");
            let off = dropped(&post, &Rules::default());
            assert_eq!(off, Some(Dropped::Off), "{name}, with the feature off");
        }
    }

    #[test]
    fn the_first_reason_is_the_one_that_is_told() {
        let mut rules = Rules { on: false, ignored: vec!["kai".to_owned(), "org.app".to_owned()] };
        let mut all = Post {
            ongoing: Some(true),
            visibility: Some(Visibility::Secret),
            group_summary: Some(true),
            ..post("kai", "", "")
        };
        assert_eq!(dropped(&all, &rules), Some(Dropped::Off));
        rules.on = true;
        assert_eq!(dropped(&all, &rules), Some(Dropped::Blocked));
        all.package_name = "org.app".to_owned();
        assert_eq!(dropped(&all, &rules), Some(Dropped::Ignored));
        rules.ignored.clear();
        assert_eq!(dropped(&all, &rules), Some(Dropped::Ongoing));
        all.ongoing = None;
        assert_eq!(dropped(&all, &rules), Some(Dropped::Secret));
        all.visibility = None;
        assert_eq!(dropped(&all, &rules), Some(Dropped::Summary));
        all.group_summary = None;
        assert_eq!(dropped(&all, &rules), Some(Dropped::Blank));
    }
}
