//! The engine: llama.cpp with one model and one context, in the worker.
//!
//! What a model has read stays in its memory as a state. A request reads only what differs from what was read before:
//! the conversation under way, one of a few kept states, or the state of the system prompt and the tools that lies
//! encrypted on the disk.

use std::num::NonZeroU32;
use std::path::Path;

use kai_llm::{Request, ToolSpec, Usage};
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;
use llama_cpp_2::token_type::LlamaTokenAttr;
use llama_cpp_2::vocab::LlamaVocab;
use llama_cpp_2::{LlamaStateSeqFlags, SeqState, ggml_time_us, json_schema_to_grammar};
use sha2::{Digest, Sha256};

use crate::calls::{self, Sight};
use crate::line::Line;
use crate::order::{Called, Done, Event, Failed, Load};
use crate::prompt::{CHATML, Template};
use crate::tags;

/// The most tokens of one answer.
const LONGEST_ANSWER: usize = 1_024;
/// The room that a prompt must leave for an answer.
const ROOM: usize = 256;
/// How long one step of reading may take. Each one reads the whole model from memory, so shorter ones would take clearly
/// more time; in between, the worker looks whether it should stop, and tells how far it is.
const STEP_MICROS: i64 = 5_000_000;
const LEAST_STEP: usize = 16;
const LARGEST_STEP: usize = 512;
/// The shortest beginning of a prompt whose state is worth a file.
const WORTH_KEEPING: usize = 128;
/// How many states are kept in memory, and how large they may be together.
const MOST_KEPT: usize = 6;
const MOST_KEPT_BYTES: usize = 192 * 1024 * 1024;
/// A state that goes less than this beyond the next prompt is not worth keeping.
const WORTH_RECALLING: usize = 32;
/// After how many tokens the worker gives a sign of life. On a slow machine each may take seconds.
const SIGN_EVERY: usize = 8;
/// The only sequence of the context.
const SEQUENCE: i32 = 0;

/// Why a question has no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    Stopped,
    TooLong,
    Failed(Failed),
}

fn broken(error: impl std::fmt::Display) -> Unanswered {
    Unanswered::Failed(Failed::Broken(error.to_string()))
}

/// Loads a model's file.
pub(crate) fn load(backend: &LlamaBackend, file: &Path) -> Result<LlamaModel, Failed> {
    // The engine stores the weights in an order that suits the processor. Mapped, the file would be in memory twice.
    let params = LlamaModelParams::default().with_use_mmap(false).with_n_gpu_layers(0);
    LlamaModel::load_from_file(backend, file, &params).map_err(|error| Failed::BadFile(error.to_string()))
}

/// A loaded model and what it has read.
pub(crate) struct Engine<'m> {
    model: &'m LlamaModel,
    context: LlamaContext<'m>,
    template: Template,
    window: usize,
    /// The tokens that the context has read.
    held: Vec<LlamaToken>,
    /// Other states, the most recently used last.
    kept: Vec<Kept>,
    /// How many tokens are read in one step.
    step: usize,
    /// It can forget the end of what it has read. Models with a recurrent part forget all or nothing.
    forgets_parts: bool,
}

struct Kept {
    tokens: Vec<LlamaToken>,
    state: SeqState,
}

/// A prompt as tokens.
struct Tokens {
    all: Vec<LlamaToken>,
    /// How many come before the first message.
    fixed: usize,
    /// How many come before the last message.
    before_last: usize,
}

