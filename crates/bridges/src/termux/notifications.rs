//! Notifications in Termux: polls `termux-notification-list`, which lists what is in the tray, and reports the
//! differences.
//!
//! Without notification access the program does not answer at all, and opens Android's settings page for it. So the
//! longer it fails to answer, the less often it is called.

#[cfg(any(test, fuzzing))]
pub(super) mod fuzz;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use kai_assistant::access::Access;
use kai_assistant::notifications::NotificationId;
use kai_assistant::notifications::port::{Dismissing, Ear, Heard, Listener};
use kai_assistant::notifications::record::Post;
use kai_assistant::untrusted::Untrusted;
use kai_words::said;
use serde::Deserialize;

use super::{Termux, refusal};
use crate::program::{Failed, Terms};

const LIST: &str = "termux-notification-list";
const LONGEST_LIST: u64 = 4 * 1024 * 1024;
const PAUSE: Duration = Duration::from_secs(20);
const LONGEST_PAUSE: Duration = Duration::from_mins(10);

/// The notifications in the tray, by key.
type Tray = BTreeMap<NotificationId, Post>;

impl Listener for Termux {
    fn name(&self) -> &'static str {
        "termux"
    }

    fn access(&self) -> Pin<Box<dyn Future<Output = Access> + Send + '_>> {
        Box::pin(async { self.tray(&TimeZone::UTC).await.map_or_else(|access| access, |_| Access::Granted) })
    }

    fn listen(&self, ear: Ear) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            let mut watch = Watch::default();
            let mut pause = PAUSE;
            loop {
                let seen = self.tray(&ear.zone()).await;
                pause = if seen.is_ok() { PAUSE } else { LONGEST_PAUSE.min(pause * 2) };
                watch.tell(seen, &ear).await;
                ear.rest(pause).await;
            }
        })
    }

    fn dismiss<'a>(&'a self, _: &'a NotificationId) -> Dismissing<'a> {
        Box::pin(async {
            Err("Termux cannot take away what other apps show; the user can do it.".to_owned())
        })
    }
}

impl Termux {
    /// Lists the tray, or says why it cannot be listed.
    async fn tray(&self, zone: &TimeZone) -> Result<Tray, Access> {
        let terms = Terms { longest_answer: LONGEST_LIST, ..Terms::within(self.patience) };
        let nothing: [&str; 0] = [];
        match self.call(LIST, &nothing, &terms).await {
            Ok(said) => understood(&said, zone),
            Err(Failed::Interrupted(why)) => Err(Access::Denied(said::access_termux_notifications(why))),
            Err(failed) => Err(Access::Silent(said::sentence_ended(failed.sentence()))),
        }
    }
}

/// The last tray that was seen, and whether the last attempt succeeded.
#[derive(Debug, Default)]
struct Watch {
    /// `None` before the first successful attempt.
    tray: Option<Tray>,
    bound: bool,
}

impl Watch {
    /// Reports what changed since the last attempt. If it was not stored durably in the end, the next attempt reports
    /// it again.
    async fn tell(&mut self, seen: Result<Tray, Access>, ear: &Ear) {
        let now = match seen {
            Ok(now) => now,
            Err(access) => {
                self.bound = false;
                // A check that ended tells what is stored, whether or not it found something.
                ear.tell(Heard::Unbound(access)).await.durable().await;
                return;
            }
        };
        let mut last = None;
        for heard in difference(self.tray.as_ref(), &now, self.bound) {
            last = Some(ear.tell(heard).await);
        }
        let durable = match last {
            // A single writer writes in order, so if the last event is durable, all are.
            Some(receipt) => receipt.durable().await,
            None => true,
        };
        if durable {
            (self.tray, self.bound) = (Some(now), true);
        }
    }
}

/// What happened between two trays. Pure. Whatever arrived while the tray could not be read counts as new, except at
/// the very first attempt.
fn difference(before: Option<&Tray>, now: &Tray, bound: bool) -> Vec<Heard> {
    let Some(before) = before else {
        return vec![Heard::Bound { standing: by_time(now.values()).cloned().collect() }];
    };
    let binds = (!bound).then(|| Heard::Bound { standing: vec![] });
    let gone = before.keys().filter(|key| !now.contains_key(*key)).map(|key| Heard::Closed(key.clone()));
    let changed = now.iter().filter(|(key, post)| before.get(*key) != Some(*post));
    let posted = by_time(changed.map(|(_, post)| post)).map(|post| Heard::Posted(Box::new(post.clone())));
    binds.into_iter().chain(gone).chain(posted).collect()
}

/// Oldest first. A post without a time counts as newest, because it was first seen just now.
fn by_time<'a>(posts: impl Iterator<Item = &'a Post>) -> impl Iterator<Item = &'a Post> {
    let mut posts: Vec<&Post> = posts.collect();
    posts.sort_by_key(|post| (post.posted_at.is_none(), post.posted_at));
    posts.into_iter()
}

