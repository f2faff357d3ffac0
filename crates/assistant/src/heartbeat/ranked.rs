//! A heartbeat with a small model: it weighs every message by itself, and then only words what Kai composes.

use std::sync::Arc;

use kai_llm::{ModelError, Request, Usage};
use kai_words::Lang;

use super::brief::Brief;
use super::digest::{self, Asked, Entry};
use super::prompt::{Parts, Rendered};
use super::triage::{self, ANSWERS};
use crate::agent::conversation::ConversationId;
use crate::agent::turn::End;
use crate::agent::{Answer, Driver, Meter, TurnError};
use crate::gate::RunKind;

/// How often the final request is shortened after the model refused it as too long.
const SHORTER: usize = 3;

/// What came of it.
pub(super) struct RankedRun {
    pub(super) rendered: Rendered,
    /// Its text is the report.
    pub(super) answer: Result<Answer, TurnError>,
    /// The user is alerted to the report.
    pub(super) alerts: bool,
    /// The model said something about the tasks and candidates.
    pub(super) heard: bool,
}

/// Ranks what waits and composes the report. `parts` has the room of the model that is asked.
pub(super) async fn ask(driver: &Driver<'_>, parts: &Parts<'_>, lang: Lang, meter: &Arc<Meter>) -> RankedRun {
    let brief = parts.brief;
    let mut entries = digest::entries(brief);
    if let Err(error) = weigh(driver, brief, parts.mark, &mut entries, meter).await {
        let asked = Asked { text: String::new(), shown: vec![], has_more: false };
        let rendered = digest::rendered(brief, &asked, &[]);
        return RankedRun { rendered, answer: Err(error), alerts: true, heard: false };
    }
    let top = digest::top(&entries);
    let (asked, answer) = word(driver, parts, &top, lang, meter).await;
    let rendered = digest::rendered(brief, &asked, &top);
    let heard = answer.is_ok();
    let answer = match answer {
        // The signals say enough; nothing is told twice because a model was silent.
        Err(TurnError::Empty { label, usage }) if !brief.is_without_arrivals() => Ok(silent(label, usage)),
        answer => answer,
    };
    let mut alerts = true;
    let answer = answer.map(|answer| {
        let report = digest::report(brief, &entries, &asked, &answer.text, lang);
        alerts = report.alerts;
        Answer { text: report.text, ..answer }
    });
    RankedRun { rendered, answer, alerts, heard }
}

/// Lets the model weigh a message that says nothing, and then each message, one by one.
async fn weigh(
    driver: &Driver<'_>,
    brief: &Brief,
    mark: &str,
    entries: &mut [Entry<'_>],
    meter: &Arc<Meter>,
) -> Result<(), TurnError> {
    if !entries.iter().any(Entry::is_for_model) {
        return Ok(());
    }
    let blank = Driver { kind: RunKind::Heartbeat, level: brief.level(), shown: &[], ..*driver };
    let blank = blank.prefers(&triage::blank(mark), ANSWERS, meter).await?;
    for entry in entries.iter_mut().filter(|entry| entry.is_for_model()) {
        let shown = [entry.arrival.identity.clone()];
        let driver = Driver { kind: RunKind::Heartbeat, level: brief.level(), shown: &shown, ..*driver };
        let margin = driver.prefers(&triage::request(&entry.item(), mark), ANSWERS, meter).await?;
        entry.ranked(margin.zip(blank).map(|(margin, blank)| margin - blank));
    }
    Ok(())
}

/// Asks the model for its words, if there is anything to word.
async fn word(
    driver: &Driver<'_>,
    parts: &Parts<'_>,
    top: &[&Entry<'_>],
    lang: Lang,
    meter: &Arc<Meter>,
) -> (Asked, Result<Answer, TurnError>) {
    let mut parts = *parts;
    for _ in 0..SHORTER {
        let asked = digest::asked(&parts, top, lang);
        if asked.text.is_empty() {
            let label = driver.models.first().map(|ready| ready.label.clone()).unwrap_or_default();
            return (asked, Ok(silent(label, Usage::default())));
        }
        let answer = word_once(driver, parts.brief, &asked, top, meter).await;
        if !matches!(&answer, Err(TurnError::Model { error: ModelError::TooLong { .. }, .. })) {
            return (asked, answer);
        }
        parts.room /= 2;
    }
    let asked = digest::asked(&parts, top, lang);
    let answer = word_once(driver, parts.brief, &asked, top, meter).await;
    (asked, answer)
}

async fn word_once(
    driver: &Driver<'_>,
    brief: &Brief,
    asked: &Asked,
    top: &[&Entry<'_>],
    meter: &Arc<Meter>,
) -> Result<Answer, TurnError> {
    let shown: Vec<String> = asked.shown.iter().map(|at| top[*at].arrival.identity.clone()).collect();
    let driver = Driver { kind: RunKind::Heartbeat, level: brief.level(), shown: &shown, ..*driver };
    driver.worded(asked.text.clone(), meter).await
}

/// An answer without words.
fn silent(answered_by: String, usage: Usage) -> Answer {
    let (text, conversation, end) = (String::new(), ConversationId(0), End::Answered);
    Answer { text, conversation, end, cut_off: false, answered_by, usage }
}

/// Every request of such a run. The last one is as it would be if the model found both answers equally likely.
pub(super) fn requests(parts: &Parts<'_>, lang: Lang) -> Vec<Request> {
    let entries = digest::entries(parts.brief);
    let singly = entries.iter().filter(|entry| entry.is_for_model());
    let mut requests: Vec<Request> = singly.map(|entry| triage::request(&entry.item(), parts.mark)).collect();
    if !requests.is_empty() {
        requests.insert(0, triage::blank(parts.mark));
    }
    let asked = digest::asked(parts, &digest::top(&entries), lang);
    if !asked.text.is_empty() {
        requests.push(Request { messages: vec![kai_llm::Message::user(asked.text)], ..Request::default() });
    }
    requests
}
