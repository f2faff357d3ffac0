//! A reply while it is being received, shared by all formats.

use std::collections::HashSet;

use crate::detail::Detail;
use crate::ids::IdGenerator;
use crate::model::{Delta, Deltas};
use crate::wire::Progress;
use crate::{CallId, ModelError, Reply, ToolCall, Usage};

/// Why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    Done,
    CutOff,
    Blocked {
        why: String,
    },
    /// The model wrote an invalid tool call.
    Malformed {
        why: String,
    },
}

/// Most tool calls accepted in one reply. A model that asks for more has gone wrong, and running them all could bring
/// the machine down.
pub(crate) const MOST_CALLS: usize = 128;

/// The reply received so far.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) text: String,
    pub(crate) signature: Option<String>,
    /// Until the reply is finished, an id may be empty or a duplicate.
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) usage: Usage,
    pub(crate) end: Option<End>,
    closed: bool,
}

impl Draft {
    /// Marks the answer as complete. The server may not have given a stop reason.
    pub(crate) fn close(&mut self) {
        self.end.get_or_insert(End::Done);
        self.closed = true;
    }

    pub(crate) fn progress(&self) -> Progress {
        match (&self.end, self.closed) {
            (None, _) => Progress::Open,
            (Some(_), false) => Progress::Ended,
            (Some(_), true) => Progress::Closed,
        }
    }

    /// Appends text and passes it on to the caller.
    pub(crate) fn say(&mut self, text: &str, deltas: Deltas<'_>) {
        if !text.is_empty() {
            deltas(Delta::Text(text));
            self.text.push_str(text);
        }
    }

    /// Starts a new tool call.
    pub(crate) fn call(&mut self, id: Option<&str>, name: &str) -> Result<&mut ToolCall, ModelError> {
        if self.calls.len() >= MOST_CALLS {
            return Err(ModelError::Garbled { what: Detail::TooManyCalls(MOST_CALLS) });
        }
        let id = CallId(id.unwrap_or_default().to_owned());
        self.calls.push(ToolCall { id, name: name.to_owned(), arguments: String::new(), signature: None });
        let last = self.calls.len() - 1;
        Ok(&mut self.calls[last])
    }

    /// Turns the draft into a reply. `made_up` supplies ids for calls whose id is missing or a duplicate.
    pub(crate) fn finish(mut self, mut made_up: IdGenerator) -> Result<Reply, ModelError> {
        let silent = self.text.trim().is_empty() && self.calls.is_empty();
        let cut_off = match self.end {
            None => return Err(ModelError::Garbled { what: Detail::BreaksOff }),
            Some(End::Blocked { why }) if silent => return Err(ModelError::Blocked { why }),
            Some(End::Malformed { why }) if self.calls.is_empty() => {
                return Err(ModelError::Garbled { what: why.into() });
            }
            Some(End::Done) => false,
            Some(End::CutOff | End::Blocked { .. } | End::Malformed { .. }) => true,
        };
        let mut seen = HashSet::new();
        for call in &mut self.calls {
            while call.id.0.is_empty() || !seen.insert(call.id.clone()) {
                call.id = made_up.id();
            }
        }
        let Self { text, signature, calls, usage, .. } = self;
        Ok(Reply { text, calls, signature, usage, cut_off })
    }
}
