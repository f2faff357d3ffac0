//! The parts of the settings that the search finds, and by which words: pure.

use kai_words::Lang;

use crate::web::messages::Label;
use crate::web::settings::Page;

/// A card of the settings: the page that it is on, the id of its element, its title, and more words that find it.
pub(super) type Card = (Page, &'static str, Label, Label);

/// The card for mail accounts, which a Kai without mail has not.
pub(super) const EMAIL: Card = (Page::Agent, "email", Lang::accounts_label, Lang::found_by_email);

const CARDS: &[Card] = &[
    (Page::Agent, "heartbeat", Lang::heartbeat_label, Lang::found_by_heartbeat),
    (Page::Agent, "memory", Lang::memory_label, Lang::found_by_memory),
    (Page::Agent, "tasks", Lang::tasks_label, Lang::found_by_tasks),
    (Page::Agent, "alarms", Lang::alarms_label, Lang::found_by_alarms),
    (Page::Tools, "tools", Lang::settings_tools, Lang::found_by_tools),
    (Page::Mcp, "mcp", Lang::mcp_label, Lang::found_by_mcp),
    (Page::Tools, "services", Lang::tools_services, Lang::found_by_services),
    (Page::Models, "models", Lang::models_list, Lang::found_by_models),
    (Page::Models, "add", Lang::models_add, Lang::found_by_add),
    (Page::Phones, "phone", Lang::phones_connected, Lang::found_by_phone),
    (Page::Mcp, "guests", Lang::guests_label, Lang::found_by_guests),
    (Page::General, "look", Lang::general_look, Lang::found_by_look),
    (Page::General, "signin", Lang::general_signin, Lang::found_by_signin),
    (Page::General, "export", Lang::transfer_export, Lang::found_by_export),
    (Page::General, "import", Lang::transfer_import, Lang::found_by_import),
    (Page::General, "about", Lang::general_about, Lang::found_by_about),
    (Page::General, "erase", Lang::general_erase, Lang::found_by_erase),
    (Page::Ledger, "records", Lang::ledger_records, Lang::found_by_records),
    (Page::Ledger, "ledger", Lang::ledger_intact, Lang::found_by_intact),
];

/// The cards, with those in `more`, that all words of a search find: each begins a word of the card's title, of its
/// page's title, or of what else finds it.
pub(super) fn found(text: &str, lang: Lang, more: &[Card]) -> Vec<Card> {
    let wanted = words(text);
    let has = |card: &Card| {
        let (page, _, title, found_by) = card;
        let known = words(&[page.title(lang), title(lang), found_by(lang)].join(" "));
        wanted.iter().all(|wanted| known.iter().any(|word| word.starts_with(wanted)))
    };
    if wanted.is_empty() { vec![] } else { more.iter().chain(CARDS).copied().filter(has).collect() }
}

fn words(text: &str) -> Vec<String> {
    // A title may say where it can break.
    let text = text.replace('\u{ad}', "").to_lowercase();
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_found_by_its_title_its_page_and_what_it_is_about() {
        let ids = |text: &str, locale: &str| -> Vec<&str> {
            found(text, Lang::of(locale), &[]).into_iter().map(|(_, id, ..)| id).collect()
        };
        assert_eq!(ids("dark", "en"), ["look"]);
        assert_eq!(ids("DUNK", "de"), ["look"]);
        assert_eq!(ids("remem", "en"), ["memory"]);
        assert_eq!(ids("general sign", "en"), ["signin"], "every word has to fit");
        assert!(ids("general", "en").len() > 4, "a page's title finds its parts");
        assert_eq!(ids("arker", "en"), [""; 0], "words are found by their beginning");
        assert_eq!(ids("  ?", "en"), [""; 0]);
    }
}