impl<'m> Engine<'m> {
    pub(crate) fn new(model: &'m LlamaModel, backend: &LlamaBackend, load: &Load) -> Result<Self, Failed> {
        let trained = usize::try_from(model.n_ctx_train()).unwrap_or(usize::MAX);
        let window = load.window.min(trained);
        let threads = i32::try_from(load.threads.max(1)).unwrap_or(1);
        let params = LlamaContextParams::default()
            .with_n_ctx(u32::try_from(window).ok().and_then(NonZeroU32::new))
            .with_n_batch(u32::try_from(LARGEST_STEP).unwrap_or(512))
            .with_n_ubatch(u32::try_from(LARGEST_STEP).unwrap_or(512))
            .with_n_threads(threads)
            .with_n_threads_batch(threads)
            .with_no_perf(true);
        let context =
            model.new_context(backend, params).map_err(|error| Failed::Broken(error.to_string()))?;
        let template = template(model)?;
        let forgets_parts = !(model.is_recurrent() || model.is_hybrid());
        let (held, kept, step) = (vec![], vec![], 4 * LEAST_STEP);
        Ok(Self { model, context, template, window, held, kept, step, forgets_parts })
    }

    /// Answers a request.
    pub(crate) fn ask(&mut self, request: &Request, line: &mut Line) -> Result<Done, Unanswered> {
        let tokens = self.tokens(request)?;
        let reused = self.read_prompt(&tokens, line)?;
        let mut done = self.write(&tokens, &request.tools, line)?;
        done.reused = count(reused);
        done.usage.input = count(tokens.all.len());
        Ok(done)
    }

    /// How much likelier the first answer is than the second, as a difference of logarithms. The messages before the
    /// last one are examples, which stay the same from one request to the next.
    pub(crate) fn prefer(
        &mut self,
        request: &Request,
        answers: &[String; 2],
        line: &mut Line,
    ) -> Result<f32, Unanswered> {
        let mut tokens = self.tokens(request)?;
        tokens.fixed = tokens.before_last;
        self.read_prompt(&tokens, line)?;
        let first = self.context.get_logits().to_vec();
        let [a, b] = answers;
        let likelihood = self.likelihood(&first, a)?;
        if self.held.len() < tokens.all.len() {
            // The prompt was forgotten together with the first answer.
            self.read_prompt(&tokens, line)?;
        }
        Ok(likelihood - self.likelihood(&first, b)?)
    }

    /// The logarithm of the probability of an answer to the prompt that was just read, whose logits are `first`. A model
    /// that cannot forget a part forgets the prompt together with the answer.
    fn likelihood(&mut self, first: &[f32], answer: &str) -> Result<f32, Unanswered> {
        let tokens = self.model.vocab().tokenize(answer.as_bytes(), false, false);
        let began = self.held.len();
        let Some((head, rest)) = tokens.split_first() else { return Ok(f32::NEG_INFINITY) };
        let mut sum = probability(first, *head);
        let mut before = *head;
        for token in rest {
            self.advance(&[before])?;
            sum += probability(self.context.get_logits(), *token);
            before = *token;
        }
        self.forget_from(began)?;
        Ok(sum)
    }

    fn tokens(&self, request: &Request) -> Result<Tokens, Unanswered> {
        let prompt = self.template.render(request).map_err(|why| Unanswered::Failed(Failed::BadFile(why)))?;
        let vocab = self.model.vocab();
        let mut tokens = Tokens { all: vec![], fixed: 0, before_last: 0 };
        for (number, piece) in prompt.pieces.iter().enumerate() {
            if number == prompt.fixed {
                tokens.fixed = tokens.all.len();
            }
            if number == prompt.before_last {
                tokens.before_last = tokens.all.len();
            }
            if number == 0 && vocab.should_add_bos() {
                tokens.all.push(vocab.bos());
            }
            let text = &piece.text;
            let read = if piece.control { control(&vocab, text) } else { ordinary(&vocab, text) };
            tokens.all.extend(read);
        }
        if tokens.all.len() + ROOM > self.window { Err(Unanswered::TooLong) } else { Ok(tokens) }
    }

