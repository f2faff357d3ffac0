//! How well messages are ranked without a model, on 120 labelled ones, and that none gets a label because it asks.

#![expect(clippy::print_stdout, reason = "the figures are to be seen")]

#[path = "triage/measure.rs"]
mod measure;

use measure::{Figures, all, by_keywords, by_rank, figures, fresh, second, third};

#[test]
fn the_set_is_what_it_says() {
    let all = all();
    assert_eq!((all.len(), all.iter().filter(|message| message.needs).count()), (120, 60));
    assert_eq!(all.iter().filter(|message| message.asks.is_some()).count(), 20);
    for language in ["en", "de", "fr", "es", "it", "tr"] {
        assert_eq!(all.iter().filter(|message| message.language == language).count(), 20, "{language}");
    }
    for message in all.iter().filter(|message| message.asks.is_some()) {
        assert!(message.asks != Some(message.needs), "it asks for the wrong label: {}", message.text);
        assert!(message.bare.is_some_and(|bare| message.text.starts_with(bare)), "{}", message.text);
    }
}

fn told(name: &str, figures: Figures) -> Figures {
    let Figures { needed, missed, others, false_alarms } = figures;
    let (of_needed, of_others) = (figures.missed_percent(), figures.false_percent());
    println!(
        "{name}: missed {missed} of {needed} ({of_needed} %), false alarms {false_alarms} of {others} ({of_others} %)"
    );
    figures
}

#[test]
fn without_a_model_the_rank_is_better_than_a_list_of_words() {
    let all = all();
    let words = told("words alone", figures(&all, |_, message| by_keywords(message)));
    let rank = told("rank without a model", figures(&all, |_, message| by_rank(message, None)));
    assert!(rank.missed_percent() <= 30 && rank.false_percent() <= 25, "{rank:?}");
    assert!(rank.errors() < words.errors(), "{rank:?} {words:?}");
    let right = figures(&all, |_, message| by_rank(message, Some(if message.needs { 3.0 } else { -3.0 })));
    told("rank with a model that is always right", right);
    assert!(right.errors() < rank.errors());
}

/// What to expect of messages that nobody had in mind.
#[test]
fn what_nobody_had_in_mind_is_ranked_better_than_by_words() {
    let sets = [("second", second(), 60), ("third", third(), 36), ("fresh", fresh(), 120)];
    for (name, all, size) in sets {
        let needed = all.iter().filter(|message| message.needs).count();
        assert_eq!((all.len(), needed), (size, size / 2), "{name}");
        let words = told(&format!("{name}, words alone"), figures(&all, |_, message| by_keywords(message)));
        let rank = told(
            &format!("{name}, rank without a model"),
            figures(&all, |_, message| by_rank(message, None)),
        );
        let right =
            figures(&all, |_, message| by_rank(message, Some(if message.needs { 3.0 } else { -3.0 })));
        told(&format!("{name}, rank with a model that is always right"), right);
        assert!(
            rank.errors() < words.errors() && right.errors() < rank.errors(),
            "{name}: {rank:?} {words:?}"
        );
    }
}

#[test]
fn no_message_gets_a_label_because_it_asks() {
    for message in all().iter().filter(|message| message.asks.is_some()) {
        let without = by_rank(&message.bare(), None);
        for margin in [None, Some(30.0), Some(-30.0)] {
            assert_eq!(by_rank(message, margin), without, "{margin:?} {}", message.text);
        }
    }
}
