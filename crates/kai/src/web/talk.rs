//! Renders a conversation: what the user said, Kai's answer and, folded, the tool calls behind it.

use kai_assistant::agent::continued;
use kai_assistant::agent::conversation::{self, ConversationId, Entry, Instead};
use kai_assistant::attachments::Attachment;
use kai_assistant::legible::spelled_out;
use kai_assistant::untrusted::Attached;
use kai_llm::{Message, ToolCall};
use kai_words::{Lang, said};
use maud::{Markup, html};
use serde_json::Value;

use super::remedy::Remedy;
use super::rewrite::Rewriting;
use super::rich::rich;
use super::times::Times;
use super::turns::{Ended, Sight};
use super::{attach, icons, markdown, messages};
use crate::asking::{self, FinishedCall};

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
    let mark = conversation::mark_of_last(entries).filter(|_| !telling.waits);
    let block = |(n, exchange): (usize, &Exchange<'_>)| {
        let standing = Standing {
            is_newest: newest == Some(n),
            is_last: n + 1 == all.len(),
            mark: mark.as_deref().filter(|_| newest == Some(n)),
        };
        telling.exchange(exchange, &standing).into_string()
    };
    all.iter().enumerate().map(block).collect()
}

/// Where an exchange stands among all of its conversation.
struct Standing<'a> {
    /// It is the last one that is no report.
    is_newest: bool,
    is_last: bool,
    /// Names its message, if that can be edited.
    mark: Option<&'a str>,
}

