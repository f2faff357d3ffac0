//! Builds a reply from the events of the Messages API. Pure.

use super::wire::{Begun, Delta, Event, Tokens, Whole};
use crate::draft::{Draft, End};
use crate::ids::IdGenerator;
use crate::model::Deltas;
use crate::wire::{Progress, Reader, read};
use crate::{ModelError, Reply, refusal};

pub(super) struct Answer {
    model: String,
    draft: Draft,
    /// For each call in the draft, the index of its content block.
    blocks: Vec<usize>,
    made_up: IdGenerator,
}

impl Answer {
    pub(super) fn new(model: &str) -> Self {
        let (draft, blocks) = (Draft::default(), Vec::new());
        Self { model: model.to_owned(), draft, blocks, made_up: IdGenerator::random() }
    }

    fn begin(&mut self, index: usize, begun: Begun, deltas: Deltas<'_>) -> Result<(), ModelError> {
        match begun {
            Begun::Text { text } => self.draft.say(&text, deltas),
            Begun::ToolUse { id, name } => {
                self.draft.call(Some(&id), &name)?;
                self.blocks.push(index);
            }
            Begun::Other => {}
        }
        Ok(())
    }

    fn delta(&mut self, index: usize, delta: Delta, deltas: Deltas<'_>) {
        match delta {
            Delta::Text { text } => self.draft.say(&text, deltas),
            Delta::InputJson { partial_json } => {
                if let Some(place) = self.blocks.iter().position(|block| *block == index) {
                    self.draft.calls[place].arguments.push_str(&partial_json);
                }
            }
            Delta::Other => {}
        }
    }

    fn whole(&mut self, whole: Whole, deltas: Deltas<'_>) -> Result<(), ModelError> {
        for block in whole.content {
            match block.r#type.as_str() {
                "text" => self.draft.say(&block.text, deltas),
                "tool_use" => {
                    let call = self.draft.call(Some(&block.id), &block.name)?;
                    call.arguments = block.input.map(|raw| raw.get().to_owned()).unwrap_or_default();
                }
                _ => {}
            }
        }
        self.tokens(whole.usage);
        self.stop(whole.stop_reason.as_deref().unwrap_or("end_turn"));
        Ok(())
    }

    /// Updates the token counts. A count missing from a later event keeps its earlier value.
    fn tokens(&mut self, tokens: Option<Tokens>) {
        let Some(tokens) = tokens else { return };
        let cached = tokens.cache_written.unwrap_or(0).saturating_add(tokens.cache_read.unwrap_or(0));
        if let Some(input) = tokens.input {
            self.draft.usage.input = input.saturating_add(cached);
        }
        if let Some(output) = tokens.output {
            self.draft.usage.output = output;
        }
    }

    fn stop(&mut self, reason: &str) {
        self.draft.end = Some(match reason {
            "max_tokens" | "model_context_window_exceeded" => End::CutOff,
            "refusal" => End::Blocked { why: "refusal".to_owned() },
            _ => End::Done,
        });
    }
}

impl Reader for Answer {
    fn take(&mut self, data: &str, deltas: Deltas<'_>) -> Result<(), ModelError> {
        let out_of_shape = || refusal::out_of_shape(data, &self.model);
        match read(data).map_err(|garbled| out_of_shape().unwrap_or(garbled))? {
            Event::MessageStart { message } => self.tokens(message.usage),
            Event::ContentBlockStart { index, content_block } => self.begin(index, content_block, deltas)?,
            Event::ContentBlockDelta { index, delta } => self.delta(index, delta, deltas),
            Event::MessageDelta { delta, usage } => {
                self.tokens(usage);
                if let Some(reason) = delta.stop_reason {
                    self.stop(&reason);
                }
            }
            Event::MessageStop => self.draft.close(),
            Event::Message => self.whole(read(data)?, deltas)?,
            Event::Error { error } => return Err(refusal::inside(&error, &self.model)),
            Event::Other => return out_of_shape().map_or(Ok(()), Err),
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        self.draft.progress()
    }

    fn finish(mut self: Box<Self>) -> Result<Reply, ModelError> {
        for call in &mut self.draft.calls {
            if call.arguments.is_empty() {
                "{}".clone_into(&mut call.arguments);
            }
        }
        self.draft.finish(self.made_up)
    }
}
