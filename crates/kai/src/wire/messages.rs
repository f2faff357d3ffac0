//! The tools for messages and notifications, and the demo's machine.

use std::sync::Arc;

use kai_assistant::clock::Clock;
use kai_assistant::notifications::{
    CheckNotifications, DismissNotification, NotificationTools, ReadNotification, ReplyNotification,
    SearchNotifications,
};
use kai_assistant::settings::{
    NOTIFICATIONS_DISMISS_ENABLED, NOTIFICATIONS_ENABLED, NOTIFICATIONS_REPLY_ENABLED, SMS_ENABLED,
    SMS_SEND_ENABLED,
};
use kai_assistant::sms::{CheckSms, DraftingPhones, ReadSms, ReplySms, SearchSms, SendSms};
use kai_assistant::tool::AnyTool;
use kai_assistant::toolbox::{EnabledBy, Entry};
use kai_bridges::simulated;

use super::Parts;
use crate::app::Role;
use crate::machine::Machine;
use crate::machine::messages::Simulated;

/// The tools that draft, besides those of both editions.
pub(super) const DRAFTING: &[&str] = &["send_sms", "reply_sms", "reply_notification"];

pub(super) fn tools(parts: &Parts<'_>) -> Vec<Entry> {
    [sms_tools(parts), notification_tools(parts)].into_iter().flatten().collect()
}

/// The demo's machine. What is simulated only exists in the daemon.
pub(super) fn simulated(role: Role, clock: &Arc<dyn Clock>) -> Machine {
    match role {
        Role::Daemon => {
            let phone = Arc::new(simulated::Phone::with_inbox(Arc::clone(clock)));
            Machine::simulated(Simulated::beside(phone, clock))
        }
        Role::Command => Machine::default(),
    }
}

fn sms_tools(parts: &Parts<'_>) -> Vec<Entry> {
    let (db, clock, phone) = (parts.db, parts.clock, &parts.messages.phone);
    let on = |features, tool: Arc<dyn AnyTool>| Entry { tool, governed: EnabledBy::Features(features) };
    let (db, clock) = (|| db.clone(), || Arc::clone(clock));
    let drafting = Arc::new(DraftingPhones::new(db(), clock(), Arc::clone(&parts.door.senders)));
    let phones = || Arc::clone(&drafting);
    let received = || phone.received.clone();
    vec![
        on(vec![&SMS_ENABLED], Arc::new(CheckSms { received: received(), clock: clock() })),
        on(vec![&SMS_ENABLED], Arc::new(ReadSms { received: received(), clock: clock() })),
        on(vec![&SMS_ENABLED], Arc::new(SearchSms { received: received(), clock: clock() })),
        on(
            vec![&SMS_SEND_ENABLED],
            Arc::new(SendSms { db: db(), clock: clock(), received: received(), phones: phones() }),
        ),
        on(
            vec![&SMS_SEND_ENABLED, &SMS_ENABLED],
            Arc::new(ReplySms { db: db(), clock: clock(), received: received(), phones: phones() }),
        ),
    ]
}

/// The notification tools, in the order in which the model sees them.
fn notification_tools(parts: &Parts<'_>) -> Vec<Entry> {
    let shelf = || NotificationTools {
        db: parts.db.clone(),
        clock: Arc::clone(parts.clock),
        sources: Arc::clone(&parts.messages.notifications),
    };
    let reading =
        |tool: Arc<dyn AnyTool>| Entry { tool, governed: EnabledBy::Features(vec![&NOTIFICATIONS_ENABLED]) };
    let dismissing = |tool: Arc<dyn AnyTool>| Entry {
        tool,
        governed: EnabledBy::Features(vec![&NOTIFICATIONS_ENABLED, &NOTIFICATIONS_DISMISS_ENABLED]),
    };
    let replying = |tool: Arc<dyn AnyTool>| Entry {
        tool,
        governed: EnabledBy::Features(vec![&NOTIFICATIONS_ENABLED, &NOTIFICATIONS_REPLY_ENABLED]),
    };
    vec![
        reading(Arc::new(CheckNotifications(shelf()))),
        reading(Arc::new(ReadNotification(shelf()))),
        reading(Arc::new(SearchNotifications(shelf()))),
        dismissing(Arc::new(DismissNotification(shelf()))),
        replying(Arc::new(ReplyNotification::new(parts.db.clone(), Arc::clone(parts.clock)))),
    ]
}

#[cfg(test)]
mod tests {
    use kai_assistant::home::Home;
    use kai_assistant::web::{LocationServices, SearchServices, SystemResolver, Web};

    use super::super::Internet;
    use super::{Arc, Clock, Machine, Role, Simulated, simulated};
    use crate::app::App;

    impl App {
        /// The demo's app with this phone; its model plays the script.
        pub(crate) fn with_phone(
            clock: Arc<dyn Clock>,
            phone: Arc<simulated::Phone>,
        ) -> (Self, tempfile::TempDir) {
            let folder = tempfile::tempdir().unwrap();
            let home = Home::at(folder.path()).unwrap().demo().unwrap();
            let machine = Machine::simulated(Simulated::beside(phone, &clock));
            (Self::in_memory(home, clock, machine, Role::Daemon, &Internet::real()), folder)
        }

        /// An app on this machine whose internet is one server on loopback: every page and service resolves to it.
        pub(crate) fn under_attack(
            clock: Arc<dyn Clock>,
            machine: Machine,
            server: std::net::SocketAddr,
        ) -> (Self, tempfile::TempDir) {
            let folder = tempfile::tempdir().unwrap();
            let home = Home::at(folder.path()).unwrap();
            let web = Web::with_stand_ins(SystemResolver, vec![server.ip()]);
            let at = |path: &str| std::borrow::Cow::from(format!("http://{server}/{path}"));
            let search =
                SearchServices { duckduckgo: at("search"), brave: at("search"), tavily: at("search") };
            let location = LocationServices { ipwho: at("location"), ipapi: at("location") };
            (Self::in_memory(home, clock, machine, Role::Daemon, &Internet { web, search, location }), folder)
        }
    }
}
