//! Codes without a name, by what the reader is to do with them: enter, show or hide them.

use super::{FAR, REACH, Reader};
use crate::lexicon::Roles;
use crate::tokens::{Form, Kind, is_digit};

impl Reader<'_> {
    /// Whether the text says to enter the number, and mentions a code or a login nearby: "enter 482913", "4821 girin".
    pub(super) fn is_entered(&self, at: usize) -> bool {
        let verb = |i: &usize| self.roles(*i).any(Roles::ENTER);
        let word = |i: &usize| matches!(self.kind(*i), Kind::Word(_) | Kind::Quote | Kind::Sign);
        let word_or_colon = |i: &usize| word(i) || self.kind(*i) == Kind::Colon;
        let before = (0..at).rev().take(6).take_while(word_or_colon).any(|i| verb(&i));
        // "4500 vecinos con la puerta abierta" asks for nothing
        let spoken = |i: &usize| verb(i) && !(self.roles(*i).any(Roles::BY) && self.counts(at));
        let after = (at + 1..self.tokens.len()).take(6).take_while(word).find(spoken);
        let after = after.is_some_and(|i| !self.has_own_number(i));
        let led = self.before(at).is_some_and(|i| self.roles(i).any(Roles::AT)) && self.is_like_time(at);
        let reason = || self.is_near(at, Roles::NAME.and(Roles::ACTION)) || self.is_fleeting(at);
        let amount = self.is_like_time(at) || self.is_round(at);
        let guarded = || self.is_guarded(at) && (!amount || self.is_near_type(at));
        (before || after) && !led && (reason() || guarded() || self.is_typed(at)) || self.is_shown_in_shop(at)
    }

    /// Whether the number is shown or told where one collects something: "Show 55 81 20 at the counter".
    fn is_shown_in_shop(&self, at: usize) -> bool {
        let inside = |i: &usize| !matches!(self.kind(*i), Kind::Stop | Kind::Line | Kind::Number(_));
        let around = || {
            let before = (0..at).rev().take(FAR).take_while(inside);
            before.chain((at + 1..self.tokens.len()).take(FAR).take_while(inside))
        };
        let verb = |i: usize| self.roles(i).any(Roles::ENTER) && !self.roles(i).any(Roles::BY);
        self.form(at) == Some(Form::Digits)
            && !self.is_short(at)
            && (at.saturating_sub(3)..at).any(verb)
            && around().any(|i| self.roles(i).any(Roles::SHOP))
    }

    /// Whether the text says to type the number in, as in "enter 482913". That makes it a code unless it could be a
    /// time.
    fn is_typed(&self, at: usize) -> bool {
        self.is_near_type(at) && self.form(at) == Some(Form::Digits) && !self.is_like_time(at)
    }

    fn is_near_type(&self, at: usize) -> bool {
        let mut near = at.saturating_sub(2)..(at + 4).min(self.tokens.len());
        near.any(|i| self.roles(i).any(Roles::TYPE))
    }

    /// Whether the number is given for a login or a confirmation: "Acme login: 482913", "Confirm your email: W2X-8PD",
    /// "482913 to verify your account".
    pub(super) fn is_login(&self, at: usize) -> bool {
        let digits = self.form(at) == Some(Form::Digits) && !self.is_like_time(at);
        let colon = self.before(at).filter(|i| self.kind(*i) == Kind::Colon);
        let name =
            colon.and_then(|colon| (0..colon).rev().take(4).find(|i| matches!(self.kind(*i), Kind::Word(_))));
        let named = name.is_some_and(|i| self.roles(i).any(Roles::ACTION) || self.begins_with_action(i));
        let mixed = self.form(at) == Some(Form::Mixed) && !self.is_like_flight(at) && !self.is_like_brand(at);
        digits && (named || self.begins_sentence(at) && self.serves(at))
            || mixed && named && self.ends_sentence(at)
    }

    /// Whether the clause that ends here starts with what a code is for: "Verification for Lakeside Online Banking".
    fn begins_with_action(&self, last: usize) -> bool {
        let inside = |i: &usize| matches!(self.kind(*i), Kind::Word(_) | Kind::Sign | Kind::Quote);
        let Some(first) = (0..last).rev().take(FAR).take_while(inside).last() else { return false };
        let other = (first..=last).any(|i| self.roles(i).any(Roles::NO_CODE));
        !other && (first..last).take(3).any(|i| self.roles(i).any(Roles::ACTION))
    }

    /// Whether the text after the number says what it is for: "482913 to verify your account".
    pub(super) fn serves(&self, at: usize) -> bool {
        (at + 1..self.tokens.len())
            .take(8)
            .take_while(|i| matches!(self.kind(*i), Kind::Word(_) | Kind::Sign | Kind::Quote))
            .any(|i| self.roles(i).any(Roles::ACTION.and(Roles::HIDE)))
    }

    /// Whether this is a code with a sender's prefix: "FB-38291 will confirm your number".
    pub(super) fn is_prefixed(&self, at: usize) -> bool {
        let written = self.written(at);
        let letters = written.chars().take_while(|c| c.is_alphabetic()).count();
        let digits = written.chars().filter(|c| is_digit(*c)).count();
        let like = (1..=4).contains(&letters) && digits >= 4 + usize::from(letters == 2);
        like && written.contains('-') && self.begins_sentence(at) && self.serves(at)
    }

    /// Whether the text says to keep the number secret or that it expires soon: "Do not share: 482913", "Here you go:
    /// 482913. Expires in 10 minutes."
    pub(super) fn is_marked_secret(&self, at: usize) -> bool {
        let plain = match self.form(at) {
            Some(Form::Digits) => !self.is_like_time(at) || self.is_introduced(at),
            form => form == Some(Form::Mixed) && !self.is_like_flight(at),
        };
        plain
            && self.is_shown(at)
            && self.is_first(at)
            && (self.is_near(at, Roles::HIDE) || self.is_fleeting(at))
    }

    /// Whether the text around the number says both what a code is for and that it is secret, as for "667 201 gets you
    /// in".
    pub(super) fn is_surrounded(&self, at: usize) -> bool {
        let long = self.form(at) == Some(Form::Digits) && !self.is_short(at) && !self.is_like_time(at);
        let led = self.before(at).is_some_and(|i| self.roles(i).any(Roles::AT));
        let secret = || self.is_near(at, Roles::HIDE) || self.is_fleeting(at);
        long && !led && self.is_first(at) && secret() && self.is_near(at, Roles::ACTION)
    }

    /// Whether the digits are written one by one or in three pairs, as one dictates a code, and the sentence asks to type
    /// something. Digits one by one are a code also beside a lock or a secret.
    pub(super) fn is_dictated(&self, at: usize) -> bool {
        let written = self.written(at);
        let groups: Vec<usize> =
            written.split(|c: char| !is_digit(c)).map(|group| group.chars().count()).collect();
        let digits: Vec<usize> = groups.into_iter().filter(|length| *length > 0).collect();
        let single = self.form(at) == Some(Form::Spelled)
            || digits.len() >= 4 && digits.iter().all(|length| *length == 1);
        let inside = |i: &usize| !matches!(self.kind(*i), Kind::Stop | Kind::Line | Kind::Number(_));
        let has = |roles: Roles| {
            let before = (0..at).rev().take(FAR).take_while(inside);
            let mut around = before.chain((at + 1..self.tokens.len()).take(FAR).take_while(inside));
            around.any(|i| self.roles(i).any(roles) && !self.roles(i).any(Roles::BY))
        };
        let spoken = Roles::ENTER.and(Roles::GUARD).and(Roles::HIDE).and(Roles::NAME);
        digits == [2, 2, 2] && has(Roles::TYPE) || single && has(spoken)
    }

    /// Whether the text nearby says that something expires soon: "expires in 10 minutes".
    fn is_fleeting(&self, at: usize) -> bool {
        let around = at.saturating_sub(REACH)..(at + REACH).min(self.tokens.len());
        let minutes =
            |i: usize| i > 0 && self.roles(i).any(Roles::MINUTE) && self.form(i - 1) == Some(Form::Small);
        let near = |life: usize| (life.saturating_sub(5)..life + 6).any(minutes);
        around.into_iter().any(|i| self.roles(i).any(Roles::LIFE) && near(i))
    }

    /// Whether the number starts its sentence or follows a colon, and nothing more is said about it there.
    fn is_shown(&self, at: usize) -> bool {
        let comma = self.kind(at + 1) == Kind::Comma;
        self.begins_sentence(at) && (self.ends_sentence(at) || comma || self.is_dash(at + 1))
    }
}
