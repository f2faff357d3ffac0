//! A reply as it grows, the same for all formats.

use std::collections::HashSet;

use crate::format::Progress;
use crate::ids::MadeUp;
use crate::model::Deltas;
use crate::{CallId, ModelError, Reply, ToolCall, Usage};

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    Done,
    CutOff,
    Blocked {
        why: String,
    },
    /// The model's own tool call was not well-formed.
    Malformed {
        why: String,
    },
}

/// A model that asks for more than this at once has lost its way, and running it all would take the machine with it.
pub(crate) const MOST_CALLS: usize = 128;

#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) text: String,
    pub(crate) signature: Option<String>,
    /// An id may be empty or occur twice until the reply is finished.
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) usage: Usage,
    pub(crate) end: Option<End>,
    closed: bool,
}

impl Draft {
    /// The server says that this was all, and perhaps has not said why.
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

    pub(crate) fn say(&mut self, text: &str, deltas: Deltas<'_>) {
        if !text.is_empty() {
            deltas(text);
            self.text.push_str(text);
        }
    }

    pub(crate) fn call(&mut self, id: Option<&str>, name: &str) -> Result<&mut ToolCall, ModelError> {
        if self.calls.len() >= MOST_CALLS {
            return Err(ModelError::garbled(format!("it calls more than {MOST_CALLS} tools at once")));
        }
        let id = CallId(id.unwrap_or_default().to_owned());
        self.calls.push(ToolCall { id, name: name.to_owned(), arguments: String::new(), signature: None });
        let last = self.calls.len() - 1;
        Ok(&mut self.calls[last])
    }

    /// `made_up` gives ids to calls that have none of their own.
    pub(crate) fn finish(mut self, mut made_up: MadeUp) -> Result<Reply, ModelError> {
        let silent = self.text.trim().is_empty() && self.calls.is_empty();
        let cut_off = match self.end {
            None => return Err(ModelError::garbled("it breaks off before its end")),
            Some(End::Blocked { why }) if silent => return Err(ModelError::Blocked { why }),
            Some(End::Malformed { why }) if self.calls.is_empty() => return Err(ModelError::garbled(why)),
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
