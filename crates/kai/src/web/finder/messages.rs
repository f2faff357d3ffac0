//! The parts of the settings that only the foss edition has, as far as this machine has them.

use kai_words::Lang;

use super::settings::Card;
use crate::app::App;
use crate::commands::{notifications, sms};
use crate::failure::Failure;
use crate::web::settings::Page;

pub(super) async fn cards(app: &App) -> Result<Vec<Card>, Failure> {
    let mut cards: Vec<Card> = vec![];
    if sms::is_supported(app).await? {
        cards.push((Page::Agent, "sms", Lang::sms_label, Lang::found_by_messages));
    }
    if notifications::is_supported(app).await? {
        let found_by = Lang::found_by_notifications;
        cards.push((Page::Agent, "notifications", Lang::notifications_label, found_by));
    }
    cards.push((Page::Phones, "paired", Lang::paired_label, Lang::found_by_paired));
    cards.push((Page::Phones, "pair", Lang::pairing_label, Lang::found_by_pair));
    Ok(cards)
}
