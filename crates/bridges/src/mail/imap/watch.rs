//! Waits for news with IDLE.

use kai_assistant::email::port::Why;
use tokio::time::timeout;

use super::reply::Reply;
use super::session::{Next, Session};

impl Session {
    /// Calls `news` whenever mails arrive in the inbox, and once at the beginning, since some may have arrived while
    /// nobody watched. Ends only with a trouble.
    pub(in crate::mail) async fn watch(mut self, news: &(dyn Fn() + Send + Sync)) -> Result<(), Why> {
        if !self.can("IDLE") {
            return Err(Why::NoPush);
        }
        let mut known = self.examine(b"INBOX").await?.exists;
        news();
        loop {
            let tag = self.tag();
            self.begin(&tag, &mut known, news).await?;
            let patience = self.limits().idle;
            if let Ok(ended) = timeout(patience, self.idle(&tag, &mut known, news)).await {
                return ended;
            }
            self.end(&tag, &mut known, news).await?;
        }
    }

    /// The next reply. What it says about arrivals is passed on.
    async fn news(
        &mut self,
        tag: &str,
        known: &mut u32,
        news: &(dyn Fn() + Send + Sync),
    ) -> Result<Next, Why> {
        self.allow_more();
        let mut on = |reply: Reply<'_>| match reply {
            Reply::Exists(count) => {
                if count > *known {
                    news();
                }
                *known = count;
            }
            // The server need not say how many are left. With the old count, the next arrivals would be no news.
            Reply::Expunged => *known = known.saturating_sub(1),
            _ => {}
        };
        self.next(tag, &mut on).await
    }

    /// Waits until the server ends the waiting, which it must not.
    async fn idle(&mut self, tag: &str, known: &mut u32, news: &(dyn Fn() + Send + Sync)) -> Result<(), Why> {
        while !matches!(self.news(tag, known, news).await?, Next::Done(_)) {}
        Err(Why::Broken)
    }

    async fn begin(
        &mut self,
        tag: &str,
        known: &mut u32,
        news: &(dyn Fn() + Send + Sync),
    ) -> Result<(), Why> {
        let patience = self.limits().answer;
        let begun = async {
            self.write(&format!("{tag} IDLE\r\n")).await?;
            loop {
                match self.news(tag, known, news).await? {
                    Next::Continue => return Ok(()),
                    Next::Done(answer) => return answer.agreed().and(Err(Why::Nonsense)),
                    Next::Other => {}
                }
            }
        };
        timeout(patience, begun).await.map_err(|_| Why::Silent)?
    }

    /// Ends the waiting, so that the server sees that we are there, and we see that it is.
    async fn end(&mut self, tag: &str, known: &mut u32, news: &(dyn Fn() + Send + Sync)) -> Result<(), Why> {
        let patience = self.limits().answer;
        let ended = async {
            self.write("DONE\r\n").await?;
            loop {
                if let Next::Done(answer) = self.news(tag, known, news).await? {
                    return answer.agreed().map(drop);
                }
            }
        };
        timeout(patience, ended).await.map_err(|_| Why::Silent)?
    }
}