impl RenderContext<'_> {
    fn exchange(&self, exchange: &Exchange<'_>, standing: &Standing<'_>) -> Markup {
        let newest = standing.is_newest;
        let waits = newest && self.waits;
        let answered = exchange.replies.last().is_some_and(|reply| reply.is_answer());
        html! {
            li class="exchange" {
                (heading(exchange))
                @if let Some(Entry { message: Message::User { text, .. }, files, .. }) = exchange.asked {
                    (self.asked(text, files, exchange.has(self.hit).0))
                    @if let Some(mark) = standing.mark {
                        (Rewriting { id: self.id, csrf: self.csrf, mark, words: Attached::find(text).words }.form(self.lang))
                    }
                }
                (self.reply(exchange))
                (self.opened(exchange))
                @if answered || !waits { (self.done(exchange)) }
                @if answered { (self.foot(exchange, newest && !waits && exchange.asked.is_some())) }
                @else if !waits { (self.unanswered(exchange, standing)) }
            }
        }
    }

    /// Which model answered and when, and the buttons to copy the answer or to answer again.
    fn foot(&self, exchange: &Exchange<'_>, may_go_again: bool) -> Markup {
        let Some(last) = exchange.replies.last() else { return html! {} };
        let answered = said::talk_answered_by(messages::model_name(
            last.answered_by.as_deref().unwrap_or("Kai"),
            self.lang,
        ));
        html! {
            @if let Some(instead) = &last.instead { (self.instead(instead, last.answered_by.as_deref())) }
            footer class="foot quiet" {
                span { (rich(&answered, self.lang, |name| html! { bdi { (name) } })) " · " (self.times.moment(last.at)) }
                button type="button" class="small js-only" data-copy data-testid="chat-copy" { (icons::copy()) (self.lang.talk_copy()) }
                @if may_go_again { (self.again(self.lang.talk_again())) }
                (self.cost(exchange))
            }
        }
    }

    /// Why another model answered than the one that was asked first, and where that can be mended.
    fn instead(&self, instead: &Instead, answered_by: Option<&str>) -> Markup {
        let name = |name: &str| html! { bdi { (name) } };
        let told = said::talk_instead(&instead.of, answered_by.unwrap_or("Kai"));
        html! {
            p class="remark" data-testid="chat-instead" {
                (rich(&told, self.lang, name))
                @if let Some(why) = &instead.why { " " (rich(why, self.lang, name)) }
                @if let Some(fault) = instead.fault { " " (Remedy::model(&instead.of, fault).link(self.lang)) }
            }
        }
    }

    /// What the answer cost, folded: tokens and time, of all requests together.
    fn cost(&self, exchange: &Exchange<'_>) -> Markup {
        let usages = || exchange.replies.iter().filter_map(|reply| reply.usage);
        let read: u64 = usages().map(|usage| usage.input).fold(0, u64::saturating_add);
        let written: u64 = usages().map(|usage| usage.output).fold(0, u64::saturating_add);
        let took: Vec<u64> = exchange.replies.iter().filter_map(|reply| reply.took).collect();
        let lang = self.lang;
        let has_tokens = read > 0 || written > 0;
        if !has_tokens && took.is_empty() {
            return html! {};
        }
        html! {
            details class="cost" data-testid="cost" {
                summary class="button small" data-testid="cost-open" { (lang.talk_details()) }
                p {
                    @if has_tokens { (lang.talk_tokens(read, written)) }
                    @if has_tokens && !took.is_empty() { " · " }
                    @if !took.is_empty() { (lang.talk_took(span_of(took.iter().sum(), lang))) }
                }
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

    /// The button that sends a message again that the model refused because of its pictures.
    fn without_pictures(&self) -> Markup {
        html! {
            form method="post" action=(format!("/c/{}/without-pictures", self.id.0)) data-live {
                input type="hidden" name="csrf" value=(self.csrf);
                button type="submit" class="small" data-testid="chat-without-pictures" { (icons::again()) (self.lang.talk_again_without_pictures()) }
            }
        }
    }

    /// The button that goes on with an answer that was stopped.
    fn go_on(&self) -> Markup {
        html! {
            form method="post" action=(format!("/c/{}/continue", self.id.0)) data-live {
                input type="hidden" name="csrf" value=(self.csrf);
                button type="submit" class="small" data-testid="chat-continue" { (icons::down()) (self.lang.talk_continue()) }
            }
        }
    }

    /// Why there is no answer, what was shown of it so far, and buttons to go on. That the user stopped it is no trouble.
    fn unanswered(&self, exchange: &Exchange<'_>, standing: &Standing<'_>) -> Markup {
        let newest = standing.is_newest;
        let stopped = exchange.replies.last().is_some_and(|reply| reply.stopped);
        let goes_on = standing.is_last && exchange.replies.last().is_some_and(|reply| reply.is_stopped());
        let sight = self.sight.filter(|_| newest);
        let ended = sight.and_then(|sight| sight.ended.as_ref());
        // A stopped answer is stored and so among the replies. Until then, or if the turn failed, only the turn has it.
        let shown = sight.filter(|_| !stopped).map(|sight| sight.answer.as_str()).unwrap_or_default();
        html! {
            @if !shown.is_empty() { article class="answer broken" dir="auto" { (markdown::render(shown, self.lang)) } }
            @if stopped || ended == Some(&Ended::Stopped) {
                div class="stopped quiet" data-testid="chat-stopped" {
                    p { (self.lang.talk_stopped()) }
                    @if goes_on { (self.go_on()) }
                    @if newest { (self.again(self.lang.talk_try_again())) }
                }
            } @else {
                div class="trouble" data-testid="chat-error" {
                    p {
                        @if let Some(Ended::Failed(trouble)) = ended { (trouble.render(self.lang)) }
                        @else { (self.lang.talk_unanswered()) }
                    }
                    @if newest {
                        (self.again(self.lang.talk_try_again()))
                        @if shows_pictures(exchange) { (self.without_pictures()) }
                    }
                }
            }
        }
    }

    /// Says what every tool call did, folded, with the exact call and its result one tap further.
    fn done(&self, exchange: &Exchange<'_>) -> Markup {
        let calls = calls(exchange);
        html! {
            @if !calls.is_empty() {
                details class="did" data-testid="what-kai-did" {
                    summary data-testid="what-kai-did-summary" { (self.lang.talk_did(calls.len())) }
                    ol {
                        @for (call, result) in calls {
                            li { (self.call(call, result)) }
                        }
                    }
                }
            }
        }
    }

    fn call(&self, call: &ToolCall, result: Option<&str>) -> Markup {
        let (tool, title, arguments) = (&call.name, self.lang.tool_name(&call.name), &call.arguments);
        html! {
            p data-testid="did" dir="auto" { (FinishedCall { tool, title: &title, arguments, result }.says(self.lang)) }
            details class="exact" data-testid="did-exact" {
                summary { (self.lang.banners_exact_call()) }
                p { code { (spelled_out(tool)) } }
                pre dir="auto" { (spelled_out(arguments)) }
                @match result {
                    Some(result) => pre dir="auto" { (spelled_out(result)) },
                    None => p { (self.lang.talk_unfinished()) },
                }
            }
        }
    }

    /// The user's message, with its files, and attached text folded below it.
    fn asked(&self, text: &str, files: &[Attachment], is_hit: bool) -> Markup {
        let Attached { words, attachment, is_message } = Attached::find(text);
        html! {
            article class={ "said" @if words.is_empty() { " bare" } } id=[is_hit.then_some("hit")] data-testid="message-user" aria-label=(self.lang.talk_you()) dir="auto" {
                (words)
                (attach::shown(files, self.lang))
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
        let (texts, is_hit) = (texts(exchange), exchange.has(self.hit).1);
        html! {
            @if !texts.is_empty() {
                article class="answer" id=[is_hit.then_some("hit")] data-testid="message-assistant" aria-label="Kai" dir="auto" {
                    @for text in &texts { (markdown::render(text, self.lang)) }
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

/// What the model said, one text after the other. One that the user stopped is joined with what continued it.
fn texts(exchange: &Exchange<'_>) -> Vec<String> {
    let mut texts: Vec<String> = vec![];
    let mut was_stopped = false;
    for reply in &exchange.replies {
        let Message::Assistant { text, .. } = &reply.message else { continue };
        let goes_on = std::mem::replace(&mut was_stopped, reply.is_stopped());
        match texts.last_mut().filter(|_| goes_on) {
            Some(stopped) => *stopped = continued::joined(stopped, text),
            None if text.trim().is_empty() => {}
            None => texts.push(text.clone()),
        }
    }
    texts
}

/// A number of milliseconds in words.
fn span_of(ms: u64, lang: Lang) -> String {
    if ms < 1000 {
        return lang.talk_took_ms(ms);
    }
    asking::span(i64::try_from(ms / 1000).unwrap_or(i64::MAX), lang)
}

/// What a screen reader finds an exchange by: the beginning of what the user said.
fn heading(exchange: &Exchange<'_>) -> Markup {
    let asked = exchange.asked.and_then(|entry| match &entry.message {
        Message::User { text, .. } => Some(Attached::find(text).words),
        Message::Assistant { .. } | Message::Tool { .. } => None,
    });
    let words = |text: &str| text.split_whitespace().take(HEADING_WORDS).collect::<Vec<_>>().join(" ");
    let heading = asked.map(words).filter(|words| !words.is_empty()).unwrap_or_else(|| "Kai".to_owned());
    html! { h2 class="seen-not" dir="auto" { (heading) } }
}

fn shows_pictures(exchange: &Exchange<'_>) -> bool {
    exchange.asked.is_some_and(|asked| asked.files.iter().any(Attachment::is_picture))
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
                @if !sight.questions.is_empty() {
                    span id="waits-for-you" { (lang.talk_waits_for_you()) }
                } @else if let Some(percent) = sight.reading {
                    span id="waits-reading" { (lang.talk_reading(usize::from(percent))) }
                } @else {
                    span class="waits-words" data-keep id="waits-words" {
                        span class="on" { (lang.talk_thinking()) } span { (lang.talk_working()) } span { (lang.talk_brewing()) }
                    }
                }
            }
            @for running in &sight.tools {
                span class="chip tool" data-testid="tool-chip" { (icons::build()) (lang.tool_name(&running.tool)) @if !running.progress.is_empty() { " · " bdi { (running.progress) } } }
            }
        }
    }
}