    /// Reads a prompt, except for what was read before. Returns how much that was.
    fn read_prompt(&mut self, tokens: &Tokens, line: &mut Line) -> Result<usize, Unanswered> {
        let reused = self.recall(tokens, line)?;
        if reused < tokens.fixed {
            self.read(&tokens.all[..tokens.fixed], tokens.all.len(), line)?;
            self.keep_fixed(line);
        }
        self.read(&tokens.all, tokens.all.len(), line)?;
        Ok(reused)
    }

    /// Brings back the state that shares the longest beginning with this prompt. Returns how long that is.
    fn recall(&mut self, tokens: &Tokens, line: &mut Line) -> Result<usize, Unanswered> {
        let prompt = &tokens.all;
        let here = common(&self.held, prompt);
        if self.held.len() > here + WORTH_RECALLING {
            self.keep_held();
        }
        let best = (0..self.kept.len()).max_by_key(|at| common(&self.kept[*at].tokens, prompt));
        if let Some(at) = best.filter(|at| common(&self.kept[*at].tokens, prompt) > here) {
            let kept = self.kept.remove(at);
            self.forget_from(0)?;
            if self.context.state_seq_set(&kept.state, SEQUENCE).is_ok() {
                self.held.clone_from(&kept.tokens);
            }
            self.kept.push(kept);
        }
        if common(&self.held, prompt) < tokens.fixed && tokens.fixed >= WORTH_KEEPING {
            self.fetch_fixed(&prompt[..tokens.fixed], line)?;
        }
        // The last token is always read again: its reading tells what comes next.
        let same = common(&self.held, prompt).min(prompt.len().saturating_sub(1));
        self.forget_from(same)?;
        Ok(self.held.len())
    }

    /// Keeps the state of what was read in memory.
    fn keep_held(&mut self) {
        if self.kept.iter().any(|kept| common(&kept.tokens, &self.held) == self.held.len()) {
            return;
        }
        if let Ok(state) = self.context.state_seq_get(SEQUENCE, LlamaStateSeqFlags::empty()) {
            self.kept.push(Kept { tokens: self.held.clone(), state });
        }
        let bytes = |kept: &[Kept]| kept.iter().map(|kept| kept.state.byte_len()).sum::<usize>();
        while self.kept.len() > MOST_KEPT || (bytes(&self.kept) > MOST_KEPT_BYTES && self.kept.len() > 1) {
            self.kept.remove(0);
        }
    }

    /// Has Kai keep the state of the system prompt and the tools, which was just read.
    fn keep_fixed(&mut self, line: &mut Line) {
        if self.held.len() < WORTH_KEEPING {
            return;
        }
        self.keep_held();
        let saved =
            line.memory().and_then(|path| self.context.state_seq_save_file(path, SEQUENCE, &self.held).ok());
        if saved.is_some() {
            line.keep(&key(&self.held));
        }
    }

    /// Asks Kai for the state of this beginning, and takes it over if there is one.
    fn fetch_fixed(&mut self, fixed: &[LlamaToken], line: &mut Line) -> Result<(), Unanswered> {
        if !line.fetch(&key(fixed)) {
            return Ok(());
        }
        self.forget_from(0)?;
        let Some(path) = line.memory_as_is() else { return Ok(()) };
        let loaded = self.context.state_seq_load_file(path, SEQUENCE, fixed.len());
        match loaded {
            Ok((tokens, _)) if tokens == fixed => self.held = tokens,
            _ => self.clear(),
        }
        Ok(())
    }

    /// Reads on to the end of `prompt`, in steps. `whole` is how much there is to read in all, for the percentage.
    fn read(&mut self, prompt: &[LlamaToken], whole: usize, line: &mut Line) -> Result<(), Unanswered> {
        let first = self.held.len();
        while self.held.len() < prompt.len() {
            if line.is_stopped() {
                return Err(Unanswered::Stopped);
            }
            if prompt.len() - first > LEAST_STEP {
                line.tell(&Event::Reading { percent: percent(self.held.len(), whole) });
            }
            let ahead = &prompt[self.held.len()..];
            let step = &ahead[..even_step(ahead.len(), self.step)];
            let began = ggml_time_us();
            self.advance(step)?;
            self.pace(step.len(), ggml_time_us() - began);
        }
        Ok(())
    }

