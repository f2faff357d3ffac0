//! `kai ask` and `kai chat`: runs turns on the terminal.

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard};

use kai_assistant::agent::ApprovalRequest;
use kai_assistant::agent::conversation::{ConversationId, Entry, Which};
use kai_assistant::agent::turn::{End, ROUNDS};
use kai_assistant::lock::lock;
use kai_assistant::untrusted::Attached;
use kai_llm::Message;
use kai_words::Lang;
use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::{Config, Editor};
use serde::Deserialize;

use super::markdown::Markdown;
use super::{attach, codes, yes};
use crate::asking::ApprovalCall;
use crate::call::chats::{AskAnswer, AskFile};
use crate::call::drafts::{DraftRow, DraftsCall};
use crate::call::{Call, Event, ToolState};
use crate::caller::{Caller, Line, Watcher};
use crate::failure::Failure;
use crate::terminal::waiting::Waiting;
use crate::terminal::{input, out};

/// The longest text that can be asked.
const LONGEST: usize = 4 * 1024 * 1024;

pub(super) fn ask(
    caller: &Caller,
    words: &[String],
    files: &[PathBuf],
    chat: Which,
    json: bool,
) -> Result<ExitCode, Failure> {
    let files = files.iter().map(|file| attach::read(file)).collect::<Result<Vec<_>, _>>()?;
    let text = question(words)?;
    let terminal = Terminal::new(json);
    let line = caller.line()?;
    let answer: AskAnswer =
        line.call(Call::Ask { text, chat, files }, &terminal.watching()).inspect_err(|_| terminal.end())?;
    terminal.end();
    remark(&answer);
    point_to_draft(&line, &terminal);
    if json {
        out::json(&answer);
    }
    Ok(ExitCode::SUCCESS)
}

/// Says which draft waits, if Kai drafted one in this turn.
fn point_to_draft(line: &Line<'_>, terminal: &Terminal) {
    if !terminal.shown().drafted {
        return;
    }
    let call = Call::Drafts(DraftsCall::List);
    let rows: Vec<DraftRow> = line.call(call, &Terminal::quiet().watching()).unwrap_or_default();
    out::note(&codes::next_step(&rows));
}

/// Tells the user what they should know about an answer besides its text.
fn remark(answer: &AskAnswer) {
    if answer.cut_off {
        out::note("(The answer was cut off at the model's limit. Ask Kai to continue.)");
    }
    match answer.end {
        End::OutOfRounds => {
            out::note(&format!(
                "(Kai stopped after {ROUNDS} rounds of tool calls. This is the best answer so far.)"
            ));
        }
        End::Repeating => out::note(
            "(Kai stopped because the model kept repeating the same calls. This is the best answer so far.)",
        ),
        End::Answered => {}
    }
}

/// The typed text with piped input attached. The attachment is kept apart, because the user may not have written it.
fn question(words: &[String]) -> Result<String, Failure> {
    let mut text = words.join(" ");
    if input::is_piped() {
        let mut bytes = Vec::new();
        let limit = u64::try_from(LONGEST + 1).unwrap_or(u64::MAX);
        let read = input::piped().take(limit).read_to_end(&mut bytes);
        read.map_err(|e| Failure::failed(format!("Standard input could not be read: {e}.")))?;
        let given = String::from_utf8_lossy(&bytes);
        if !given.trim().is_empty() {
            text = Attached::to(&text, given.trim_end());
        }
    }
    if text.len() > LONGEST {
        let most = LONGEST / 1024 / 1024;
        return Err(Failure::failed(format!(
            "The text is longer than {most} MB, the most that Kai accepts at once. Send a part of it."
        )));
    }
    Ok(text)
}

/// Shows a turn: the answer on stdout, everything else on stderr.
#[derive(Clone)]
pub(super) struct Terminal {
    /// The answer is not printed as it streams in.
    silent: bool,
    /// Events are not shown at all.
    quiet: bool,
    colour: bool,
    shown: Arc<Mutex<Shown>>,
}

#[derive(Default)]
struct Shown {
    markdown: Markdown,
    /// The current line contains part of the answer.
    midway: bool,
    /// The conversation that the user's message is stored in.
    chat: Option<ConversationId>,
    /// The progress line, from when the message is stored until the turn ends.
    waiting: Option<Waiting>,
    /// Kai drafted a message in this turn.
    drafted: bool,
}

