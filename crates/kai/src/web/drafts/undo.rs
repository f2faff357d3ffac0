//! Discards several drafts at once, and takes a discard back for as long as the page offers it.

use std::time::Duration;

use axum::Form;
use axum::extract::State;
use axum::extract::rejection::FormRejection;
use axum::http::HeaderMap;
use axum::response::Response;
use jiff::Timestamp;
use kai_assistant::legible::visible;
use kai_assistant::outbox::DraftId;
use kai_assistant::outbox::discarded::{Discarded, OFFERED};
use kai_words::{Lang, Said, said};
use maud::{Markup, html};
use serde::Deserialize;

use crate::commands::drafts;
use crate::web::reply;
use crate::web::rich::rich;
use crate::web::state::Web;

/// The drafts that a form means, written with commas in between: exactly those that its page showed.
fn listed(ids: impl Iterator<Item = DraftId>) -> String {
    ids.map(|id| id.0.to_string()).collect::<Vec<_>>().join(",")
}

fn meant(drafts: &str) -> Vec<DraftId> {
    drafts.split(',').filter_map(|id| id.parse().ok()).map(DraftId).collect()
}

/// The button that discards these drafts.
pub(super) fn discard_all(ids: &[DraftId], csrf: &str, lang: Lang) -> Markup {
    html! {
        form method="post" action="/drafts/discard" data-live {
            input type="hidden" name="csrf" value=(csrf);
            input type="hidden" name="drafts" value=(listed(ids.iter().copied()));
            button type="submit" class="small" data-testid="draft-discard-all" { (lang.drafts_discard_all(ids.len())) }
        }
    }
}

/// The bar that offers to take a discard back.
pub(super) fn bar(discarded: &Discarded, csrf: &str, lang: Lang) -> Markup {
    html! {
        div class="card bar undone" id=(format!("discarded-{}", discarded.at.as_millisecond())) data-testid="draft-undo-bar" {
            span { (rich(&gone(discarded), lang, |to| html! { bdi { (to) } })) }
            form class="choices" method="post" action="/drafts/restore" data-live {
                input type="hidden" name="csrf" value=(csrf);
                input type="hidden" name="drafts" value=(listed(discarded.drafts.iter().map(|draft| draft.id)));
                button type="submit" data-testid="draft-undo" { (lang.drafts_undo()) }
            }
        }
    }
}

fn gone(discarded: &Discarded) -> Said {
    match discarded.drafts.as_slice() {
        [only] => said::drafts_discarded(visible(&only.recipient())),
        several => said::drafts_discarded_many(several.len()),
    }
}

/// How long until the page has to take the first of these bars away.
pub(super) fn stale_in(discarded: &[Discarded], now: Timestamp) -> Option<Duration> {
    let first = discarded.iter().map(|discarded| discarded.at).min()?;
    let left = OFFERED.saturating_sub(now.duration_since(first));
    Some(Duration::try_from(left).unwrap_or_default())
}

#[derive(Deserialize)]
pub(super) struct Several {
    drafts: String,
}

type Body = Result<Form<Several>, FormRejection>;

pub(super) async fn discard(State(web): State<Web>, headers: HeaderMap, form: Body) -> Response {
    let Ok(Form(Several { drafts: ids })) = form else { return reply::misfilled(&headers) };
    match drafts::discard_all(&web.app, meant(&ids)).await {
        Ok(_) => reply::done_here(&headers),
        Err(error) => reply::not_done(&headers, error.said()),
    }
}

pub(super) async fn restore(State(web): State<Web>, headers: HeaderMap, form: Body) -> Response {
    let Ok(Form(Several { drafts: ids })) = form else { return reply::misfilled(&headers) };
    match drafts::restore(&web.app, meant(&ids)).await {
        Ok(_) => reply::done_here(&headers),
        Err(failure) => reply::not_done(&headers, failure.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_means_the_drafts_that_it_names() {
        let ids = [DraftId(3), DraftId(12)];
        assert_eq!(meant(&listed(ids.into_iter())), ids);
        for odd in ["", ",", "x,-", "1;2"] {
            assert!(meant(odd).is_empty(), "{odd}");
        }
    }

    #[test]
    fn the_page_looks_again_when_the_first_bar_has_to_go() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let put = |seconds| Discarded { at: at(seconds), drafts: vec![] };
        for (discarded, expected) in [
            (vec![], None),
            (vec![put(100)], Some(10)),
            (vec![put(98), put(95)], Some(5)),
            (vec![put(80)], Some(0)),
        ] {
            assert_eq!(stale_in(&discarded, at(100)), expected.map(Duration::from_secs), "{discarded:?}");
        }
    }
}
