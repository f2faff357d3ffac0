//! Decides which numbers of a message are codes, by the words that name them.

mod after;
mod before;
mod lock;
mod meant;
mod other;
mod place;

use std::collections::HashSet;
use std::ops::Range;

use crate::lexicon::Roles;
use crate::tokens::{Form, Kind, Token, tokens};

/// How many tokens to either side are considered at most.
const REACH: usize = 48;
/// How many words may stand between a code's name and the code.
const FAR: usize = 14;

const VOWELS: &str = "AEIOUYАЕИОУЫЭЮЯІЇ";

/// How to treat numbers that could be a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Judge them by the words around them.
    Judge,
    /// Treat all of them as codes.
    TakeAll,
}

/// The byte ranges of the codes in a text.
pub(crate) fn judge(text: &str, patience: Patience) -> Vec<Range<usize>> {
    let tokens = tokens(text);
    let mut reader = Reader { text, tokens: &tokens, secret: vec![false; tokens.len()] };
    for at in 0..tokens.len() {
        reader.secret[at] = reader.judge(at, patience);
    }
    reader.mark_repeated();
    let is_new = |at: &usize| reader.secret[*at] && tokens[*at].kind != Kind::Number(Form::Redacted);
    (0..tokens.len()).filter(is_new).map(|at| tokens[at].start..tokens[at].end).collect()
}

/// What a number's name says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Code,
    Other,
}

/// What is between a name and a number.
#[derive(Debug, Default, Clone, Copy)]
struct Gap {
    words: usize,
    comma: bool,
    /// How many of the words are between the number and the comma nearest to it.
    until_comma: usize,
    /// How many of the words are between the number and the comma farthest from it.
    until_last: usize,
    number: bool,
    /// The roles of all the words.
    seen: Roles,
}

impl Gap {
    fn pass_comma(&mut self) {
        self.until_comma = if self.comma { self.until_comma } else { self.words };
        (self.comma, self.until_last) = (true, self.words);
    }

    fn pass_word(&mut self, weight: usize, roles: Roles) {
        (self.words, self.seen) = (self.words + weight, self.seen.and(roles));
    }

    /// Whether a name on the other side of the gap is close enough to name the number. Not if the words say to enter
    /// it: 番号を入力：4821.
    fn names_at_hand(self) -> bool {
        self.words <= 2 && !self.comma && !self.seen.any(Roles::ENTER)
    }
}

/// A message whose numbers are judged from left to right.
struct Reader<'a> {
    text: &'a str,
    tokens: &'a [Token],
    /// Which tokens are codes; filled from left to right.
    secret: Vec<bool>,
}

impl Reader<'_> {
    fn judge(&self, at: usize, patience: Patience) -> bool {
        match self.tokens[at].kind {
            Kind::Number(Form::Redacted) => true,
            Kind::Number(Form::Small | Form::Never) => false,
            Kind::Number(Form::Date) => patience == Patience::TakeAll || self.is_told_as_code(at),
            Kind::Number(_) => patience == Patience::TakeAll || self.is_code(at),
            Kind::Word(roles) => self.is_word_code(at, roles),
            _ => false,
        }
    }

    fn is_code(&self, at: usize) -> bool {
        if self.is_bound_to_site(at) || self.is_keyed(at) {
            return true;
        }
        if self.form(at) == Some(Form::Password) {
            return !self.is_voucher(at);
        }
        if self.is_ruled_out(at) || self.is_concluded_later(at) {
            return false;
        }
        if self.concludes(at) || self.is_new_of_lock(at) || self.opens_with(at) {
            return true;
        }
        match self.named_before(at) {
            None if self.form(at) == Some(Form::Spelled) => self.is_dictated(at),
            Some(Name::Code) => true,
            Some(Name::Other) => self.is_declared(at) || self.is_dialled(at),
            None if self.form(at) == Some(Form::Loose) => self.is_declared(at) || self.is_used(at),
            None => self.form(at) == Some(Form::Google) || self.is_named(at) || self.is_meant(at),
        }
    }

    fn is_ruled_out(&self, at: usize) -> bool {
        self.is_amount(at)
            || self.is_year_of_date(at)
            || self.is_postal(at)
            || self.is_slogan(at)
            || self.hands_over(at)
            || self.is_pinned(at)
            || self.is_addressed(at)
            || self.is_tail(at)
            || self.is_called(at)
            || self.is_helpline(at)
            || self.is_sender(at)
    }

    /// Whether a name after the number or in another sentence makes it a code. Called if no name precedes it in its own
    /// sentence.
    fn is_named(&self, at: usize) -> bool {
        self.is_named_after(at)
            || self.stands_alone(at)
            || self.is_explained(at)
            || self.is_answer(at)
            || self.is_spoken(at)
            || self.is_quoted(at) && self.code_is_near(at)
            || self.continues(at)
    }

    /// Whether a number without any name is meant as a code: the reader is to enter it, hide it, log in or open
    /// something with it.
    fn is_meant(&self, at: usize) -> bool {
        self.is_entered(at)
            || self.is_login(at)
            || self.is_prefixed(at)
            || self.is_of_lock(at)
            || self.is_set_off(at)
            || self.is_marked_secret(at)
            || self.is_surrounded(at)
            || self.is_dictated(at)
    }

    /// Whether the number is bound to a website by the format that browsers read, in the last line of a message:
    /// `@example.com #482913`.
    fn is_bound_to_site(&self, at: usize) -> bool {
        let line = (0..at).rev().take(REACH).take_while(|i| !matches!(self.kind(*i), Kind::Line)).last();
        line.is_some_and(|first| self.written(first) == "@")
            && self.is_glued(at)
            && self.written(at - 1) == "#"
    }

    /// Whether a word of letters only is a code. It is one only where hardly anything else is possible: "Your code:
    /// KXTQPL", "code «KXTQPL»".
    fn is_word_code(&self, at: usize, roles: Roles) -> bool {
        let written = self.written(at);
        let long = (5..=8).contains(&written.chars().count());
        if roles != Roles::default() || !long || !written.chars().all(char::is_uppercase) {
            return false;
        }
        let vowels = written.chars().filter(|c| VOWELS.contains(*c)).count();
        let ends =
            self.after(at).is_none_or(|i| matches!(self.kind(i), Kind::Stop | Kind::Line | Kind::Comma));
        let Some(mut name) = self.before(at) else { return false };
        let told = self.is_introduced(at) || self.is_quoted(at);
        while name > 0 && (self.kind(name) == Kind::Colon || self.roles(name).any(Roles::IS)) {
            name -= 1;
        }
        vowels * 3 <= written.chars().count() && ends && told && self.roles(name).any(Roles::NAME)
    }

    /// Marks every other occurrence of the codes that were found.
    fn mark_repeated(&mut self) {
        let key = |written: &str| written.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
        let is_number = |at: usize| matches!(self.kind(at), Kind::Number(form) if form != Form::Redacted);
        let all = 0..self.tokens.len();
        let codes: HashSet<String> = all
            .clone()
            .filter(|at| self.secret[*at] && is_number(*at))
            .map(|at| key(self.written(at)))
            .collect();
        if codes.is_empty() {
            return;
        }
        let again: Vec<usize> =
            all.filter(|at| is_number(*at) && codes.contains(&key(self.written(*at)))).collect();
        for at in again {
            self.secret[at] = true;
        }
    }
}
