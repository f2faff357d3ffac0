//! The packet types that we announce: those that Kai uses, and no others. Pure.
//!
//! A phone starts only those of its features that have a packet type in common with us.

use kai_assistant::phones::Switches;

/// Something that Kai does with phones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Use {
    Sms,
    Notifications,
    Contacts,
    /// Opens the phone's own app with a message filled in.
    Composer,
    /// Shows on the phone that something waits here.
    Tell,
}

/// The packet types that a device handles and sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    pub incoming: Vec<String>,
    pub outgoing: Vec<String>,
}

const SMS: Role = Role {
    from_phone: &["kdeconnect.sms.messages"],
    to_phone: &[
        "kdeconnect.sms.request",
        "kdeconnect.sms.request_conversation",
        "kdeconnect.sms.request_conversations",
    ],
};
const NOTIFICATIONS: Role = Role {
    from_phone: &["kdeconnect.notification"],
    to_phone: &[
        "kdeconnect.notification.action",
        "kdeconnect.notification.reply",
        "kdeconnect.notification.request",
    ],
};
const CONTACTS: Role = Role {
    from_phone: &["kdeconnect.contacts.response_uids_timestamps", "kdeconnect.contacts.response_vcards"],
    to_phone: &[
        "kdeconnect.contacts.request_all_uids_timestamps",
        "kdeconnect.contacts.request_vcards_by_uid",
    ],
};
const COMPOSER: Role = Role { from_phone: &[], to_phone: &["kdeconnect.share.request"] };
const TELL: Role = Role { from_phone: &[], to_phone: &["kdeconnect.notification"] };
/// Keeps both lists from being empty: phones ignore an identity with an empty one.
const PING: Role = Role { from_phone: &["kdeconnect.ping"], to_phone: &["kdeconnect.ping"] };

struct Role {
    from_phone: &'static [&'static str],
    to_phone: &'static [&'static str],
}

impl Use {
    /// Everything that Kai can do.
    pub const ALL: [Self; 5] = [Self::Sms, Self::Notifications, Self::Contacts, Self::Composer, Self::Tell];

    /// What a phone with these switches is used for. Sending needs the phone's list as well, to see what was sent.
    pub fn of(on: Switches) -> Vec<Self> {
        let uses = [
            (on.read_sms || on.send_sms, Self::Sms),
            (on.notifications, Self::Notifications),
            (on.names, Self::Contacts),
            (on.composer, Self::Composer),
            (on.tell, Self::Tell),
        ];
        uses.into_iter().filter_map(|(on, used)| on.then_some(used)).collect()
    }

    fn role(self) -> Role {
        match self {
            Self::Sms => SMS,
            Self::Notifications => NOTIFICATIONS,
            Self::Contacts => CONTACTS,
            Self::Composer => COMPOSER,
            Self::Tell => TELL,
        }
    }
}

impl Capabilities {
    /// What Kai announces.
    pub fn of_computer(uses: &[Use]) -> Self {
        let roles: Vec<Role> = uses.iter().map(|used| used.role()).chain([PING]).collect();
        Self {
            incoming: names(roles.iter().flat_map(|role| role.from_phone)),
            outgoing: names(roles.iter().flat_map(|role| role.to_phone)),
        }
    }

    /// What a phone with these features announces.
    pub fn of_phone(features: &[Use]) -> Self {
        let Self { incoming, outgoing } = Self::of_computer(features);
        Self { incoming: outgoing, outgoing: incoming }
    }
}

fn names<'a>(names: impl Iterator<Item = &'a &'static str>) -> Vec<String> {
    names.map(|name| (*name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_used_is_announced_and_no_list_is_empty() {
        let ping = vec!["kdeconnect.ping".to_owned()];
        assert_eq!(Capabilities::of_computer(&[]), Capabilities { incoming: ping.clone(), outgoing: ping });
        let reading = Capabilities::of_computer(&[Use::Notifications]);
        assert!(reading.incoming.contains(&"kdeconnect.notification".to_owned()));
        assert!(!reading.outgoing.iter().any(|name| name.contains("sms") || name.contains("share")));
        let all = Capabilities::of_computer(&Use::ALL);
        assert!(all.outgoing.contains(&"kdeconnect.share.request".to_owned()));
        assert_eq!(Capabilities::of_phone(&Use::ALL).incoming, all.outgoing);
    }

    #[test]
    fn each_switch_has_its_use() {
        let off = Switches::default();
        let uses = Use::of;
        assert_eq!(uses(off), []);
        assert_eq!(uses(Switches { read_sms: true, ..off }), [Use::Sms]);
        assert_eq!(uses(Switches { send_sms: true, tell: true, ..off }), [Use::Sms, Use::Tell]);
        assert_eq!(uses(Switches { notifications: true, ..off }), [Use::Notifications]);
        assert_eq!(uses(Switches { names: true, composer: true, ..off }), [Use::Contacts, Use::Composer]);
    }
}
