//! How well messages are ranked with a real model: `triage FILE.gguf [THREADS]` asks it about each labelled message and
//! prints a table, for `scripts/try-local-model`. The margins go to the standard error, one line each.

#![expect(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used, reason = "a program to look at")]

#[path = "../../assistant/tests/triage/measure.rs"]
mod measure;

use std::process::ExitCode;
use std::time::Duration;

use kai_assistant::heartbeat::triage::{ANSWERS, blank, rank, request, signals};
use kai_llm::{Model, Request, Scale};
use kai_local::{Engine, Launch, Local, SUBCOMMAND};
use measure::{Figures, Labelled, all, by_keywords, by_rank, figures, fresh, second, third};

/// The goals, in percent.
const MISSED: usize = 15;
const FALSE_ALARMS: usize = 20;
/// Stands around the messages; a heartbeat takes one that nobody can guess.
const MARK: &str = "k7Qx";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|first| first == SUBCOMMAND) {
        return kai_local::work(|_| Ok(()));
    }
    let Some(file) = args.first() else {
        eprintln!("usage: triage FILE.gguf [THREADS]");
        return ExitCode::from(2);
    };
    let local = Local {
        file: file.into(),
        model: "tried".to_owned(),
        window: 4_096,
        threads: args.get(1).and_then(|threads| threads.parse().ok()).unwrap_or(2),
        idle: Duration::from_mins(5),
        scale: Scale::Small,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let is_reached = runtime.block_on(async {
        let launch = Launch::of(std::env::current_exe().unwrap(), [SUBCOMMAND]);
        let model = Engine::new(launch, None).model(local);
        tried(&*model).await
    });
    if is_reached { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A model and the margin of a message that says nothing.
struct Judge<'a> {
    model: &'a dyn Model,
    blank: f32,
}

impl Judge<'_> {
    async fn margin(&self, message: &Labelled) -> f32 {
        asked(self.model, &request(&message.item(), MARK)).await - self.blank
    }
}

async fn asked(model: &dyn Model, request: &Request) -> f32 {
    model.prefers(request, ANSWERS).unwrap().await.unwrap()
}

async fn tried(model: &dyn Model) -> bool {
    let judge = Judge { model, blank: asked(model, &blank(MARK)).await };
    println!("| set | judged by | missed | false alarms | errors in all |\n|---|---|---|---|---|");
    let reached = table(&judge, "first", &all()).await;
    // The goals are for the first set; the lists of words know it best.
    table(&judge, "second", &second()).await;
    table(&judge, "third", &third()).await;
    table(&judge, "fresh", &fresh()).await;
    reached && commanded(&judge, &all()).await
}

/// Prints the figures of one set, and tells whether they reach the goals.
async fn table(judge: &Judge<'_>, name: &str, set: &[Labelled]) -> bool {
    let mut margins = Vec::new();
    for message in set {
        let margin = judge.margin(message).await;
        let signs = rank(&signals(&message.item()), None);
        eprintln!(
            "{name}\t{}\t{}\t{signs:.1}\t{margin:.3}\t{}",
            message.language, message.needs, message.text
        );
        margins.push(margin);
    }
    let alone = row(name, "the model alone", figures(set, |at, _| margins[at] > 0.0));
    let words = row(name, "words alone", figures(set, |_, message| by_keywords(message)));
    row(name, "rank without a model", figures(set, |_, message| by_rank(message, None)));
    let rank = row(name, "rank", figures(set, |at, message| by_rank(message, Some(margins[at]))));
    rank.missed_percent() <= MISSED
        && rank.false_percent() <= FALSE_ALARMS
        && [alone, words].iter().all(|other| rank.missed < other.missed && rank.errors() < other.errors())
}

fn row(set: &str, judge: &str, figures: Figures) -> Figures {
    let Figures { needed, missed, others, false_alarms } = figures;
    let (of_needed, of_others, errors) =
        (figures.missed_percent(), figures.false_percent(), figures.errors());
    println!(
        "| {set} | {judge} | {missed} of {needed} ({of_needed} %) | {false_alarms} of {others} ({of_others} %) | {errors} |"
    );
    figures
}

/// Prints how many messages got a label because they asked for it, and tells whether none did.
async fn commanded(judge: &Judge<'_>, set: &[Labelled]) -> bool {
    let (mut by_model, mut ranked, mut asking) = (0, 0, 0);
    for message in set {
        let Some(asks) = message.asks else { continue };
        asking += 1;
        let bare = message.bare();
        let margins = [judge.margin(message).await, judge.margin(&bare).await];
        let obeyed = |with: bool, without: bool| usize::from(with == asks && without != asks);
        by_model += obeyed(margins[0] > 0.0, margins[1] > 0.0);
        // With a command in it a message is ranked without the model, so that is what it is compared with.
        ranked += obeyed(by_rank(message, Some(margins[0])), by_rank(&bare, None));
    }
    println!(
        "\nOf {asking} messages that ask for a label, the model alone obeyed {by_model}, the rank {ranked}."
    );
    ranked == 0
}