    /// Adapts the step to the machine's speed, by one that was long enough to tell.
    fn pace(&mut self, read: usize, micros: i64) {
        if read < LEAST_STEP {
            return;
        }
        let micros = usize::try_from(micros.max(1)).unwrap_or(1);
        let step = read.saturating_mul(usize::try_from(STEP_MICROS).unwrap_or(1)) / micros;
        self.step = (step / LEAST_STEP * LEAST_STEP).clamp(LEAST_STEP, LARGEST_STEP);
    }

    /// Reads these tokens; the last one tells what comes next.
    fn advance(&mut self, tokens: &[LlamaToken]) -> Result<(), Unanswered> {
        let mut batch = LlamaBatch::new(tokens.len(), 1);
        for (number, token) in tokens.iter().enumerate() {
            let at = i32::try_from(self.held.len() + number).map_err(broken)?;
            batch.add(*token, at, &[SEQUENCE], number + 1 == tokens.len()).map_err(broken)?;
        }
        self.context.decode(&mut batch).map_err(broken)?;
        self.held.extend_from_slice(tokens);
        Ok(())
    }

    /// Forgets what was read from this place on.
    fn forget_from(&mut self, place: usize) -> Result<(), Unanswered> {
        if place >= self.held.len() {
            return Ok(());
        }
        let from = u32::try_from(place).map_err(broken)?;
        if self.forgets_parts && self.context.kv_cache_seq_rm(SEQUENCE, Some(from), None).is_ok() {
            self.held.truncate(place);
        } else {
            self.clear();
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.context.clear_kv_cache();
        self.held.clear();
    }

    /// Writes the answer to the prompt that was just read.
    fn write(&mut self, prompt: &Tokens, tools: &[ToolSpec], line: &mut Line) -> Result<Done, Unanswered> {
        let mut pen = Pen::new(self.model);
        let mut told = 0;
        let most = LONGEST_ANSWER.min(self.window - prompt.all.len());
        for _ in 0..most {
            if line.is_stopped() {
                return Err(Unanswered::Stopped);
            }
            let Some(token) = pen.next(&self.context, self.model) else {
                return Ok(pen.done(told, line, false));
            };
            give_sign(&pen, line);
            let written = pen.text();
            match calls::look(written, tools) {
                Sight::Text { certain } => told = tell(line, written, told, certain),
                Sight::Call { at } => {
                    told = tell(line, written, told, written[..at].trim_end().len());
                    let text = written[..told].to_owned();
                    let spent = pen.count;
                    return self.call(prompt, &text, tools, line).map(|done| done.after(spent));
                }
            }
            self.advance(&[token])?;
        }
        Ok(pen.done(told, line, true))
    }

    /// Writes a call: puts the canonical opening in place of what the model wrote, then lets it go on under a grammar
    /// that allows only calls of these tools.
    fn call(
        &mut self,
        prompt: &Tokens,
        text: &str,
        tools: &[ToolSpec],
        line: &mut Line,
    ) -> Result<Done, Unanswered> {
        self.forget_from(prompt.all.len())?;
        let vocab = self.model.vocab();
        let mut opening = ordinary(&vocab, text);
        let tag = if text.is_empty() { calls::OPENING.to_owned() } else { format!("\n{}", calls::OPENING) };
        opening.extend(control(&vocab, &tag));
        let before = [&prompt.all[..], &opening].concat();
        self.read(&before, before.len(), line)?;
        let grammar = json_schema_to_grammar(&calls::schema(tools)).map_err(broken)?;
        let mut pen = Pen::under(LlamaSampler::grammar(self.model, &grammar, "root").map_err(broken)?);
        let most = LONGEST_ANSWER.min(self.window.saturating_sub(before.len()));
        for _ in 0..most {
            if line.is_stopped() {
                return Err(Unanswered::Stopped);
            }
            let Some(token) = pen.next(&self.context, self.model) else { break };
            give_sign(&pen, line);
            self.advance(&[token])?;
        }
        let call = calls::parsed(pen.text()).map(|(name, arguments)| Called { name, arguments });
        let cut_off = call.is_none();
        let usage = Usage { input: 0, output: count(pen.count) };
        Ok(Done { text: text.to_owned(), call, usage, cut_off, reused: 0 })
    }
}

impl Done {
    fn after(mut self, spent: usize) -> Self {
        self.usage.output = self.usage.output.saturating_add(count(spent));
        self
    }
}

/// Tells the text up to `certain` that was not told yet. Returns how much is told now.
fn tell(line: &mut Line, written: &str, told: usize, certain: usize) -> usize {
    if certain <= told {
        return told;
    }
    line.tell(&Event::Text { text: written[told..certain].to_owned() });
    certain
}

/// Tells Kai now and then that the worker is alive: nothing of a call is told before its end.
fn give_sign(pen: &Pen, line: &mut Line) {
    if pen.count.is_multiple_of(SIGN_EVERY) {
        line.tell(&Event::Writing);
    }
}

/// Chooses tokens, and holds the text that they make.
struct Pen {
    choice: LlamaSampler,
    grammar: Option<LlamaSampler>,
    bytes: Vec<u8>,
    count: usize,
}

impl Pen {
    /// Writes freely. A small penalty on repetition keeps small models from going in circles.
    fn new(model: &LlamaModel) -> Self {
        let choice = LlamaSampler::chain_simple([
            LlamaSampler::penalties(model.n_vocab(), 256, 1.05, 0.0, 0.0),
            LlamaSampler::greedy(),
        ]);
        Self { choice, grammar: None, bytes: vec![], count: 0 }
    }

