//! `send_notification`: shows the user a short message on their device.

use std::pin::Pin;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PortFuture, line, lines};
use crate::tool::{Lack, Run, Tool, ToolError, ToolOutput};

/// The port that shows notifications on this machine.
pub trait Notifier: Send + Sync {
    fn notify<'a>(&'a self, notification: &'a Notification) -> PortFuture<'a>;

    /// Waits for the next tap on a notification that has a [`Notification::leads_to`]. On a platform that does not
    /// report taps, the future never completes.
    fn tapped(&self) -> Pin<Box<dyn Future<Output = Tap> + Send + '_>> {
        Box::pin(std::future::pending())
    }
}

/// A short message for the user: plain text, never markup or a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    pub title: String,
    pub message: String,
    pub urgency: Urgency,
    /// A new notification with the same key replaces the old one, where the platform supports that.
    pub key: Option<String>,
    /// What a tap opens, where the platform supports that.
    pub leads_to: Option<Place>,
}

/// A part of Kai's page that a notification can open. The exact location is decided when it is opened, because what the
/// notification is about may be gone by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The current chat.
    Chat,
    /// The heartbeat's conversation.
    Heartbeat,
    /// The first pending draft.
    Drafts,
}

impl Place {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Heartbeat => "heartbeat",
            Self::Drafts => "drafts",
        }
    }
}

/// A tap by the user on a notification that leads to a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tap {
    pub place: Place,
    /// The desktop's activation token, which lets a window come to the front.
    pub activation: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    Normal,
    /// Stays on screen until the user dismisses it.
    Alarm,
}

/// Show the user a notification on their device.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct SendNotificationInput {
    /// A short headline; "Kai" if left out.
    pub title: Option<String>,
    /// The text to show.
    pub message: String,
}

/// The result of `send_notification`.
#[derive(Debug, Serialize)]
pub struct Shown {
    message: String,
}

pub struct SendNotification {
    pub notifier: Option<Arc<dyn Notifier>>,
}

const TITLE_LIMIT: usize = 100;
const MESSAGE_LIMIT: usize = 1_000;

impl Tool for SendNotification {
    const NAME: &'static str = "send_notification";
    type Input = SendNotificationInput;
    type Output = Shown;

    fn lacks(&self) -> Option<Lack> {
        self.notifier.is_none().then_some(Lack::Notifier)
    }

    async fn run(&self, input: SendNotificationInput, _: &Run) -> Result<ToolOutput<Shown>, ToolError> {
        let notifier = self.notifier.as_ref().ok_or(Lack::Notifier)?;
        let notification = compose(input).map_err(ToolError)?;
        let failed = |e| ToolError(format!("The notification could not be shown: {e}."));
        notifier.notify(&notification).await.map_err(failed)?;
        Ok(ToolOutput::own(Shown { message: format!("Showed \"{}\".", notification.title) }))
    }
}

fn compose(input: SendNotificationInput) -> Result<Notification, String> {
    let title = line("title", &input.title.unwrap_or_default(), TITLE_LIMIT)?;
    let message = lines("message", &input.message, MESSAGE_LIMIT)?;
    if message.is_empty() {
        return Err("The message must not be empty.".to_owned());
    }
    let title = if title.is_empty() { "Kai".to_owned() } else { title };
    Ok(Notification { title, message, urgency: Urgency::Normal, key: None, leads_to: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_plain_and_bounded() {
        let long = "x".repeat(MESSAGE_LIMIT + 1);
        for (title, message, expected) in [
            (Some("Tea"), "It is ready.", Ok(("Tea", "It is ready."))),
            (None, " It is ready.\nNow. ", Ok(("Kai", "It is ready.\nNow."))),
            (Some("  "), "x", Ok(("Kai", "x"))),
            (Some("two\nlines"), "a\0b\u{1b}[31mc", Ok(("two lines", "ab[31mc"))),
            (Some("t"), "<b>&amp;</b>", Ok(("t", "<b>&amp;</b>"))),
            (Some("t"), "\0 ", Err("The message must not be empty.")),
            (Some("t"), long.as_str(), Err("The message must be at most 1000 characters long.")),
            (Some(long.as_str()), "x", Err("The title must be at most 100 characters long.")),
        ] {
            let input =
                SendNotificationInput { title: title.map(str::to_owned), message: message.to_owned() };
            let composed = compose(input);
            let read = composed.as_ref().map(|n| (n.title.as_str(), n.message.as_str()));
            assert_eq!(read, expected.map_err(str::to_owned).as_ref().copied(), "{title:?} {message:?}");
        }
    }
}
