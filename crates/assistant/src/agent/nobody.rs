//! The face of an unattended run.

use std::pin::Pin;

use super::{ApprovalRequest, Event, Face};

/// A face that shows nothing and approves nothing.
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