impl Shown {
    fn make_way(&self) {
        if let Some(waiting) = &self.waiting {
            waiting.make_way(self.midway);
        }
    }

    /// Keeps the progress line away while a question waits for its answer.
    fn hold(&self) {
        if let Some(waiting) = &self.waiting {
            waiting.make_way(true);
        }
    }
}

impl Terminal {
    pub(super) fn new(silent: bool) -> Self {
        let shown = Shown { markdown: Markdown::new(), ..Shown::default() };
        Self { silent, quiet: false, colour: out::has_person(), shown: Arc::new(Mutex::new(shown)) }
    }

    /// Shows nothing; only asks for approval.
    pub(super) fn quiet() -> Self {
        Self { quiet: true, ..Self::new(true) }
    }

    pub(super) fn watching(&self) -> Arc<dyn Watcher> {
        Arc::new(self.clone())
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        lock(&self.shown)
    }

    fn began(&self, chat: ConversationId) {
        let mut shown = self.shown();
        shown.chat = Some(chat);
        shown.waiting = Some(Waiting::start("Waiting for an answer (Ctrl-C to stop)"));
    }

    fn write(&self, text: &str) {
        let mut shown = self.shown();
        let text = if self.colour { shown.markdown.push(text) } else { out::plain(text) };
        shown.midway = if text.is_empty() { shown.midway } else { !text.ends_with('\n') };
        shown.make_way();
        out::text(&text);
    }

    /// Ends the current line, so that the next output starts on its own.
    fn end_line(&self) {
        let mut shown = self.shown();
        let rest = if self.colour { shown.markdown.finish() } else { String::new() };
        let midway = std::mem::take(&mut shown.midway) || !rest.is_empty();
        shown.make_way();
        if !self.silent && midway {
            out::text(&format!("{rest}\n"));
        }
    }

    /// Ends the turn's output.
    fn end(&self) {
        self.end_line();
        self.shown().waiting = None;
    }

    fn reading(&self, percent: u8) {
        if let Some(waiting) = &self.shown().waiting {
            waiting.has_read(percent);
        }
    }

    fn note(&self, text: &str) {
        self.end_line();
        out::note(text);
    }
}

impl Watcher for Terminal {
    fn sees(&self, event: &Event) {
        if self.quiet {
            return;
        }
        match event {
            Event::Began { chat } => self.began(*chat),
            Event::Delta { text } if !self.silent => self.write(text),
            Event::Tool { title, state: ToolState::Running, why: None, .. } => {
                self.note(&format!("[⚙ {title}]"));
            }
            Event::Tool { title, state: ToolState::Running, why: Some(how_far), .. } => {
                self.note(&format!("[⚙ {title}: {}]", kai_assistant::legible::visible(how_far)));
            }
            Event::Tool { title, state: ToolState::Failed, why, .. } => {
                let why = why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
                self.note(&format!("[✗ {title} failed{why}]"));
            }
            Event::Tool { tool, state: ToolState::Done, .. } => {
                self.shown().drafted |= codes::drafts(tool);
            }
            Event::Again { why, asking } => self.note(&format!("{why} {asking}")),
            Event::Reading { percent } => self.reading(*percent),
            Event::Delta { .. } | Event::Confirm { .. } | Event::Done { .. } | Event::Error { .. } => {}
        }
    }

    fn allows(&self, asking: &ApprovalRequest) -> Option<bool> {
        if !input::has_person() {
            return None;
        }
        self.end_line();
        self.shown().hold();
        let yes = yes::given(&question_about(asking), &exact(asking));
        self.shown().make_way();
        Some(yes)
    }
}

/// The language of the command line.
const LANG: Lang = Lang::ENGLISH;

