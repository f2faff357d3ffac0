//! A piece of a message around the words that were searched for.

use kai_assistant::agent::search::Piece;
use maud::{Markup, html};

/// The words that were found are marked.
pub(super) fn text(pieces: &[Piece]) -> Markup {
    html! { @for piece in pieces { @if piece.is_hit { mark { (piece.text) } } @else { (piece.text) } } }
}