/// One entry of the list, as Termux:API prints it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    key: String,
    #[serde(default)]
    package_name: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    when: Option<String>,
    /// The lines shown when a list of messages is expanded.
    #[serde(default)]
    lines: Vec<String>,
}

/// Parses the program's output. Pure. An exception in the app results in empty output.
fn understood(said: &str, zone: &TimeZone) -> Result<Tray, Access> {
    if said.trim().is_empty() {
        return Err(Access::Silent(said::access_termux_no_answer()));
    }
    if let Some(why) = refusal(said) {
        return Err(Access::Denied(said::access_termux_notifications(why)));
    }
    let entries: Vec<Entry> =
        serde_json::from_str(said).map_err(|_| Access::Silent(said::access_termux_garbled()))?;
    let post = |entry: Entry| {
        let post = posted(entry, zone);
        (post.id.clone(), post)
    };
    Ok(entries.into_iter().map(post).collect())
}

fn posted(entry: Entry, zone: &TimeZone) -> Post {
    let text = |text: Option<String>| text.unwrap_or_default();
    let lines = Some(entry.lines.join("\n")).filter(|lines| !lines.trim().is_empty());
    Post {
        big_text: lines.map(Untrusted::new),
        posted_at: entry.when.as_deref().and_then(|when| moment(when, zone)),
        ..Post::new(
            NotificationId::new(&entry.key),
            &entry.package_name,
            &text(entry.title),
            &text(entry.content),
        )
    }
}