/// The approval question. What to answer comes last, so that nothing can push it off the screen.
fn question_about(ApprovalRequest { call, about }: &ApprovalRequest) -> String {
    let (tool, arguments) = (call.name.as_str(), call.arguments.as_str());
    let card = ApprovalCall { tool, title: tool, arguments, about: about.as_deref() }.card(LANG);
    let mut lines = vec![card.why.to_owned(), card.says];
    for quote in &card.quotes {
        if card.quotes.len() > 1 && !quote.label.is_empty() {
            lines.push(format!("{}:", quote.label));
        }
        lines.extend(quote.text.lines().map(|line| format!("  │ {}", out::visible(line))));
    }
    lines.push(format!("{}? (type d to see the exact call)", card.yes));
    lines.join("\n")
}

fn exact(ApprovalRequest { call, .. }: &ApprovalRequest) -> String {
    format!("{} {}", out::visible(&call.name), out::visible(&call.arguments))
}

const HELP: &str = "Type a message. Press Ctrl-C to stop an answer, or Ctrl-D to quit.
  /attach F   attach the picture or text file F to your next message
  /new        start a new chat
  /help       show this help";

pub(super) fn chat(caller: &Caller, mut chat: Which) -> Result<ExitCode, Failure> {
    let line = caller.line()?;
    let config = Config::builder().auto_add_history(true).build();
    let broken = |e: &dyn std::fmt::Display| Failure::failed(format!("The terminal cannot be used: {e}."));
    let mut editor: Editor<(), MemHistory> =
        Editor::with_history(config, MemHistory::new()).map_err(|e| broken(&e))?;
    if let Which::Id(id) = chat {
        recall(&line, id, &mut editor)?;
    }
    out::note("Press Ctrl-D to quit, or type /help.");
    let mut files = vec![];
    loop {
        let typed = match editor.readline("› ") {
            Ok(typed) => typed,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(ExitCode::SUCCESS),
            Err(error) => return Err(broken(&error)),
        };
        match typed.trim() {
            "" => {}
            "/help" => out::note(&format!("{HELP}{}", codes::HELP)),
            "/new" => chat = Which::New,
            text if attach::named(text).is_some() => attach::add(&mut files, attach::named(text)),
            text => match codes::slash(text, chat) {
                Some(call) => said(&line, call),
                None if is_command(text) => out::complain(&format!("There is no command {text}. See: /help")),
                None => chat = one_turn(&line, text, std::mem::take(&mut files), chat),
            },
        }
    }
}

/// Whether it is a slash and one word of letters; a path such as `/etc/hosts` is not.
fn is_command(typed: &str) -> bool {
    typed.strip_prefix('/').is_some_and(|word| word.chars().all(|c| c.is_ascii_alphabetic()))
}

/// Runs one turn and returns the conversation to continue. A failed turn prints its error and does not end the chat.
fn one_turn(line: &Line<'_>, text: &str, files: Vec<AskFile>, chat: Which) -> Which {
    let (terminal, has_files) = (Terminal::new(false), !files.is_empty());
    let answered: Result<AskAnswer, Failure> =
        line.call(Call::Ask { text: text.to_owned(), chat, files }, &terminal.watching());
    terminal.end();
    point_to_draft(line, &terminal);
    match answered {
        Ok(answer) => {
            remark(&answer);
            Which::Id(answer.chat)
        }
        Err(failure) => {
            out::complain(&failure.to_string());
            // The user's message stays in the conversation that was created for it, if there is one.
            let kept = terminal.shown().chat;
            if has_files && kept.is_none() {
                out::note("Your message and its files were not sent. Attach them again to send them.");
            }
            kept.map_or(chat, Which::Id)
        }
    }
}

/// Makes a call and shows the sentence that answers it.
fn said(line: &Line<'_>, call: Call) {
    match line.call::<Sentence>(call, &Terminal::quiet().watching()) {
        Ok(now) => out::note(&now.says),
        Err(failure) => out::complain(&failure.to_string()),
    }
}

#[derive(Deserialize)]
struct Sentence {
    says: String,
}

/// Adds the user's earlier messages to the editor's history, so that the arrow keys bring them back.
fn recall(line: &Line<'_>, id: ConversationId, editor: &mut Editor<(), MemHistory>) -> Result<(), Failure> {
    let entries: Vec<Entry> = line.call(Call::ChatsShow { id }, &Terminal::quiet().watching())?;
    for entry in entries {
        if let Message::User { text, .. } = entry.message {
            drop(editor.add_history_entry(text));
        }
    }
    Ok(())
}
