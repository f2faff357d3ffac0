use std::collections::HashMap;
use std::sync::Arc;

use kai_assistant::clock::ManualClock;
use kai_assistant::notifications::port::{Delivery, Source};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::super::notify::tests::Bus;
use super::*;

#[test]
fn an_address_outlives_its_bus() {
    for (address, expected) in [
        ("unix:path=/run/user/1000/bus", "unix:path=/run/user/1000/bus"),
        ("unix:path=/tmp/bus,guid=ff16", "unix:path=/tmp/bus"),
        ("unix:abstract=/a,guid=1;tcp:host=h,port=1,guid=2", "unix:abstract=/a;tcp:host=h,port=1"),
    ] {
        assert_eq!(without_guid(address), expected);
    }
}

const PATH: &str = "/org/freedesktop/Notifications";
const NUMBER: u32 = 7;

async fn connected(bus: &Bus) -> Connection {
    zbus::connection::Builder::address(bus.address.as_str()).build().await.unwrap()
}

async fn post(from: &Connection, to: &str) -> Message {
    let hints: HashMap<&str, zbus::Variant<'_>> = HashMap::new();
    let call = ("Signal", 0_u32, "", "Dinner", "at 8", Vec::<&str>::new(), hints, -1);
    from.call_method(Some(to), PATH, Some(FREEDESKTOP), "Notify", &call).await.unwrap()
}

/// Answers calls as GNOME does: one program has the name and passes everything on to the shell. It closes only what
/// the caller has posted, and leaves it to the shell to say that something was closed.
async fn gnome(bus: &Bus) -> [JoinHandle<()>; 2] {
    let (server, shell) = (connected(bus).await, connected(bus).await);
    let (mut asked, mut shown) = (MessageStream::from(&server), MessageStream::from(&shell));
    server.request_name(FREEDESKTOP).await.unwrap();
    shell.request_name(GNOME_SHELL).await.unwrap();
    let behind = shell.unique_name().unwrap().to_string();
    let passing_on = tokio::spawn(async move {
        while let Some(Ok(message)) = asked.next().await {
            let header = message.header();
            match header.member().map(ToString::to_string).as_deref() {
                Some("Notify") => {
                    let number: u32 = post(&server, &behind).await.body().deserialize().unwrap();
                    server.reply(&header, &number).await.unwrap();
                }
                Some("CloseNotification") => {
                    let name = "org.freedesktop.DBus.Error.InvalidArgs";
                    server.reply_error(&header, name, &"Invalid notification ID").await.unwrap();
                }
                _ => {}
            }
        }
    });
    let showing = tokio::spawn(async move {
        while let Some(Ok(message)) = shown.next().await {
            let header = message.header();
            match header.member().map(ToString::to_string).as_deref() {
                Some("Notify") => shell.reply(&header, &NUMBER).await.unwrap(),
                Some("CloseNotification") => {
                    let nobody = None::<&str>;
                    let closed = (NUMBER, 3_u32);
                    shell
                        .emit_signal(nobody, PATH, FREEDESKTOP, "NotificationClosed", &closed)
                        .await
                        .unwrap();
                    shell.reply(&header, &()).await.unwrap();
                }
                _ => {}
            }
        }
    });
    [passing_on, showing]
}

async fn next(told: &mut mpsc::Receiver<Delivery>) -> Heard {
    tokio::time::timeout(Duration::from_secs(10), told.recv()).await.unwrap().unwrap().heard
}

/// The app still runs here, so that the server refuses to close it for anybody else.
#[tokio::test]
async fn gnome_shows_one_notification_and_kai_can_close_it_and_knows() {
    let bus = Bus::start();
    let gnome = gnome(&bus).await;
    let listener = Arc::new(DesktopListener::on(&bus.address));
    let clock = Arc::new(ManualClock::at("2026-11-18T09:00:00Z".parse().unwrap()));
    let (ear, mut told) = Ear::new(Arc::new(Source::new(listener.clone())), clock);
    let listening = tokio::spawn({
        let listener = listener.clone();
        async move { listener.listen(ear).await }
    });
    assert_eq!(next(&mut told).await, Heard::Bound { standing: vec![] });

    let app = connected(&bus).await;
    post(&app, FREEDESKTOP).await;
    let Heard::Posted(posted) = next(&mut told).await else { panic!("it was not heard") };
    assert_eq!(posted.title.as_written(), "Dinner");
    listener.dismiss(&posted.id).await.unwrap();
    assert_eq!(next(&mut told).await, Heard::Closed(posted.id), "and nothing between");
    for task in gnome.into_iter().chain([listening]) {
        task.abort();
    }
}