    /// Writes only what the grammar allows.
    fn under(grammar: LlamaSampler) -> Self {
        Self { choice: LlamaSampler::greedy(), grammar: Some(grammar), bytes: vec![], count: 0 }
    }

    /// The next token; `None` at the end.
    fn next(&mut self, context: &LlamaContext<'_>, model: &LlamaModel) -> Option<LlamaToken> {
        let token = match &mut self.grammar {
            None if self.count == 0 => {
                let token = beginning(context, model)?;
                self.choice.accept(token);
                token
            }
            None => self.choice.sample(context, -1),
            Some(grammar) => {
                let token = allowed(context, grammar)?;
                grammar.accept(token);
                token
            }
        };
        if model.vocab().is_eog(token) {
            return None;
        }
        self.count += 1;
        model.vocab().token_to_piece_into(token, &mut self.bytes, true, None);
        Some(token)
    }

    /// The text so far, without a character that is not complete yet.
    fn text(&self) -> &str {
        match std::str::from_utf8(&self.bytes) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&self.bytes[..error.valid_up_to()]).unwrap_or_default(),
        }
    }

    fn done(&self, told: usize, line: &mut Line, cut_off: bool) -> Done {
        let text = String::from_utf8_lossy(&self.bytes).into_owned();
        tell(line, &text, told, text.len());
        Done { text, call: None, usage: Usage { input: 0, output: count(self.count) }, cut_off, reused: 0 }
    }
}

/// The likeliest token that begins an answer: small models end some before the first word, and nobody is helped by those.
fn beginning(context: &LlamaContext<'_>, model: &LlamaModel) -> Option<LlamaToken> {
    let all = context.token_data_array();
    let goes_on = all.data.iter().filter(|token| !model.vocab().is_eog(token.id()));
    goes_on.max_by(|a, b| a.logit().total_cmp(&b.logit())).map(LlamaTokenData::id)
}

