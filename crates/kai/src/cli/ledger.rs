//! `kai ledger accept`: the user confirms that they restored an older copy of the store.

use std::process::ExitCode;

use super::asking::Cli;
use super::yes;
use crate::call::Call;
use crate::call::ledger::{Accepted, LedgerCall, LedgerCheck};
use crate::failure::Failure;
use crate::terminal::{input, out};

pub(super) fn accept(ask: &Cli) -> Result<ExitCode, Failure> {
    let check: LedgerCheck = ask.caller.ask(Call::Ledger(LedgerCall::Verify))?;
    if let (false, Some(seq), Some(what)) = (check.rolled_back, check.broken_at, &check.what) {
        return Err(Failure::failed(format!(
            "Record {seq} of the ledger was altered: {what}. You can accept an older copy, but not an altered one."
        )));
    }
    if let Some(why) = check.note_unread {
        return Err(Failure::failed(why));
    }
    if let Some(what) = check.what.as_ref().filter(|_| check.rolled_back) {
        out::note(&format!("The ledger is incomplete: {what}."));
        if !input::has_person() {
            return Err(Failure::usage(
                "Nothing was changed, because Kai has to ask you first. Run this on a terminal.",
            ));
        }
        if !yes::plain("Did you restore this copy yourself, and do you accept that later records are gone?") {
            return Err(Failure::failed("Not accepted. Nothing was changed."));
        }
    }
    let done: Accepted = ask.caller.ask(Call::Ledger(LedgerCall::Accept))?;
    ask.print(&done, |done| {
        if done.accepted {
            format!("Accepted. The ledger continues after record {}.\n", done.last)
        } else {
            "There is nothing to accept: the ledger is complete.\n".to_owned()
        }
    });
    Ok(ExitCode::SUCCESS)
}
