//! Shows a system notification for a new report, or for drafts from a heartbeat or task, when no page is open, and says
//! on paired phones that something waits.

mod telling;

use jiff::Timestamp;
use kai_assistant::db::DbError;
use kai_assistant::device::{Notification, Place, PortError, Urgency};
use kai_assistant::heartbeat::store;
use kai_assistant::outbox;
use kai_assistant::settings::{self, LANGUAGE};
use kai_assistant::untrusted::Untrusted;
use kai_words::Lang;
use pulldown_cmark::{Event, Options, Parser, TagEnd};
use rusqlite::Transaction;

use self::telling::{Marks, Shown, Telling};
use super::drafts;
use super::messages::{self, Waits};
use crate::app::App;

/// Tells what is new. Everything is announced only once, and not at all while a page is open. As long as nobody can be
/// told, it waits, also if showing it fails.
pub(crate) async fn news(app: &App) -> Result<(), DbError> {
    let is_seen = *app.pages.borrow() > 0;
    if is_seen {
        // An open page shows a banner instead.
        return app.db.write(seen).await;
    }
    if app.notifier.is_none() && !messages::can_tell(app) {
        return Ok(());
    }
    let (now, locale) = (app.clock.now(), app.env.locale.clone());
    let Some((news, telling)) = app.db.write(move |tx| taken(tx, now, &locale)).await? else {
        return Ok(());
    };
    let show = show(app, &news.notification);
    let (shown, phones) = tokio::join!(show, messages::tell_phones(app, news.waits));
    let is_told = phones.as_ref().is_ok_and(|told| *told) || *app.pages.borrow() > 0;
    let (shown, now) = (if is_told { Shown::Yes } else { shown }, app.clock.now());
    app.db.write(move |tx| telling.end(tx, shown, now)).await?;
    phones.map(drop)
}

/// Shows a notification on this machine, if it can.
async fn show(app: &App, notification: &Notification) -> Shown {
    let Some(notifier) = &app.notifier else { return Shown::No };
    let shown = notifier.notify(notification).await;
    if let Err(error) = &shown {
        tracing::warn!(%error, "a notification could not be shown");
    }
    match shown {
        Ok(()) => Shown::Yes,
        Err(PortError::Failed(_)) => Shown::No,
        Err(PortError::Unsure(_)) => Shown::Perhaps,
    }
}

/// Something new: as this machine shows it, and as a paired phone does, without what it says.
struct News {
    notification: Notification,
    waits: Waits,
}

/// What to tell; marks it as announced. A new report covers the drafts of its run, because its page shows them.
fn taken(tx: &Transaction<'_>, now: Timestamp, locale: &str) -> Result<Option<(News, Telling)>, DbError> {
    if !telling::is_free(tx, now)? {
        return Ok(None);
    }
    let (lang, marks) = (Lang::chosen(&settings::load(tx)?.of(&LANGUAGE), locale), Marks::now(tx)?);
    let report = store::take_unnotified(tx)?
        .map(|said| News { notification: of_report(&said, lang), waits: Waits::Report });
    let drafts = drafts::news::new_drafts(tx, lang)?.map(|drafts| News {
        notification: about(drafts.title, &drafts.message, ("kai-drafts", Place::Drafts)),
        waits: Waits::Drafts(drafts.count),
    });
    match report.or(drafts) {
        Some(news) => Ok(Telling::begin(tx, marks, now)?.map(|telling| (news, telling))),
        None => telling::forget(tx).map(|()| None),
    }
}

/// Marks everything as announced, because an open page shows it.
fn seen(tx: &Transaction<'_>) -> Result<(), DbError> {
    store::take_unnotified(tx)?;
    outbox::store::take_unannounced(tx)?;
    telling::forget(tx)
}

/// A notification of one kind. Each kind has a fixed key, so the next one replaces the last on the screen.
fn about(title: String, message: &str, (key, place): (&str, Place)) -> Notification {
    Notification {
        title,
        message: shortened(message, LONGEST),
        urgency: Urgency::Normal,
        key: Some(key.to_owned()),
        leads_to: Some(place),
    }
}

fn of_report(said: &str, lang: Lang) -> Notification {
    let title = lang.banners_heartbeat_reports().to_owned();
    about(title, &plain(said), ("kai-heartbeat", Place::Heartbeat))
}

