//! Asks a model which of two answers to a request it finds likelier.

use std::sync::Arc;

use kai_llm::{Reply, Request, Usage, request_tokens};

use super::{Driver, Meter, TurnError};
use crate::ledger::{self, Held};

impl Driver<'_> {
    /// How much likelier the first model finds the first answer than the second; `None` if it does not tell. The ledger
    /// records the request before it is made.
    pub async fn prefers(
        &self,
        request: &Request,
        answers: [&str; 2],
        meter: &Arc<Meter>,
    ) -> Result<Option<f32>, TurnError> {
        let ready = self.models.first().ok_or(TurnError::NoModel)?;
        let Some(judging) = ready.model.prefers(request, answers) else { return Ok(None) };
        let (now, model, body) = (self.clock.now(), ready.label.clone(), ready.model.body(request));
        let held = Held { seen: self.shown.to_vec(), files: vec![], here: ready.local };
        self.db.write(move |tx| ledger::request(tx, 0, &model, &body, held, now)).await?;
        // The examples before the last message are read once and kept.
        let messages = request.messages.last().cloned().into_iter().collect();
        meter.leaves(request_tokens(&Request { messages, ..Request::default() }));
        match judging.await {
            Ok(margin) => {
                // It says nothing but a number, so there is only what it read.
                meter.answered(&Reply::default());
                Ok(Some(margin))
            }
            Err(error) => {
                meter.failed(&error);
                let (label, usage) = (ready.label.clone(), Usage::default());
                Err(TurnError::Model { label, error, usage })
            }
        }
    }
}