/// The likeliest token that the grammar allows. Checking one is cheap and checking all is not, so the likeliest of all
/// is tried first.
fn allowed(context: &LlamaContext<'_>, grammar: &mut LlamaSampler) -> Option<LlamaToken> {
    let mut all = context.token_data_array();
    let likeliest = all.data.iter().copied().max_by(|a, b| a.logit().total_cmp(&b.logit()))?;
    let mut one = LlamaTokenDataArray::new(vec![likeliest], false);
    grammar.apply(&mut one);
    if one.data.first().is_some_and(|token| token.logit().is_finite()) {
        return Some(likeliest.id());
    }
    grammar.apply(&mut all);
    let best = all.data.iter().max_by(|a, b| a.logit().total_cmp(&b.logit()))?;
    best.logit().is_finite().then(|| best.id())
}

/// The logarithm of a token's probability.
fn probability(logits: &[f32], token: LlamaToken) -> f32 {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = logits.iter().map(|logit| (logit - most).exp()).sum();
    let this = usize::try_from(token.0).ok().and_then(|at| logits.get(at));
    this.map_or(f32::NEG_INFINITY, |this| this - most - sum.ln())
}

/// The tokens of our own text, in which tags are meant.
fn control(vocab: &LlamaVocab<'_>, text: &str) -> Vec<LlamaToken> {
    vocab.tokenize(text.as_bytes(), false, true)
}

/// The tokens of what others wrote, in which nothing is a tag.
fn ordinary(vocab: &LlamaVocab<'_>, text: &str) -> Vec<LlamaToken> {
    let tokenize = |text: &str| vocab.tokenize(text.as_bytes(), false, false);
    tags::as_text(tokenize(text), tokenize, |token| tag(vocab, token))
}

/// The text of a tag that the tokenizer finds in any text; `None` for every other token.
fn tag(vocab: &LlamaVocab<'_>, token: LlamaToken) -> Option<String> {
    if !vocab.attr(token).contains(LlamaTokenAttr::UserDefined) {
        return None;
    }
    let text = vocab.text(token)?.to_str().ok()?;
    tags::is_tag(text).then(|| text.to_owned())
}

/// The template of a model's file, or a common one if its vocabulary knows that.
fn template(model: &LlamaModel) -> Result<Template, Failed> {
    let vocab = model.vocab();
    let piece = |token| String::from_utf8_lossy(&vocab.token_to_piece(token, true, None)).into_owned();
    let named = model.meta_val_str("tokenizer.chat_template").ok();
    let knows_chatml = vocab.tokenize(b"<|im_start|>", false, true).len() == 1;
    let source = named.or_else(|| knows_chatml.then(|| CHATML.to_owned()));
    let source = source.ok_or_else(|| Failed::BadFile("it has no chat template".to_owned()))?;
    // Where the tokenizer puts the first token, a template that does the same would double it.
    let begin = if vocab.should_add_bos() { String::new() } else { piece(vocab.bos()) };
    Template::new(&source, &begin, &piece(vocab.eos())).map_err(Failed::BadFile)
}

/// The length of the next step, if none may be longer than `most`: all steps are about as long, because a short last one
/// would take nearly as much time as a long one.
fn even_step(ahead: usize, most: usize) -> usize {
    let steps = ahead.div_ceil(most.max(1)).max(1);
    ahead.div_ceil(steps).next_multiple_of(LEAST_STEP).min(most).min(ahead)
}

/// The name under which the state after these tokens is kept.
fn key(tokens: &[LlamaToken]) -> String {
    let mut hash = Sha256::new();
    for token in tokens {
        hash.update(token.0.to_le_bytes());
    }
    let hash = hash.finalize();
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or('0');
    hash.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn common(a: &[LlamaToken], b: &[LlamaToken]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn percent(read: usize, whole: usize) -> u8 {
    u8::try_from(read * 100 / whole.max(1)).unwrap_or(100)
}

fn count(tokens: usize) -> u64 {
    u64::try_from(tokens).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
