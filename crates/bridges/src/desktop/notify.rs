//! Shows notifications on the desktop, as org.freedesktop.Notifications on its session bus.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;

use kai_assistant::device::{Doing, Notification, Notifier, PortError, Urgency};
use zbus::{Variant, proxy};

/// The desktop on one session bus.
#[derive(Debug, Clone)]
pub struct Desktop {
    bus: String,
}

/// A bus or a desktop that does not answer is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);

impl Desktop {
    /// `bus` is the D-Bus address of the session, such as `unix:path=/run/user/1000/bus`.
    pub fn on(bus: String) -> Self {
        Self { bus }
    }

    async fn show(&self, notification: &Notification) -> zbus::Result<u32> {
        let bus = zbus::connection::Builder::address(self.bus.as_str()).build().await?;
        let desktop = NotificationsProxy::new(&bus).await?;
        let markup = desktop.get_capabilities().await?.iter().any(|can| can == "body-markup");
        let body = if markup { escaped(&notification.message) } else { (&notification.message).into() };
        let (urgency, expires) = match notification.urgency {
            Urgency::Normal => (1_u8, DESKTOP_DECIDES),
            Urgency::Alarm => (2_u8, NEVER),
        };
        let mut hints =
            HashMap::from([("urgency", Variant::from(urgency)), ("desktop-entry", Variant::from("kai"))]);
        if notification.urgency == Urgency::Alarm {
            hints.insert("sound-name", Variant::from("alarm-clock-elapsed"));
        }
        desktop.notify("Kai", 0, "", &notification.title, &body, &[], hints, expires).await
    }
}

const DESKTOP_DECIDES: i32 = -1;
const NEVER: i32 = 0;

impl Notifier for Desktop {
    fn notify<'a>(&'a self, notification: &'a Notification) -> Doing<'a> {
        Box::pin(async move {
            match tokio::time::timeout(PATIENCE, self.show(notification)).await {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(error)) => Err(PortError(format!("the desktop shows none now ({error})"))),
                Err(_) => Err(PortError("the desktop did not answer in time".to_owned())),
            }
        })
    }
}

/// A body is markup to most desktops, and what a model wrote must stay text. A title never is.
fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>']) {
        return text.into();
    }
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").into()
}

#[proxy(
    interface = "org.freedesktop.Notifications",
    default_service = "org.freedesktop.Notifications",
    default_path = "/org/freedesktop/Notifications"
)]
trait Notifications {
    fn get_capabilities(&self) -> zbus::Result<Vec<String>>;
    #[expect(clippy::too_many_arguments, reason = "the freedesktop specification has them")]
    fn notify(
        &self,
        app_name: &str,
        replaces_id: u32,
        app_icon: &str,
        summary: &str,
        body: &str,
        actions: &[&str],
        hints: HashMap<&str, Variant<'_>>,
        expire_timeout: i32,
    ) -> zbus::Result<u32>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_text() {
        for (text, expected) in [
            ("plain", "plain"),
            ("a < b & c > d", "a &lt; b &amp; c &gt; d"),
            ("<a href=\"x\">&lt;</a>", "&lt;a href=\"x\"&gt;&amp;lt;&lt;/a&gt;"),
        ] {
            assert_eq!(escaped(text), expected, "{text}");
        }
    }
}
