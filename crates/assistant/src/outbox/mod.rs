//! The one way out: everything that another person will receive is a draft here, and only a person's tap sends it.
//!
//! A tool stages a [`Draft`] → a face shows it whole → the person taps, and the tap carries the hash of what was shown
//! → [`door`] makes the one [`Approved`](door::Approved) of that tap and hands it to a sender → the draft becomes sent,
//! failed, or, if nobody lived to see it, unknown.

pub mod door;