/// The most characters in a notification's text.
const LONGEST: usize = 240;
/// How many characters of a report are parsed, enough to fill a notification.
const READ: usize = 20 * LONGEST;

/// Markdown as plain text: each paragraph and list item is a line, a link is its text, and a bare URL is its host name.
pub(super) fn plain(markdown: &str) -> String {
    let beginning: String = markdown.chars().take(READ).collect();
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut text = String::new();
    for event in Parser::new_ext(&beginning, options) {
        match event {
            Event::Text(said) | Event::Code(said) | Event::Html(said) | Event::InlineHtml(said) => {
                text.push_str(&said);
            }
            Event::SoftBreak | Event::End(TagEnd::TableCell) => text.push(' '),
            Event::Start(tag) if begins_line(tag.to_end()) => text.push('\n'),
            Event::End(tag) if begins_line(tag) => text.push('\n'),
            Event::HardBreak => text.push('\n'),
            _ => {}
        }
    }
    let lines = text.lines().map(|line| Untrusted::new(without_addresses(line)).line(usize::MAX));
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Whether this element starts on a line of its own.
fn begins_line(part: TagEnd) -> bool {
    use TagEnd::{BlockQuote, CodeBlock, Heading, HtmlBlock, Item, List, Paragraph, TableHead, TableRow};
    matches!(
        part,
        Paragraph
            | Heading(_)
            | BlockQuote(_)
            | CodeBlock
            | HtmlBlock
            | List(_)
            | Item
            | TableHead
            | TableRow
    )
}

fn without_addresses(line: &str) -> String {
    let word = |word: &str| match word.find("https://").or_else(|| word.find("http://")) {
        Some(at) => format!("{}{}", &word[..at], host(&word[at..])),
        None => word.to_owned(),
    };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// The host of a URL, followed by any punctuation after the URL.
fn host(address: &str) -> String {
    let bare = address.trim_end_matches(|c: char| ".,;:!?)]}>\"'*_".contains(c));
    let (_, rest) = bare.split_once("//").unwrap_or_default();
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{host}{}", &address[bare.len()..])
}

/// Shortens a text at a word boundary.
pub(super) fn shortened(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text.to_owned();
    }
    let cut: String = text.chars().take(longest - 1).collect();
    // A word that ends exactly here is complete.
    let ends_there = text[cut.len()..].starts_with(char::is_whitespace);
    let at_word = cut.rfind(char::is_whitespace).filter(|at| !ends_there && *at > cut.len() / 2);
    format!("{}…", cut[..at_word.unwrap_or(cut.len())].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_english(report: &str) -> Notification {
        of_report(report, Lang::ENGLISH)
    }

    #[test]
    fn a_notification_has_no_marks_of_markdown() {
        for (said, expected) in [
            ("**Two** new:\n- `Alice`\n- Bob", "Two new:\nAlice\nBob"),
            ("1. First\n2. Second\n   * deeper", "First\nSecond\ndeeper"),
            ("See [the plan](https://a.example/x?y=1) today.", "See the plan today."),
            ("![a cat](http://a.example/cat.png) sits", "a cat sits"),
            ("Look: https://a.example/x_y/z?q=*1*, now", "Look: a.example, now"),
            ("(<https://b.example/>)", "(b.example)"),
            ("https://bank.example@evil.example/login", "evil.example"),
            ("[ref][1] and [2]\n\n[1]: https://a.example\n[2]: https://b.example", "ref and 2"),
            ("# Title\n\nText\nof it  \nbroken", "Title\nText of it\nbroken"),
            ("> quoted\n\n---\n\n- [x] done\n- [ ] open", "quoted\ndone\nopen"),
            ("| a | b |\n|---|---|\n| 1 | 2 |", "a b\n1 2"),
            ("~~old~~ *new* __bold__ ~~~", "old new bold ~~~"),
            ("```sh\nkai open\n```", "kai open"),
            ("check_sms costs 5 * 3 = 15, \\*really\\*", "check_sms costs 5 * 3 = 15, *really*"),
            ("<b>Hi</b> & <Alice>", "<b>Hi</b> & <Alice>"),
            ("a\u{202e}b\u{7}c\td", "a b c d"),
            ("", ""),
        ] {
            assert_eq!(in_english(said).message, expected, "{said:?}");
        }
    }

    #[test]
    fn a_notification_is_cut_at_a_word() {
        let long = in_english(&"word ".repeat(100)).message;
        assert!(long.chars().count() <= LONGEST && long.ends_with("word…"), "{long}");
        let exact = format!("{} {}", "x".repeat(120), "y".repeat(119));
        assert_eq!(in_english(&exact).message, exact, "it fits");
        let over = in_english(&format!("{exact} more")).message;
        assert_eq!(over, format!("{}…", "x".repeat(120)));
        assert_eq!(in_english(&"x".repeat(500)).message.chars().count(), LONGEST);
        let wide = in_english(&"日本 ".repeat(200)).message;
        assert!(wide.chars().count() <= LONGEST && wide.ends_with("日本…"), "{wide}");
        // Very long or deeply nested reports must not cause a panic.
        in_english(&"> ".repeat(1_000_000));
        in_english(&"[".repeat(1_000_000));
    }

    #[cfg(feature = "foss")]
    mod runs {
        use std::sync::atomic::{AtomicBool, Ordering};
        use std::sync::{Arc, Mutex};

        use jiff::SignedDuration;
        use kai_assistant::agent::reports::{self, Report};
        use kai_assistant::clock::ManualClock;
        use kai_assistant::device::{Notifier, PortFuture};
        use kai_assistant::gate::RunKind;
        use kai_assistant::outbox::{Channel, NewDraft, store as drafts};
        use kai_assistant::source::SourceId;
        use tokio::sync::Notify;

        use super::*;

        /// Records the notifications instead of showing them.
        #[derive(Default)]
        struct Screen {
            shown: Mutex<Vec<Notification>>,
            /// How many notifications cannot be shown.
            fails: Mutex<u32>,
            /// It shows a notification, but never says so.
            hangs: AtomicBool,
            /// It shows a notification, but says so too late.
            is_slow: AtomicBool,
            asked: Notify,
        }

        impl Notifier for Screen {
            fn notify<'a>(&'a self, notification: &'a Notification) -> PortFuture<'a> {
                Box::pin(async move {
                    {
                        let mut fails = self.fails.lock().unwrap();
                        if *fails > 0 {
                            *fails -= 1;
                            return Err(PortError::Failed("nobody is there".to_owned()));
                        }
                    }
                    self.shown.lock().unwrap().push(notification.clone());
                    self.asked.notify_one();
                    if self.hangs.load(Ordering::Relaxed) {
                        std::future::pending::<()>().await;
                    }
                    if self.is_slow.load(Ordering::Relaxed) {
                        return Err(PortError::Unsure("it did not answer in time".to_owned()));
                    }
                    Ok(())
                })
            }
        }

        impl Screen {
            fn messages(&self) -> Vec<String> {
                self.shown.lock().unwrap().iter().map(|shown| shown.message.clone()).collect()
            }

            fn fail(&self, times: u32) {
                *self.fails.lock().unwrap() = times;
            }

            fn fails_left(&self) -> u32 {
                *self.fails.lock().unwrap()
            }
        }

        fn app(
            clock: &Arc<ManualClock>,
        ) -> (App, Arc<Screen>, Arc<kai_bridges::simulated::Phone>, tempfile::TempDir) {
            let phone = Arc::new(kai_bridges::simulated::Phone::new(clock.clone()));
            let (mut app, folder) = App::with_phone(clock.clone(), Arc::clone(&phone));
            let screen = Arc::new(Screen::default());
            app.notifier = Some(Arc::clone(&screen) as _);
            (app, screen, phone, folder)
        }

        fn draft(to: &str, body: &str, origin: RunKind) -> NewDraft {
            NewDraft {
                channel: Channel::Sms,
                phone: SourceId::HERE,
                to: to.to_owned(),
                app: None,
                body: body.to_owned(),
                mail: None,
                in_reply_to: None,
                quoted: None,
                known_contact: false,
                origin,
                guest: None,
                conversation: 0,
            }
        }

        async fn stage(app: &App, new: NewDraft) {
            let now = app.clock.now();
            app.db
                .write(move |tx| {
                    drafts::stage(tx, &new, now).map_err(|e| match e {
                        drafts::StageError::Store(error) => error,
                        drafts::StageError::Full | drafts::StageError::GuestFull => panic!("full"),
                    })
                })
                .await
                .unwrap();
        }

        async fn report(app: &App, said: &'static str) {
            let at = app.clock.now();
            let reported = app.db.write(move |tx| {
                reports::keep(tx, &Report { said: said.to_owned(), spoken: None, at, raises: true })
            });
            reported.await.unwrap();
        }

        fn clock() -> Arc<ManualClock> {
            Arc::new(ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap()))
        }

        #[tokio::test]
        async fn a_report_is_notified_only_while_nobody_looks() {
            for (pages, notified) in [(0, 1), (1, 0)] {
                let (app, screen, phone, _folder) = app(&clock());
                app.pages.send_replace(pages);
                crate::commands::sms::turn_reading_on(&app).await.unwrap();
                phone.receive("+15550123", "Dinner?", app.clock.now());
                crate::commands::sms::poll(&app).await.unwrap();
                crate::commands::heartbeat::tick(&app).await;
                assert!(app.db.read(store::banner).await.unwrap().is_some(), "the banner is up either way");
                let shown = || screen.shown.lock().unwrap().clone();
                assert_eq!(shown().len(), notified, "{pages} pages are open");
                assert!(shown().iter().all(|shown| shown.leads_to == Some(Place::Heartbeat)));
                app.pages.send_replace(0);
                crate::commands::heartbeat::tick(&app).await;
                assert_eq!(shown().len(), notified, "and never later");
            }
        }

        #[tokio::test]
        async fn a_draft_that_nobody_watched_is_told_once() {
            let (app, screen, ..) = app(&clock());
            let told = || std::mem::take(&mut *screen.shown.lock().unwrap());
            stage(&app, draft("+15550100", "Watched", RunKind::Chat)).await;
            news(&app).await.unwrap();
            assert_eq!(told(), [], "who asked for it sees it");
            stage(&app, draft("+15550101", "See you\nat *8*", RunKind::Heartbeat)).await;
            news(&app).await.unwrap();
            let first = told();
            assert_eq!(first.len(), 1);
            assert_eq!(first[0].title, "A draft is waiting for you");
            assert_eq!(first[0].message, "To +15550101: See you at *8*", "an SMS is no markdown");
            assert_eq!(first[0].leads_to, Some(Place::Drafts));
            news(&app).await.unwrap();
            assert_eq!(told(), [], "once");
            stage(&app, draft("+15550102", "Another", RunKind::Task)).await;
            news(&app).await.unwrap();
            let second = told();
            assert_eq!(second[0].title, "2 drafts are waiting for you", "it replaces the first");
            assert_eq!(second[0].message, "To +15550101, +15550102");
            assert_eq!(second[0].key, first[0].key);
            // With an open page it is not announced, and not later either.
            app.pages.send_replace(1);
            stage(&app, draft("+15550103", "Third", RunKind::Heartbeat)).await;
            news(&app).await.unwrap();
            app.pages.send_replace(0);
            news(&app).await.unwrap();
            assert_eq!(told(), []);
            app.db.write(|tx| settings::store(tx, &LANGUAGE.key, "de")).await.unwrap();
            stage(&app, draft("+15550104", "Bis 8", RunKind::Heartbeat)).await;
            news(&app).await.unwrap();
            let fourth = told();
            assert_eq!(fourth[0].title, "4 Entwürfe warten auf Sie");
            assert!(fourth[0].message.starts_with("An +15550101"), "{}", fourth[0].message);
        }

        #[tokio::test]
        async fn a_report_speaks_for_the_drafts_of_its_run() {
            let (app, screen, ..) = app(&clock());
            stage(&app, draft("+15550101", "See you", RunKind::Heartbeat)).await;
            report(&app, "Alice asks.").await;
            news(&app).await.unwrap();
            news(&app).await.unwrap();
            let shown = screen.shown.lock().unwrap().clone();
            assert_eq!(shown.len(), 1, "{shown:?}");
            assert_eq!(shown[0].leads_to, Some(Place::Heartbeat));
        }

        #[tokio::test]
        async fn what_may_have_been_shown_is_shown_again_once_and_no_more() {
            let clock = clock();
            let (app, screen, ..) = app(&clock);
            screen.is_slow.store(true, Ordering::Relaxed);
            report(&app, "Alice asks.").await;
            for (seconds, shown) in [(0, 1), (10, 2), (20, 2), (3600, 2), (3600, 2)] {
                clock.advance(SignedDuration::from_secs(seconds));
                news(&app).await.unwrap();
                assert_eq!(screen.messages().len(), shown, "after {seconds} s more");
            }
            report(&app, "Bob asks.").await;
            clock.advance(SignedDuration::from_hours(1));
            news(&app).await.unwrap();
            assert_eq!(screen.messages().len(), 3, "what is new is told");
        }

        /// Where nothing shows notifications for a while, they come later, with growing pauses between the attempts.
        #[tokio::test]
        async fn what_could_not_be_shown_is_shown_later_and_once() {
            for is_report in [true, false] {
                let clock = clock();
                let (app, screen, ..) = app(&clock);
                screen.fail(2);
                if is_report {
                    report(&app, "Alice asks.").await;
                } else {
                    stage(&app, draft("+15550101", "See you", RunKind::Heartbeat)).await;
                }
                for (seconds, fails, shown) in
                    [(0, 1, 0), (9, 1, 0), (1, 0, 0), (19, 0, 0), (1, 0, 1), (60, 0, 1), (3600, 0, 1)]
                {
                    clock.advance(SignedDuration::from_secs(seconds));
                    news(&app).await.unwrap();
                    let seen = (screen.fails_left(), screen.messages().len());
                    assert_eq!(seen, (fails, shown), "{seconds} more seconds, a report: {is_report}");
                }
                let expected = if is_report { "Alice asks." } else { "To +15550101: See you" };
                assert_eq!(screen.messages(), [expected]);
                // The next one is told at once.
                report(&app, "Bob asks.").await;
                news(&app).await.unwrap();
                assert_eq!(screen.messages()[1], "Bob asks.");
            }
        }

        #[tokio::test]
        async fn what_was_seen_before_it_could_be_shown_is_not_shown() {
            let clock = clock();
            let (app, screen, ..) = app(&clock);
            let later = async || {
                clock.advance(SignedDuration::from_mins(30));
                news(&app).await.unwrap();
                std::mem::take(&mut *screen.shown.lock().unwrap())
            };
            screen.fail(1);
            report(&app, "Alice asks.").await;
            assert_eq!(later().await, []);
            app.db.write(reports::lower).await.unwrap();
            assert_eq!(later().await, [], "the report was read");

            screen.fail(1);
            stage(&app, draft("+15550101", "See you", RunKind::Heartbeat)).await;
            assert_eq!(later().await, []);
            let id = app.db.read(drafts::all).await.unwrap()[0].id;
            app.door.discard(id).await.unwrap();
            assert_eq!(later().await, [], "the draft was discarded");

            screen.fail(1);
            report(&app, "Bob asks.").await;
            assert_eq!(later().await, []);
            report(&app, "Carol asks.").await;
            let told = later().await;
            assert_eq!(
                (told.len(), told[0].message.as_str()),
                (1, "Carol asks."),
                "a newer one speaks for it"
            );
            assert_eq!(later().await, []);

            screen.fail(1);
            report(&app, "Dave asks.").await;
            assert_eq!(later().await, []);
            app.pages.send_replace(1);
            assert_eq!(later().await, []);
            app.pages.send_replace(0);
            assert_eq!(later().await, [], "an open page showed it");
        }

        /// Kai dies while a notification is shown, so nobody knows whether it was. It is told once more, and no more
        /// than that, even if Kai dies again.
        #[tokio::test]
        async fn a_death_repeats_a_notification_once() {
            for (name, deaths, expected) in [("once", 1, 2), ("twice", 2, 2), ("ever again", 4, 2)] {
                let (app, screen, ..) = app(&clock());
                report(&app, "Alice asks.").await;
                screen.hangs.store(true, Ordering::Relaxed);
                for _ in 0..deaths {
                    let dies = async {
                        screen.asked.notified().await;
                        let before = screen.messages().len();
                        news(&app).await.unwrap();
                        assert_eq!(screen.messages().len(), before, "another look around leaves it alone");
                    };
                    tokio::select! {
                        ended = news(&app) => ended.unwrap(),
                        () = dies => {}
                    }
                }
                screen.hangs.store(false, Ordering::Relaxed);
                for _ in 0..3 {
                    news(&app).await.unwrap();
                }
                assert_eq!(screen.messages().len(), expected, "{name}");
                report(&app, "Bob asks.").await;
                news(&app).await.unwrap();
                assert_eq!(screen.messages().last().unwrap(), "Bob asks.", "{name}");
            }
        }
    }
}