/// Parses a local time in whole seconds. Apps set it to anything, even years outside the calendar.
fn moment(when: &str, zone: &TimeZone) -> Option<Timestamp> {
    let local = DateTime::strptime("%Y-%m-%d %H:%M:%S", when).ok()?;
    zone.to_timestamp(local).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kai_assistant::clock::ManualClock;
    use kai_assistant::notifications::Source;
    use kai_assistant::notifications::capture::Capture;
    use kai_assistant::notifications::{repeats, store};
    use kai_assistant::source::SourceId;
    use kai_assistant::{db::Db, settings};

    use super::fuzz::TWO;
    use super::*;
    use crate::program::fake::Programs;

    fn tray(said: &str) -> Tray {
        understood(said, &TimeZone::get("Europe/Berlin").unwrap()).unwrap()
    }

    #[test]
    fn the_list_is_read_leniently_and_its_times_are_local() {
        let tray = tray(TWO);
        let alice = &tray[&NotificationId::new("0|org.signal|7|null|10123")];
        assert_eq!((alice.package_name.as_str(), alice.title.as_written()), ("org.signal", "Alice"));
        assert_eq!(alice.big_text, Some(Untrusted::new("a\nb")));
        assert_eq!(alice.posted_at.unwrap().to_string(), "2026-11-14T23:30:00Z");
        assert_eq!(
            (alice.ongoing, alice.group_summary),
            (None, None),
            "what it does not tell is not guessed"
        );
        let odd = &tray[&NotificationId::new("k8")];
        assert_eq!((odd.posted_at, odd.big_text.as_ref()), (None, None));
    }

    #[test]
    fn what_is_no_list_is_a_failure() {
        for (said, denied, word) in [
            ("", false, "no answer"),
            (" \n", false, "no answer"),
            ("garbage", false, "makes no sense"),
            ("{}", false, "makes no sense"),
            ("[{\"key\":", false, "makes no sense"),
            (r#"{"error":"Please grant"}"#, true, "Please grant"),
        ] {
            match understood(said, &TimeZone::UTC) {
                Err(Access::Denied(why)) => {
                    assert!(denied && why.to_string().contains(word), "{said}: {why}");
                }
                Err(Access::Silent(why)) => {
                    assert!(!denied && why.to_string().contains(word), "{said}: {why}");
                }
                other => panic!("{said}: {other:?}"),
            }
        }
    }

    #[test]
    fn the_difference_is_what_happened() {
        let before = tray(TWO);
        let mut now = before.clone();
        let id = NotificationId::new("k8");
        assert_eq!(difference(Some(&before), &now, true), []);
        assert_eq!(difference(Some(&before), &now, false), [Heard::Bound { standing: vec![] }]);
        let changed = Post { title: Untrusted::new("new"), ..now[&id].clone() };
        now.insert(id.clone(), changed.clone());
        now.remove(&NotificationId::new("0|org.signal|7|null|10123"));
        let expected = [
            Heard::Closed(NotificationId::new("0|org.signal|7|null|10123")),
            Heard::Posted(Box::new(changed)),
        ];
        assert_eq!(difference(Some(&before), &now, true), expected);
        match &difference(None, &before, false)[..] {
            [Heard::Bound { standing }] => assert_eq!(standing.len(), 2),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_came_within_one_look_is_told_by_its_time() {
        let entry = |key: &str, when: &str| {
            format!(r#"{{"key":"{key}","packageName":"org.x","title":"{key}"{when}}}"#)
        };
        let at = |time: &str| format!(r#","when":"2026-11-15 {time}""#);
        let said = [
            entry("a", &at("10:00:02")),
            entry("b", ""),
            entry("c", &at("10:00:00")),
            entry("d", &at("10:00:01")),
        ];
        let now = tray(&format!("[{}]", said.join(",")));
        let title = |post: &Post| post.title.as_written().to_owned();
        let posted = difference(Some(&Tray::new()), &now, true);
        let told: Vec<String> = posted
            .iter()
            .filter_map(|heard| if let Heard::Posted(post) = heard { Some(title(post)) } else { None })
            .collect();
        assert_eq!(told, ["c", "d", "a", "b"], "the oldest first, and last what does not tell its time");
        match &difference(None, &now, false)[..] {
            [Heard::Bound { standing }] => {
                assert_eq!(standing.iter().map(title).collect::<Vec<_>>(), ["c", "d", "a", "b"]);
            }
            other => panic!("{other:?}"),
        }
    }

    /// A phone whose tray the test controls, and a Kai that watches it.
    struct House {
        programs: Programs,
        termux: Arc<Termux>,
        capture: Capture,
        source: Arc<Source>,
    }

    impl House {
        fn new() -> Self {
            let programs = Programs::new();
            let patience = Duration::from_secs(1);
            let termux = Arc::new(Termux { patience, ..Termux::in_folder(programs.folder()) });
            let source = Arc::new(Source::new(termux.clone()));
            let db = Db::in_memory(kai_assistant::MIGRATIONS).unwrap();
            db.write_now(|tx| settings::store(tx, "notifications_enabled", "true")).unwrap();
            let clock = Arc::new(ManualClock::at("2026-11-15T01:00:00Z".parse().unwrap()));
            let repeats_sms = Arc::new(repeats::never);
            let capture = Capture { db, clock, source: source.clone(), repeats_sms };
            Self { programs, termux, capture, source }
        }

        fn shows(&self, script: &str) {
            self.programs.write(LIST, script);
        }

        /// How many notifications are stored, how many are queued, and whether Kai is listening.
        async fn state(&self) -> (u32, u32, bool) {
            let read = self.capture.db.read(|tx| {
                let queued = kai_assistant::pending::count(tx, kai_assistant::notifications::QUEUE)?;
                let listening = store::sync(tx, SourceId::HERE)?.listening;
                Ok::<_, kai_assistant::db::DbError>((store::count(tx)?, queued, listening))
            });
            read.await.unwrap()
        }
    }

    #[tokio::test]
    async fn a_tray_is_watched_through_everything_that_goes_wrong() {
        let house = House::new();
        let entry =
            |key: &str, text: &str| format!(r#"{{"key":"{key}","packageName":"org.x","title":"{text}"}}"#);
        house.shows(&format!("echo '[{}]'", entry("1", "stood")));
        let capture = house.capture.clone();
        let running = tokio::spawn(async move { capture.run(std::future::pending()).await });
        let look = async || house.source.check_now(Duration::from_secs(10)).await;
        look().await;
        assert_eq!(house.state().await, (1, 0, true), "what stood there is no news");
        house.shows(&format!("echo '[{},{}]'", entry("1", "stood"), entry("2", "came")));
        look().await;
        assert_eq!(house.state().await, (2, 1, true));
        for (name, script) in [("no answer", "exit 0"), ("hangs", "sleep 600"), ("fails", "exit 1")] {
            house.shows(script);
            look().await;
            assert_eq!(house.state().await, (2, 1, false), "{name}");
        }
        house.shows(&format!("echo '[{},{}]'", entry("1", "stood"), entry("3", "meanwhile")));
        look().await;
        assert_eq!(house.state().await, (3, 2, true), "what came meanwhile is news");
        running.abort();
    }

    #[tokio::test]
    async fn a_check_that_failed_ends_once_that_is_stored() {
        let source = House::new().source;
        let clock = Arc::new(ManualClock::at("2026-11-15T01:00:00Z".parse().unwrap()));
        let (ear, writer) = Ear::new(source, clock);
        let mut watch = Watch::default();
        let mut told = std::pin::pin!(watch.tell(understood("", &TimeZone::UTC), &ear));
        assert!(futures_util::poll!(told.as_mut()).is_pending(), "nothing was written yet");
        drop(writer);
        told.await;
    }

    #[tokio::test]
    async fn a_list_that_hangs_means_that_access_is_missing() {
        let house = House::new();
        house.shows("sleep 600");
        let denied = Listener::access(house.termux.as_ref()).await;
        assert!(
            matches!(&denied, Access::Denied(what) if what.to_string().contains("Notification access")),
            "{denied:?}"
        );
        house.shows("echo '[]'");
        assert_eq!(Listener::access(house.termux.as_ref()).await, Access::Granted);
    }
}
