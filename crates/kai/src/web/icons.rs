//! The icons, as inline SVG, so that the browser fetches nothing for them.

use maud::{Markup, html};

fn drawn(path: &str) -> Markup {
    html! { svg class="icon" viewBox="0 0 24 24" aria-hidden="true" { path d=(path) {} } }
}

/// A wrench: a running tool.
pub(super) fn build() -> Markup {
    drawn("M14 7a4 4 0 0 1 5-4l-2.5 2.5 2 2L21 5a4 4 0 0 1-5.2 5L8 18a2 2 0 0 1-3-3l8-7.5z")
}

pub(super) fn send() -> Markup {
    drawn("M12 20V5M5.5 11.5 12 5l6.5 6.5")
}

pub(super) fn stop() -> Markup {
    drawn("M6.5 6.5h11v11h-11z")
}

pub(super) fn close() -> Markup {
    drawn("M6 6l12 12M18 6 6 18")
}

pub(super) fn menu() -> Markup {
    drawn("M4 7h16M4 12h16M4 17h10")
}

pub(super) fn more() -> Markup {
    drawn("M5.5 12h.01M12 12h.01M18.5 12h.01")
}

pub(super) fn plus() -> Markup {
    drawn("M12 5v14M5 12h14")
}

pub(super) fn gear() -> Markup {
    drawn("M4 8h9M18 8h2M4 16h2M11 16h9M15.5 5.5v5M8.5 13.5v5")
}

pub(super) fn heart() -> Markup {
    drawn("M3 12h4l2.5-5 4 10 2.5-5h5")
}

pub(super) fn bin() -> Markup {
    drawn("M5 7h14M10 7V4.5h4V7M7 7l1 12.5h8L17 7")
}

pub(super) fn pen() -> Markup {
    drawn("M5 19l1-4L16 5l3 3L9 18zM14 7l3 3")
}

pub(super) fn chat() -> Markup {
    drawn("M5 5h14v10.5h-7.5L7.5 19v-3.5H5z")
}

pub(super) fn pin() -> Markup {
    drawn("M9 4h6l-1 6 3.5 3.5h-11L10 10zM12 13.5V20")
}

pub(super) fn save() -> Markup {
    drawn("M12 4v11M7.5 10.5 12 15l4.5-4.5M5 19.5h14")
}

pub(super) fn copy() -> Markup {
    drawn("M9 9h10v11H9zM5.5 15V4.5H15")
}

/// A paper clip: attach a file.
pub(super) fn clip() -> Markup {
    drawn("M19.5 11.5 12 19a4.6 4.6 0 0 1-6.5-6.5l8-8a3 3 0 0 1 4.3 4.3l-8 8a1.5 1.5 0 0 1-2.1-2.1l7.3-7.4")
}

/// A sheet of paper: a text file.
pub(super) fn page() -> Markup {
    drawn("M7 3.5h7l4 4v13H7zM13.5 3.5V8H18M10 12h5M10 16h5")
}

pub(super) fn again() -> Markup {
    drawn("M19 12a7 7 0 1 1-2-5M17.5 3v4h-4")
}

pub(super) fn down() -> Markup {
    drawn("M12 5v14M5.5 12.5 12 19l6.5-6.5")
}

pub(super) fn back() -> Markup {
    drawn("M20 12H5M11.5 5.5 5 12l6.5 6.5")
}

pub(super) fn outward() -> Markup {
    drawn("M13 5h6v6M19 5l-9 9M10 6H5v13h13v-5")
}

pub(super) fn search() -> Markup {
    drawn("M11 17a6 6 0 1 1 0-12 6 6 0 0 1 0 12zM15.5 15.5 20 20")
}

/// A tray, for the inbox.
pub(super) fn inbox() -> Markup {
    drawn("M4 13.5 6.5 5h11l2.5 8.5V19H4zM4 13.5h5a3 3 0 0 0 6 0h5")
}

pub(super) fn shield() -> Markup {
    drawn("M12 3.5 19 6v6c0 4.5-3 7-7 8.5C8 19 5 16.5 5 12V6z")
}

pub(super) fn phone() -> Markup {
    drawn(
        "M8 3h8a1.5 1.5 0 0 1 1.5 1.5v15A1.5 1.5 0 0 1 16 21H8a1.5 1.5 0 0 1-1.5-1.5v-15A1.5 1.5 0 0 1 8 3zM10.5 18h3",
    )
}

/// A spark, for models.
pub(super) fn spark() -> Markup {
    drawn("M12 3.5c.6 4.6 3.4 7.4 8 8-4.6.6-7.4 3.4-8 8-.6-4.6-3.4-7.4-8-8 4.6-.6 7.4-3.4 8-8z")
}

/// A book, for the ledger.
pub(super) fn book() -> Markup {
    drawn("M6 4h11.5v16H6.5A2 2 0 0 1 4.5 18V5.5A1.5 1.5 0 0 1 6 4zM4.5 18a2 2 0 0 1 2-2h11M8.5 8h5")
}

/// A finger on a button, for taps and clicks.
pub(super) fn tap() -> Markup {
    drawn("M9.5 13V6a1.7 1.7 0 0 1 3.4 0v5l4.3 1.2a2 2 0 0 1 1.4 2.3l-1 5H10l-4-5.2c-.8-1 .7-2.4 1.7-1.5z")
}
