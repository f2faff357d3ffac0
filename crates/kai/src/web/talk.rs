//! Renders a conversation: what the user said, Kai's answer and, folded, the tool calls behind it.

use kai_assistant::agent::conversation::{ConversationId, Entry};
use kai_assistant::untrusted::Attached;
use kai_llm::{Message, ToolCall};
use kai_words::{Lang, said};
use maud::{Markup, html};
use serde_json::Value;

use super::rich::rich;
use super::times::Times;
use super::turns::{Ended, Sight};
use super::{icons, markdown, messages};

/// How many words of a message are its heading.
const HEADING_WORDS: usize = 10;

/// Everything besides the entries that is needed to render a conversation.
pub(super) struct RenderContext<'a> {
    pub(super) id: ConversationId,
    pub(super) csrf: &'a str,
    pub(super) lang: Lang,
    pub(super) times: &'a Times,
    /// The turn that is running, or that ended without an answer.
    pub(super) sight: Option<&'a Sight>,
    /// Whether the newest message is being answered.
    pub(super) waits: bool,
    /// Which of the entries a search led to.
    pub(super) hit: Option<usize>,
}

/// A message of the user's and the replies to it. A report is an exchange without a message.
struct Exchange<'a> {
    /// How many entries stand before it.
    before: usize,
    asked: Option<&'a Entry>,
    replies: Vec<&'a Entry>,
}

impl Exchange<'_> {
    fn is_report(&self) -> bool {
        self.replies.first().is_some_and(|reply| reply.report)
    }

    /// Whether its question, or else one of its replies, is the entry with this number.
    fn has(&self, entry: Option<usize>) -> (bool, bool) {
        let Some(at) = entry.and_then(|entry| entry.checked_sub(self.before)) else { return (false, false) };
        let asked = usize::from(self.asked.is_some());
        (at < asked, (asked..asked + self.replies.len()).contains(&at))
    }
}

/// Groups the entries into exchanges: a new one begins with each user message, each report, and after an answer.
fn exchanges(entries: &[Entry]) -> Vec<Exchange<'_>> {
    let mut all: Vec<Exchange<'_>> = vec![];
    for (before, entry) in entries.iter().enumerate() {
        let asked = matches!(entry.message, Message::User { .. });
        let whole =
            |last: &Exchange<'_>| entry.report || last.replies.last().is_some_and(|reply| reply.is_answer());
        match all.last_mut() {
            Some(last) if !asked && !whole(last) => last.replies.push(entry),
            _ if asked => all.push(Exchange { before, asked: Some(entry), replies: vec![] }),
            _ => all.push(Exchange { before, asked: None, replies: vec![entry] }),
        }
    }
    all
}

