//! Builds a reply from Gemini's events. Pure.

use super::wire::{Answer, Candidate, SaidCall, SaidPart};
use crate::draft::{Draft, End};
use crate::ids::IdGenerator;
use crate::model::Deltas;
use crate::wire::{Progress, Reader, read};
use crate::{ModelError, Reply, Usage, refusal};

pub(super) struct Content {
    model: String,
    draft: Draft,
    made_up: IdGenerator,
}

impl Content {
    pub(super) fn new(model: &str) -> Self {
        Self { model: model.to_owned(), draft: Draft::default(), made_up: IdGenerator::random() }
    }

    fn candidate(&mut self, candidate: Candidate, deltas: Deltas<'_>) -> Result<(), ModelError> {
        for part in candidate.content.into_iter().flat_map(|said| said.parts) {
            self.part(part, deltas)?;
        }
        if let Some(reason) = candidate.finish_reason {
            self.draft.end = Some(end(&reason, candidate.finish_message));
        }
        Ok(())
    }

    fn part(&mut self, part: SaidPart, deltas: Deltas<'_>) -> Result<(), ModelError> {
        if part.thought {
            return Ok(());
        }
        if let Some(SaidCall { id, name, args }) = part.function_call {
            let call = self.draft.call(id.as_deref(), &name)?;
            call.arguments = args.map_or_else(|| "{}".to_owned(), |raw| raw.get().to_owned());
            call.signature = part.thought_signature;
            return Ok(());
        }
        self.draft.say(part.text.as_deref().unwrap_or_default(), deltas);
        // In a stream, the signature of a text may arrive late, on a part without text.
        if part.thought_signature.is_some() {
            self.draft.signature = part.thought_signature;
        }
        Ok(())
    }
}

fn end(reason: &str, message: Option<String>) -> End {
    let why = || message.map_or_else(|| reason.to_owned(), |message| format!("{reason}: {message}"));
    match reason {
        "STOP" | "FINISH_REASON_UNSPECIFIED" => End::Done,
        "MAX_TOKENS" => End::CutOff,
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "MALFORMED_RESPONSE" | "OTHER" => {
            End::Malformed { why: why() }
        }
        // SAFETY, RECITATION, PROHIBITED_CONTENT and similar reasons.
        _ => End::Blocked { why: why() },
    }
}

impl Reader for Content {
    fn take(&mut self, data: &str, deltas: Deltas<'_>) -> Result<(), ModelError> {
        let out_of_shape = || refusal::out_of_shape(data, &self.model);
        let answer: Answer = read(data).map_err(|garbled| out_of_shape().unwrap_or(garbled))?;
        if let Some(error) = answer.error {
            return Err(refusal::inside(&error, &self.model));
        }
        if let Some(why) = answer.prompt_feedback.and_then(|feedback| feedback.block_reason) {
            return Err(ModelError::Blocked { why });
        }
        if let Some(tokens) = answer.usage_metadata {
            self.draft.usage = Usage {
                input: tokens.prompt.saturating_add(tokens.tool_use),
                output: tokens.candidates.saturating_add(tokens.thoughts),
            };
        }
        if let Some(candidate) = answer.candidates.into_iter().next() {
            self.candidate(candidate, deltas)?;
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
