//! Builds a reply from the events of a completion. Pure. Servers differ most in how they send tool calls.

use serde_json::Value;

use super::wire::{CallDelta, Choice, Chunk, Content, Delta, FunctionDelta};
use crate::draft::{Draft, End};
use crate::ids::IdGenerator;
use crate::model::Deltas;
use crate::wire::{Progress, Reader, read};
use crate::{ModelError, Reply, Usage, refusal};

pub(super) struct Completion {
    model: String,
    draft: Draft,
    /// For each call in the draft, the index the server gave it.
    indices: Vec<Option<usize>>,
    made_up: IdGenerator,
}

impl Completion {
    pub(super) fn new(model: &str) -> Self {
        let (draft, indices) = (Draft::default(), Vec::new());
        Self { model: model.to_owned(), draft, indices, made_up: IdGenerator::random() }
    }

    fn choice(&mut self, choice: Choice, deltas: Deltas<'_>) -> Result<(), ModelError> {
        let whole = choice.message.is_some();
        let delta = choice.message.or(choice.delta).unwrap_or_default();
        let Delta { content, refusal, tool_calls } = delta;
        match content {
            Some(Content::Text(text)) => self.draft.say(&text, deltas),
            Some(Content::Parts(parts)) => {
                // Other parts are the model's thinking, or something we did not ask for.
                let texts = parts.iter().filter(|part| part.r#type == "text");
                texts.filter_map(|part| part.text.as_deref()).for_each(|text| self.draft.say(text, deltas));
            }
            None => {}
        }
        self.draft.say(refusal.as_deref().unwrap_or_default(), deltas);
        for call in tool_calls.into_iter().flatten() {
            self.call(call)?;
        }
        match choice.finish_reason.as_deref() {
            Some(reason) if !reason.is_empty() => self.draft.end = Some(end(reason)),
            // A whole answer is complete even without a finish reason.
            _ if whole => self.draft.end = Some(End::Done),
            _ => {}
        }
        Ok(())
    }

    fn call(&mut self, delta: CallDelta) -> Result<(), ModelError> {
        let CallDelta { index, id, function } = delta;
        let FunctionDelta { name, arguments } = function.unwrap_or_default();
        let (id, name) = (id.filter(|id| !id.is_empty()), name.filter(|name| !name.is_empty()));
        let piece = match arguments {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(piece)) => piece,
            Some(other) => other.to_string(),
        };
        let new = New { index, id: id.as_deref(), name: name.as_deref(), piece: &piece };
        let call = if let Some(place) = self.place_of(&new) {
            &mut self.draft.calls[place]
        } else {
            self.indices.push(index);
            self.draft.call(None, "")?
        };
        if let (true, Some(id)) = (call.id.0.is_empty(), id) {
            call.id.0 = id;
        }
        if let (true, Some(name)) = (call.name.is_empty(), name) {
            call.name = name;
        }
        call.arguments.push_str(&piece);
        Ok(())
    }

    /// The position of the call that a delta continues; `None` if it starts a new call.
    ///
    /// By the specification the index decides. Some servers omit it and some send index 0 for every call; then a new
    /// id, or a name after arguments that are already complete, starts a new call.
    fn place_of(&self, new: &New<'_>) -> Option<usize> {
        let calls = &self.draft.calls;
        let place = match (new.index, new.id) {
            (Some(index), _) => self.indices.iter().rposition(|seen| *seen == Some(index))?,
            (None, Some(id)) => return calls.iter().rposition(|call| call.id.0 == id),
            (None, None) if new.name.is_some() => return None,
            (None, None) => calls.len().checked_sub(1)?,
        };
        let call = &calls[place];
        let other_id = new.id.is_some_and(|id| !call.id.0.is_empty() && call.id.0 != id);
        let named_again =
            new.id.is_none() && new.name.is_some() && !call.name.is_empty() && !new.piece.is_empty();
        let begins = other_id || (named_again && is_whole(&call.arguments));
        (!begins).then_some(place)
    }
}

/// What a delta says about the call it belongs to.
struct New<'a> {
    index: Option<usize>,
    id: Option<&'a str>,
    name: Option<&'a str>,
    piece: &'a str,
}

fn is_whole(arguments: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok()
}

fn end(reason: &str) -> End {
    match reason {
        "length" | "max_tokens" | "model_length" => End::CutOff,
        "content_filter" => End::Blocked { why: "content filter".to_owned() },
        // "stop", "tool_calls", "function_call", "eos" and whatever else servers send.
        _ => End::Done,
    }
}

impl Reader for Completion {
    fn take(&mut self, data: &str, deltas: Deltas<'_>) -> Result<(), ModelError> {
        if data.trim() == "[DONE]" {
            self.draft.close();
            return Ok(());
        }
        let chunk: Chunk = read(data)?;
        if let Some(error) = chunk.error {
            return Err(refusal::inside(&error, &self.model));
        }
        if let Some(tokens) = chunk.usage {
            let (input, output) = (tokens.prompt_tokens, tokens.completion_tokens);
            self.draft.usage = Usage { input: input.unwrap_or_default(), output: output.unwrap_or_default() };
        }
        let Some(choices) = chunk.choices else {
            return refusal::out_of_shape(data, &self.model).map_or(Ok(()), Err);
        };
        // We never ask for more than one choice.
        if let Some(choice) = choices.into_iter().next() {
            self.choice(choice, deltas)?;
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        self.draft.progress()
    }

    fn finish(self: Box<Self>) -> Result<Reply, ModelError> {
        self.draft.finish(self.made_up)
    }
}