/// Renders one HTML block per exchange, oldest first.
pub(super) fn blocks(entries: &[Entry], telling: &RenderContext<'_>) -> Vec<String> {
    let all = exchanges(entries);
    // A report that came later does not answer the user's last message.
    let newest = all.iter().rposition(|exchange| !exchange.is_report());
    let block =
        |(n, exchange): (usize, &Exchange<'_>)| telling.exchange(exchange, newest == Some(n)).into_string();
    all.iter().enumerate().map(block).collect()
}

impl RenderContext<'_> {
    fn exchange(&self, exchange: &Exchange<'_>, newest: bool) -> Markup {
        let waits = newest && self.waits;
        let answered = exchange.replies.last().is_some_and(|reply| reply.is_answer());
        html! {
            li class="exchange" {
                (self.heading(exchange))
                @if let Some(Entry { message: Message::User { text }, .. }) = exchange.asked {
                    (self.asked(text, exchange.has(self.hit).0))
                }
                (self.reply(exchange))
                (self.opened(exchange))
                @if answered || !waits { (self.done(exchange)) }
                @if answered { (self.foot(exchange, newest && !waits && exchange.asked.is_some())) }
                @else if !waits { (self.unanswered(exchange, newest)) }
            }
        }
    }

    /// What a screen reader finds an exchange by: the beginning of what the user said.
    fn heading(&self, exchange: &Exchange<'_>) -> Markup {
        let asked = exchange.asked.and_then(|entry| match &entry.message {
            Message::User { text, .. } => Some(Attached::find(text).words),
            Message::Assistant { .. } | Message::Tool { .. } => None,
        });
        let words = |text: &str| text.split_whitespace().take(HEADING_WORDS).collect::<Vec<_>>().join(" ");
        let heading = asked.map(words).filter(|words| !words.is_empty()).unwrap_or_else(|| "Kai".to_owned());
        html! { h2 class="seen-not" dir="auto" { (heading) } }
    }

    /// Which model answered and when, and the buttons to copy the answer or to answer again.
    fn foot(&self, exchange: &Exchange<'_>, may_go_again: bool) -> Markup {
        let Some(last) = exchange.replies.last() else { return html! {} };
        let answered = said::talk_answered_by(messages::model_name(
            last.answered_by.as_deref().unwrap_or("Kai"),
            self.lang,
        ));
        html! {
            footer class="foot quiet" {
                span { (rich(&answered, self.lang, |name| html! { bdi { (name) } })) " · " (self.times.moment(last.at)) }
                button type="button" class="small js-only" data-copy data-testid="chat-copy" { (icons::copy()) (self.lang.talk_copy()) }
                @if may_go_again { (self.again(self.lang.talk_again())) }
            }
        }
    }

    fn again(&self, label: &str) -> Markup {
        html! {
            form method="post" action=(format!("/c/{}/again", self.id.0)) data-live {
                input type="hidden" name="csrf" value=(self.csrf);
                button type="submit" class="small" data-testid="chat-again" { (icons::again()) (label) }
            }
        }
    }

    /// Why there is no answer, what was shown of it so far, and a button to try again.
    fn unanswered(&self, exchange: &Exchange<'_>, newest: bool) -> Markup {
        let stopped = exchange.replies.last().is_some_and(|reply| reply.stopped);
        let sight = self.sight.filter(|_| newest);
        let ended = sight.and_then(|sight| sight.ended.as_ref());
        // A stopped answer is stored and so among the replies. Until then, or if the turn failed, only the turn has it.
        let shown = sight.filter(|_| !stopped).map(|sight| sight.answer.as_str()).unwrap_or_default();
        html! {
            @if !shown.is_empty() { article class="answer broken" dir="auto" { (markdown::render(shown, self.lang)) } }
            div class="trouble" data-testid="chat-error" {
                p {
                    @match ended {
                        Some(Ended::Failed(trouble)) => (trouble.render(self.lang)),
                        Some(Ended::Stopped) => (self.lang.talk_stopped()),
                        None if stopped => (self.lang.talk_stopped()),
                        None => (self.lang.talk_unanswered()),
                    }
                }
                @if newest { (self.again(self.lang.talk_try_again())) }
            }
        }
    }

    /// Lists every tool call and its result, folded, so that the user can check them.
    fn done(&self, exchange: &Exchange<'_>) -> Markup {
        let calls = calls(exchange);
        html! {
            @if !calls.is_empty() {
                details class="did" data-testid="what-kai-did" {
                    summary data-testid="what-kai-did-summary" { (self.lang.talk_did(calls.len())) }
                    ol {
                        @for (call, result) in calls {
                            li {
                                strong { (self.lang.tool_name(&call.name)) } " " code { (call.name) }
                                pre dir="auto" { (call.arguments) }
                                @match result {
                                    Some(result) => pre dir="auto" { (result) },
                                    None => p { (self.lang.talk_unfinished()) },
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    /// The user's message, with attached text folded below it.
    fn asked(&self, text: &str, is_hit: bool) -> Markup {
        let Attached { words, attachment, is_message } = Attached::find(text);
        html! {
            article class="said" id=[is_hit.then_some("hit")] data-testid="message-user" aria-label=(self.lang.talk_you()) dir="auto" {
                (words)
                @if let Some(attachment) = attachment {
                    details class="attached" data-testid="attachment" {
                        summary {
                            @if is_message { (self.lang.talk_quoted()) }
                            @else { (self.lang.talk_attached(attachment.chars().count())) }
                        }
                        pre dir="auto" { (attachment) }
                    }
                }
            }
        }
    }

    /// Everything the model said in this exchange.
    fn reply(&self, exchange: &Exchange<'_>) -> Markup {
        let texts = exchange.replies.iter().filter_map(|reply| match &reply.message {
            Message::Assistant { text, .. } if !text.trim().is_empty() => Some(text),
            _ => None,
        });
        let texts: Vec<&String> = texts.collect();
        let is_hit = exchange.has(self.hit).1;
        html! {
            @if !texts.is_empty() {
                article class="answer" id=[is_hit.then_some("hit")] data-testid="message-assistant" aria-label="Kai" dir="auto" {
                    @for text in texts { (markdown::render(text, self.lang)) }
                }
            }
        }
    }

    /// Links for the `open_url` tool: the browser may be on another machine than Kai, so the user opens them.
    fn opened(&self, exchange: &Exchange<'_>) -> Markup {
        let opened = calls(exchange).into_iter().filter(|(call, _)| call.name == "open_url");
        let addresses: Vec<String> = opened.filter_map(|(_, result)| address(result?)).collect();
        html! {
            @for url in &addresses {
                a class="card open" data-testid="open-card" href=(url) target="_blank" rel="noopener noreferrer" {
                    (icons::outward())
                    span { strong { (self.lang.talk_open()) } span class="quiet" dir="ltr" { (url) } }
                }
            }
        }
    }
}

/// The tool calls of an exchange, each with its result once there is one.
fn calls<'a>(exchange: &Exchange<'a>) -> Vec<(&'a ToolCall, Option<&'a str>)> {
    let mut found: Vec<(&ToolCall, Option<&str>)> = vec![];
    for reply in &exchange.replies {
        match &reply.message {
            Message::Assistant { calls, .. } => found.extend(calls.iter().map(|call| (call, None))),
            Message::Tool { call: id, result, .. } => {
                // Some models reuse call ids, so the result belongs to the last call with this id that has none yet.
                let of_it =
                    |(call, result): &&mut (&ToolCall, Option<&str>)| call.id == *id && result.is_none();
                if let Some(open) = found.iter_mut().rev().find(of_it) {
                    open.1 = Some(result);
                }
            }
            Message::User { .. } => {}
        }
    }
    found
}

/// The address from a result of `open_url`. Only web addresses: files on this machine are opened by this machine.
fn address(result: &str) -> Option<String> {
    let result: Value = serde_json::from_str(result).ok()?;
    let opened = result.get("opened")?.as_str().filter(|_| result["success"] == true)?;
    (opened.starts_with("https://") || opened.starts_with("http://")).then(|| opened.to_owned())
}

/// Renders the running turn: its answer so far, and the row that shows what Kai is doing.
pub(super) fn turn(sight: Option<&Sight>, lang: Lang) -> Markup {
    let Some(sight) = sight.filter(|sight| sight.ended.is_none()) else { return html! {} };
    html! {
        @if !sight.answer.is_empty() {
            article class="answer coming" data-testid="message-assistant" aria-label="Kai" aria-busy="true" dir="auto" {
                (markdown::render(&sight.answer, lang))
            }
        }
        @if let Some(note) = &sight.note { p class="quiet note" { @for said in note { (rich(said, lang, |value| html! { bdi { (value) } })) " " } } }
        div class="waiting" {
            span class="chip waits" data-testid="waiting-chip" aria-hidden="true" {
                span class="pulse" {}
                @if sight.questions.is_empty() {
                    span class="waits-words" data-keep id="waits-words" {
                        span class="on" { (lang.talk_thinking()) } span { (lang.talk_working()) } span { (lang.talk_brewing()) }
                    }
                } @else {
                    span id="waits-for-you" { (lang.talk_waits_for_you()) }
                }
            }
            @for running in &sight.tools {
                span class="chip tool" data-testid="tool-chip" { (icons::build()) (lang.tool_name(&running.tool)) }
            }
        }
    }
}
