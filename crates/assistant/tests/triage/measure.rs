//! The labelled messages, and how many of them a way to judge gets wrong. An example that asks a real model for margins
//! can include this file too.

use kai_assistant::heartbeat::triage::{self, Item, Signal};

/// A message with the label that a person gave it.
#[derive(Debug, Clone)]
pub(crate) struct Labelled {
    pub(crate) language: &'static str,
    pub(crate) who: &'static str,
    pub(crate) title: &'static str,
    pub(crate) text: &'static str,
    /// The text without the sentence that commands a label, if it has one.
    pub(crate) bare: Option<&'static str>,
    pub(crate) person: bool,
    pub(crate) known: bool,
    pub(crate) needs: bool,
    /// The label that the message asks for: does it want attention?
    pub(crate) asks: Option<bool>,
}

impl Labelled {
    pub(crate) fn item(&self) -> Item<'static> {
        let Self { who, title, text, person, known, .. } = *self;
        Item { who, title, text, person, known, times: 1 }
    }

    /// The message without its command.
    pub(crate) fn bare(&self) -> Self {
        Self { text: self.bare.unwrap_or(self.text), ..self.clone() }
    }
}

/// The 120 labelled messages. They were written before the lists of words, but whoever wrote the lists knew them.
pub(crate) fn all() -> Vec<Labelled> {
    read(include_str!("messages.tsv"))
}

/// Another 60, written after the first lists. They showed what the lists lacked, so they are known by now, too.
pub(crate) fn second() -> Vec<Labelled> {
    read(include_str!("second.tsv"))
}

/// Another 36, written when lists and weights were done. The share of a model's margin was chosen with all three sets.
pub(crate) fn third() -> Vec<Labelled> {
    read(include_str!("third.tsv"))
}

/// Another 120, by an author who had seen no list, no weight and no other set, when all of them were settled. Nothing was
/// chosen by them, and nothing should be: they say what to expect of messages that nobody had in mind.
pub(crate) fn fresh() -> Vec<Labelled> {
    read(include_str!("fresh.tsv"))
}

fn read(file: &'static str) -> Vec<Labelled> {
    file.lines().filter(|line| !line.starts_with('#')).map(labelled).collect()
}

fn labelled(line: &'static str) -> Labelled {
    let columns: Vec<&str> = line.split('\t').collect();
    let [language, _, who, person, known, needs, asks, title, text, ..] = columns[..] else {
        panic!("too few columns: {line}")
    };
    Labelled {
        language,
        who,
        title,
        text,
        bare: columns.get(9).copied(),
        person: person == "person",
        known: known == "known",
        needs: needs == "attention",
        asks: (asks != "-").then_some(asks == "attention"),
    }
}

/// How often a way to judge is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Figures {
    pub(crate) needed: usize,
    pub(crate) missed: usize,
    pub(crate) others: usize,
    pub(crate) false_alarms: usize,
}

impl Figures {
    pub(crate) fn errors(&self) -> usize {
        self.missed + self.false_alarms
    }

    /// The share of what was needed that was missed, in percent.
    pub(crate) fn missed_percent(&self) -> usize {
        self.missed * 100 / self.needed.max(1)
    }

    /// The share of the others that raised an alarm, in percent.
    pub(crate) fn false_percent(&self) -> usize {
        self.false_alarms * 100 / self.others.max(1)
    }
}

pub(crate) fn figures(all: &[Labelled], judges: impl Fn(usize, &Labelled) -> bool) -> Figures {
    let mut figures = Figures::default();
    for (at, message) in all.iter().enumerate() {
        let is_top = judges(at, message);
        figures.needed += usize::from(message.needs);
        figures.others += usize::from(!message.needs);
        figures.missed += usize::from(message.needs && !is_top);
        figures.false_alarms += usize::from(!message.needs && is_top);
    }
    figures
}

/// Judges by the rank with this margin of a model.
pub(crate) fn by_rank(message: &Labelled, margin: Option<f32>) -> bool {
    triage::needs_attention(triage::rank(&triage::signals(&message.item()), margin))
}

/// Judges by words alone: any of those for danger, urgency, health, money and appointments.
pub(crate) fn by_keywords(message: &Labelled) -> bool {
    let listed = [Signal::Danger, Signal::Urgent, Signal::Health, Signal::Money, Signal::Appointment];
    triage::signals(&message.item()).iter().any(|signal| listed.contains(signal))
}
