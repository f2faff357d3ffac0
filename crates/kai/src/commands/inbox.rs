//! The inbox: lists what the user received, shows a message, marks it, and quotes it for a chat. Nothing here can send.

use std::sync::Arc;

use futures_util::future::join_all;
use jiff::Timestamp;
use kai_assistant::db::DbError;
use kai_assistant::inbox::{
    Fetched, Fetching, Item, Key, Mark, Message, Need, Page, Phones, Quote, Sources, Wanted,
};
use kai_assistant::source::SourceId;
use rusqlite::Transaction;

use crate::app::App;

/// How far unread messages are counted.
pub(crate) const COUNTED: usize = 100;

/// A page of the inbox, and what is said about it.
pub(crate) struct Listing {
    pub(crate) page: Page,
    pub(crate) fetched: Fetched,
    /// The phones that there are messages of.
    pub(crate) phones: Phones,
}

/// What is shown of something, and what else has to be fetched for it. The caller drives that.
pub(crate) struct Shown<T> {
    pub(crate) what: T,
    pub(crate) fetching: Vec<Fetching>,
}

/// A page of the inbox with at most `most` messages.
pub(crate) async fn list(app: &App, wanted: Wanted, most: usize) -> Result<Shown<Listing>, DbError> {
    let (sources, own_name) = (app.inbox.clone(), app.messages.own_name());
    let read = move |tx: &Transaction<'_>| {
        let need = Need::Page(wanted.clone());
        let fetching = sources.fetch(tx, &need)?;
        let fetched = sources.fetched(&need);
        let mut listing =
            Listing { page: sources.page(tx, &wanted, most)?, fetched, phones: sources.phones(tx)? };
        if let Some(own) = own_name {
            listing.phones.entry(SourceId::HERE).and_modify(|name| *name = Some(own.to_owned()));
            listing.page.items.iter_mut().for_each(|item| name_own(item, own));
        }
        Ok::<_, DbError>(Shown { what: listing, fetching })
    };
    app.db.read(read).await
}

/// One message and whether all of it is there; no message if it is not known, or not known yet.
pub(crate) async fn message(app: &App, key: Key) -> Result<Shown<(Option<Message>, Fetched)>, DbError> {
    let (sources, now, own_name) = (app.inbox.clone(), app.clock.now(), app.messages.own_name());
    let read = move |tx: &Transaction<'_>| {
        let need = Need::Message(key.clone());
        let fetching = sources.fetch(tx, &need)?;
        let fetched = sources.fetched(&need);
        let mut message = one(&sources, tx, &key, now)?;
        if let (Some(message), Some(own)) = (&mut message, own_name) {
            name_own(&mut message.item, own);
        }
        Ok::<_, DbError>(Shown { what: (message, fetched), fetching })
    };
    app.db.read(read).await
}

/// Names the phone that Kai runs on as the one that received a message.
fn name_own(item: &mut Item, own: &str) {
    if item.phone.is_here() {
        item.phone_name.get_or_insert_with(|| own.to_owned());
    }
}

fn one(
    sources: &Sources,
    tx: &Transaction<'_>,
    key: &Key,
    now: Timestamp,
) -> Result<Option<Message>, DbError> {
    sources.of(key).map_or(Ok(None), |source| source.message(tx, &key.id, now))
}

/// Fetches all of a message, before something is done with it.
pub(crate) async fn fetch(app: &App, key: &Key) -> Result<(), DbError> {
    let (sources, need) = (app.inbox.clone(), Need::Message(key.clone()));
    join_all(app.db.read(move |tx| sources.fetch(tx, &need)).await?).await;
    Ok(())
}

/// The message as a model may read it.
pub(crate) async fn quote(app: &App, key: Key) -> Result<Option<Quote>, DbError> {
    fetch(app, &key).await?;
    let (sources, clock) = (app.inbox.clone(), Arc::clone(&app.clock));
    let quote = move |tx: &Transaction<'_>| match sources.of(&key) {
        Some(source) => source.quote(tx, &key.id, clock.now(), &clock.zone()),
        None => Ok(None),
    };
    app.db.read(quote).await
}

/// Notes what the user did with a message. Returns whether there is such a message.
pub(crate) async fn mark(app: &App, key: Key, mark: Mark) -> Result<bool, DbError> {
    fetch(app, &key).await?;
    let (sources, now) = (app.inbox.clone(), app.clock.now());
    let marked = move |tx: &Transaction<'_>| {
        let Some(source) = sources.of(&key) else { return Ok(false) };
        let is_there = source.message(tx, &key.id, now)?.is_some();
        source.mark(tx, &key.id, mark)?;
        Ok::<_, DbError>(is_there)
    };
    app.db.write(marked).await
}

/// What became of a dismissal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Dismissed {
    Done,
    /// It is out of the inbox, but still on the phone's screen.
    OnScreen(String),
    /// There is no such message.
    Unknown,
}

/// Takes a message out of the inbox, and off the screen where it is shown.
pub(crate) async fn dismiss(app: &App, key: Key) -> Result<Dismissed, DbError> {
    let (sources, wanted) = (app.inbox.clone(), key.clone());
    let clearing = app
        .db
        .read(move |tx| sources.of(&wanted).map_or(Ok(None), |source| source.clear(tx, &wanted.id)))
        .await?;
    if !mark(app, key, Mark::Away).await? {
        return Ok(Dismissed::Unknown);
    }
    Ok(match clearing {
        Some(clearing) => clearing.await.map_or_else(Dismissed::OnScreen, |()| Dismissed::Done),
        None => Dismissed::Done,
    })
}
