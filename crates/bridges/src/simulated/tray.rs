//! A simulated notification tray.

use kai_assistant::lock::lock;
use std::pin::Pin;
use std::sync::Mutex;

use kai_assistant::access::Access;
use kai_assistant::notifications::NotificationId;
use kai_assistant::notifications::port::{Dismissing, Ear, Heard, Listener};
use kai_assistant::notifications::record::Post;
use kai_assistant::untrusted::Untrusted;
use tokio::sync::Notify;

/// A notification tray in memory, with its events in order.
#[derive(Debug, Default)]
pub struct Tray {
    happened: Mutex<Vec<Heard>>,
    posted: Mutex<u32>,
    wake: Notify,
}

impl Tray {
    /// Posts a notification by an app and returns its key.
    pub fn post(&self, app: &str, title: &str, text: &str) -> NotificationId {
        let mut posted = lock(&self.posted);
        *posted += 1;
        let post = shown(*posted, app, title, text);
        let id = post.id.clone();
        self.happen(Heard::Posted(Box::new(post)));
        id
    }

    fn happen(&self, heard: Heard) {
        lock(&self.happened).push(heard);
        self.wake.notify_one();
    }

    fn take(&self) -> Vec<Heard> {
        std::mem::take(&mut *lock(&self.happened))
    }
}

fn shown(number: u32, app: &str, title: &str, text: &str) -> Post {
    let package = format!("com.example.{}", app.to_lowercase().replace(|c: char| !c.is_alphanumeric(), ""));
    let id = NotificationId::new(&format!("0|{package}|{number}|null|10100"));
    Post { app_label: Some(Untrusted::new(app)), ..Post::new(id, &package, title, text) }
}

impl Listener for Tray {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn access(&self) -> Pin<Box<dyn Future<Output = Access> + Send + '_>> {
        Box::pin(async { Access::Granted })
    }

    fn listen(&self, ear: Ear) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            let standing = vec![
                shown(1_001, "Calendar", "Dentist", "Tomorrow at 9:30"),
                shown(1_002, "Weather", "Rain from noon", "14 °C, wind from the west"),
            ];
            ear.tell(Heard::Bound { standing }).await;
            loop {
                for heard in self.take() {
                    ear.tell(heard).await;
                }
                tokio::select! {
                    () = self.wake.notified() => {}
                    () = ear.asked() => ear.looked(),
                }
            }
        })
    }

    fn dismiss<'a>(&'a self, id: &'a NotificationId) -> Dismissing<'a> {
        Box::pin(async {
            self.happen(Heard::Closed(id.clone()));
            Ok(())
        })
    }
}
