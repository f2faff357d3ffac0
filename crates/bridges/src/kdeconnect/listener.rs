//! Listens to the notifications of a paired phone.

use std::pin::Pin;

use kai_assistant::access::Access;
use kai_assistant::lock::lock;
use kai_assistant::notifications::port::{Dismissing, Ear, Heard, Listener};
use kai_assistant::notifications::{NotificationId, record::Post};
use kai_assistant::phones::port::NotReached;
use kai_words::said;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::notification::{Change, Shown};
use super::packet::Packet;
use super::phone::{Line, PairedPhone};

/// How many changes wait to be taken. Beyond that the phone has to connect anew, and tells all that it shows.
const WAITING: usize = 1_024;

impl Line {
    fn reads_notifications(&self) -> bool {
        self.wire.is_some() && self.allowed.notifications
    }

    fn notification_access(&self) -> Access {
        match (&self.wire, self.allowed.notifications) {
            (_, false) => Access::Denied(said::access_paired_off()),
            (None, true) => Access::Silent(said::access_paired_away()),
            (Some(_), true) => Access::Granted,
        }
    }
}

impl Listener for PairedPhone {
    fn name(&self) -> &'static str {
        "phone"
    }

    fn access(&self) -> Pin<Box<dyn Future<Output = Access> + Send + '_>> {
        Box::pin(async { self.line.borrow().notification_access() })
    }

    fn listen(&self, ear: Ear) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            let mut line = self.line.subscribe();
            loop {
                let Ok(number) = line.wait_for(Line::reads_notifications).await.map(|line| line.number)
                else {
                    return;
                };
                let over = |line: &Line| line.number != number || !line.reads_notifications();
                tokio::select! {
                    () = self.hear(&ear) => {}
                    ended = line.wait_for(over) => drop(ended),
                }
                let why = match line.borrow_and_update().notification_access() {
                    Access::Denied(_) => Access::Granted, // Kai itself stopped.
                    Access::Silent(why) => Access::Silent(why),
                    // It is connected anew, and was away for a moment.
                    Access::Granted => Access::Silent(said::access_paired_away()),
                };
                ear.tell(Heard::Unbound(why)).await;
            }
        })
    }

    fn dismiss<'a>(&'a self, id: &'a NotificationId) -> Dismissing<'a> {
        Box::pin(async move {
            let key = lock(&self.odd_keys).key_of(id.as_str());
            let dismissed = self.reach(|on| on.notifications, Packet::DismissNotification(key)).await;
            dismissed.map_err(|error| match error {
                NotReached::NotConnected => "The phone is not connected, so it stays there.".to_owned(),
                NotReached::Busy => "The phone did not take the request. Try again in a moment.".to_owned(),
                NotReached::Unsure => "The connection broke, so it may still be there.".to_owned(),
            })
        })
    }
}

impl PairedPhone {
    /// Tells what the phone shows and what changes there, as long as it is connected.
    async fn hear(&self, ear: &Ear) {
        let (to, mut changes) = mpsc::channel(WAITING);
        *lock(&self.ear) = Some(to);
        if self.reach(|on| on.notifications, Packet::RequestNotifications).await.is_err() {
            // Then it is about to be gone, and whoever called notices that.
            return std::future::pending().await;
        }
        let (mut standing, mut later) = (vec![], vec![]);
        // Whatever comes after the time is up is told one by one.
        drop(timeout(self.limits.list, self.snapshot(&mut changes, &mut standing, &mut later)).await);
        ear.tell(Heard::Bound { standing }).await;
        for change in later {
            self.tell_change(ear, change).await;
        }
        loop {
            tokio::select! {
                change = changes.recv() => match change {
                    Some(change) => self.tell_change(ear, change).await,
                    None => return std::future::pending().await,
                },
                // The phone pushes, so there is nothing to check.
                () = ear.asked() => ear.looked(),
            }
        }
    }

    /// Collects what the phone showed before, until it falls silent, and what happened meanwhile.
    async fn snapshot(
        &self,
        changes: &mut mpsc::Receiver<Change>,
        standing: &mut Vec<Post>,
        later: &mut Vec<Change>,
    ) {
        while let Ok(Some(change)) = timeout(self.limits.quiet, changes.recv()).await {
            match change {
                Change::Posted(shown) if shown.silent => standing.push(self.post(&shown)),
                change => later.push(change),
            }
        }
    }

    async fn tell_change(&self, ear: &Ear, change: Change) {
        let heard = match change {
            // It was there before, and came late.
            Change::Posted(shown) if shown.silent => Heard::Standing(Box::new(self.post(&shown))),
            Change::Posted(shown) => Heard::Posted(Box::new(self.post(&shown))),
            Change::Removed(key) => Heard::Closed(NotificationId::new(&key)),
        };
        ear.tell(heard).await;
    }

    /// The notification as the assistant keeps it. Remembers its key if the id does not say it.
    fn post(&self, shown: &Shown) -> Post {
        let post = Post::from(shown);
        lock(&self.odd_keys).remember(post.id.as_str(), &shown.key);
        post
    }
}
