//! The face of a run that nobody watches.

use std::pin::Pin;

use super::{ApprovalRequest, Event, Face};

/// A face that shows nothing and never says yes.
pub struct Nobody;

impl Face for Nobody {
    fn shows(&self, _: Event) {}

    fn allows<'a>(
        &'a self,
        _: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Option<bool>> + Send + 'a>> {
        Box::pin(async { None })
    }
}
