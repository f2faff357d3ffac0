//! Finds one-time codes in messages and hides them: login codes, TANs, PINs, pick-up and door codes.
//!
//! ```
//! let text = "Your Harbour code is 482 913, valid for 10 minutes. Order 55512.";
//! assert_eq!(kai_codes::redact(text), "Your Harbour code is [code], valid for 10 minutes. Order 55512.");
//! ```
//!
//! [`redact()`] replaces the codes in a text, [`find`] says where they are, and [`KnownCodes`] remembers the codes of
//! earlier texts and removes them from later ones, however they are spelled there. Everything is a pure function of
//! the text: there is no model, no network, no clock and no setting. Hostile text costs time in proportion to its
//! length.
//!
//! The detector reads a message in three steps. `tokens` cuts it into words, numbers and signs. `lexicon` says what
//! role each word plays, in more than fifty languages. `judge` then decides about every number that could be a code, by
//! the words around it. A code's name ("code", "OTP", "пароль", "인증번호") makes a number a code; another name ("order",
//! "room", "ending in") makes it something else; and each name claims one number. Where no name is given, the
//! instruction decides: type it in, tell the courier, keep it private, open a lock with it. Prices, dates, times and
//! telephone numbers are recognised by their form before any of this.
//!
//! It is a detector, and it misses some codes. The README has the measured figures.

#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod judge;
mod known;
mod lexicon;
mod redact;
#[cfg(test)]
mod score;
mod spelled;
mod tokens;

pub use known::KnownCodes;
pub use redact::{find, may_match_placeholder, redact};
pub use tokens::REDACTED;

/// The README's examples, compiled and run as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct ReadmeExamples;
