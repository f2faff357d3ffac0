//! Names before a number: "your code for the parcel is 4821".

use super::{FAR, Gap, Name, REACH, Reader};
use crate::lexicon::Roles;
use crate::tokens::{Form, Kind};

impl Reader<'_> {
    /// Whether the number concludes a sentence that is about a code or says to enter something, whatever other numbers
    /// the sentence contains: "OTP for your payment of 64.99 at Shop 3217 is 771290."
    pub(super) fn concludes(&self, at: usize) -> bool {
        let loose = self.form(at) == Some(Form::Loose) && self.is_all_digits(at);
        let plain = loose || matches!(self.form(at), Some(Form::Digits | Form::Mixed));
        if !plain || self.is_like_time(at) || !self.ends_sentence(at) {
            return false;
        }
        let Some(lead) = self.lead(at) else { return false };
        let subject = if loose { Roles::NAME } else { Roles::NAME.and(Roles::ENTER) };
        let mut numbered = false;
        for i in (0..lead).rev().take(REACH) {
            let roles = self.roles(i);
            match self.kind(i) {
                Kind::Line => return false,
                Kind::Stop if !self.is_midway(i) => return false,
                // "Code 482913, or ask for it: 850 2714"
                Kind::Number(Form::Digits | Form::Mixed) if loose && !self.is_amount(i) => return false,
                Kind::Number(_) => numbered = true,
                Kind::Word(_) if loose && roles.any(Roles::INERT) => return false,
                // "the order number is 55512": "order number" names this number.
                Kind::Word(_) if roles.any(Roles::NO_CODE) && !roles.any(Roles::ENTER) && !numbered => {
                    return false;
                }
                Kind::Word(_) if roles.any(Roles::NAME) && self.needs_no_code(i, at) => return false,
                Kind::Word(_) if roles.any(subject) && !self.is_counted(i) => return true,
                _ => {}
            }
        }
        false
    }

    /// The token that introduces the number: "is" or a colon. After a colon the number may be on its own line.
    fn lead(&self, at: usize) -> Option<usize> {
        let before = (0..at)
            .rev()
            .take(4)
            .find(|i| !matches!(self.kind(*i), Kind::Line | Kind::Quote | Kind::Sign))?;
        let same_line = self.kind(at - 1) != Kind::Line;
        let leads = self.kind(before) == Kind::Colon || same_line && self.roles(before).any(Roles::IS);
        leads.then_some(before)
    }

    /// Whether this stop belongs to a date: "am 12.06. um 14:30".
    fn is_midway(&self, stop: usize) -> bool {
        let small = |i: usize| self.written(i).chars().next().is_some_and(char::is_lowercase);
        stop > 0
            && matches!(self.kind(stop - 1), Kind::Number(_))
            && matches!(self.kind(stop + 1), Kind::Word(_))
            && small(stop + 1)
    }

    /// Whether a later number in the sentence is the one that concludes it.
    pub(super) fn is_concluded_later(&self, at: usize) -> bool {
        let inside = |i: &usize| !matches!(self.kind(*i), Kind::Stop | Kind::Line);
        let rest = (at + 1..self.tokens.len()).take(REACH).take_while(inside);
        rest.filter(|i| self.form(*i).is_some()).any(|i| self.concludes(i))
    }

    /// The nearest name before the number in its sentence that does not belong to another number.
    pub(super) fn named_before(&self, at: usize) -> Option<Name> {
        let mut gap = Gap::default();
        let mut taken = false; // a number between, whose name is still to come
        let mut doubt: Option<(usize, Gap)> = None; // another name, behind which a code's name may stand
        let mut aside = at;
        for i in (0..at).rev().take(REACH) {
            let roles = self.roles(i);
            match self.kind(i) {
                _ if i >= aside => {}
                Kind::Stop => break,
                Kind::Line if !self.goes_on(i) => break,
                Kind::Number(_) if self.secret[i] => {
                    // "… and the one of the box 1350": the number has no name of its own, so it is judged by the code
                    // before it.
                    return doubt
                        .filter(|(name, _)| !self.roles(*name).any(Roles::OWNER))
                        .map(|_| Name::Other);
                }
                Kind::Number(_) => (taken, gap.number) = (true, true),
                Kind::Comma => gap.pass_comma(),
                Kind::Sign => aside = self.aside(i).unwrap_or(aside),
                Kind::Word(_) if roles.any(Roles::NAME) && self.needs_no_code(i, at) => {
                    gap.pass_word(1, roles);
                }
                Kind::Word(_) if roles.any(Roles::NAME) && !self.is_counted(i) => {
                    return self.weigh(at, gap, doubt);
                }
                Kind::Word(_) if roles.any(Roles::NO_CODE) && self.is_requested(i, at) => {
                    gap.pass_word(0, roles);
                }
                Kind::Word(_) if roles.any(Roles::NO_CODE) && taken => taken = self.names_on(i),
                Kind::Word(_) if roles.any(Roles::NO_CODE) && doubt.is_none() && gap.names_at_hand() => {
                    if !self.is_introduced(at) && !roles.any(Roles::OWNER.and(Roles::LOCK)) {
                        return Some(Name::Other);
                    }
                    doubt = Some((i, gap));
                }
                Kind::Word(_) => gap.pass_word(self.weight(i), roles),
                _ => {}
            }
        }
        // "the padlock of the gate 3058"
        let locks =
            |name: usize| self.roles(name).any(Roles::LOCK) && self.is_near_lock(at) && self.is_of_lock(at);
        doubt.map(|(name, _)| if self.opens(name, at) || locks(name) { Name::Code } else { Name::Other })
    }

    /// Whether a word that usually names another number ("dial", "number") does not do so here, because a lock or a
    /// person asks for the number: "Dial 2580 to open", "give the courier the number 4839". Nor does the number of a
    /// padlock.
    fn is_requested(&self, name: usize, at: usize) -> bool {
        let enters = |i: usize| self.roles(i).any(Roles::ENTER);
        let wanted =
            enters(name) || self.roles(name).any(Roles::KEY) && (name.saturating_sub(6)..name).any(enters);
        wanted && self.is_guarded(at) || self.is_number_of_lock(name, at)
    }

    /// Whether a name says what was counted: "14072 tokens".
    pub(super) fn is_counted(&self, name: usize) -> bool {
        name > 0 && self.roles(name).any(Roles::UNIT) && matches!(self.kind(name - 1), Kind::Number(_))
    }

    /// Whether the text says that no code is needed: "bis 1200 ohne PIN", "sans code : 1200". "Without the code 4821 …"
    /// does give one.
    pub(super) fn needs_no_code(&self, name: usize, at: usize) -> bool {
        let without = |i: usize| self.roles(i).any(Roles::WITHOUT);
        let before = (name.saturating_sub(3)..name).any(without);
        let behind = (name + 1..self.tokens.len().min(name + 3)).any(without);
        (before || behind) && name + 1 != at
    }

    /// Whether another name precedes this one, as in "order number 55512", where two words name one number.
    fn names_on(&self, name: usize) -> bool {
        name > 0 && self.roles(name - 1).any(Roles::NO_CODE)
    }

    /// Where an aside such as "(valid for 5 minutes)" starts, if this sign closes one. The text before an aside
    /// continues after it.
    fn aside(&self, close: usize) -> Option<usize> {
        if !matches!(self.written(close), ")" | "）") {
            return None;
        }
        let inner =
            (0..close).rev().take(16).take_while(|i| !matches!(self.kind(*i), Kind::Stop | Kind::Line));
        let mut inner = inner.take_while(|i| !self.roles(*i).any(Roles::NAME));
        inner.find(|i| matches!(self.written(*i), "(" | "（"))
    }

    /// Whether the text continues in the next line: a line that ends with a colon does.
    fn goes_on(&self, line: usize) -> bool {
        line > 0 && self.kind(line - 1) == Kind::Colon
    }

    /// Decides whether a code's name before the number applies to it.
    fn weigh(&self, at: usize, gap: Gap, doubt: Option<(usize, Gap)>) -> Option<Name> {
        let told = self.is_introduced(at);
        if let Some((other, nearer)) = doubt {
            // "the code for your order is 4821" and "code de la porte 4821", but not "code sent, room 4417".
            let owned = self.roles(other).any(Roles::OWNER.and(Roles::LOCK))
                && (!self.is_short(at) || self.roles(other).any(Roles::LOCK) && !self.is_like_time(at))
                && gap.words <= 4;
            let close = owned || gap.words <= nearer.words + 1;
            return Some(if !gap.comma && !gap.seen.any(Roles::INERT) && (told || close) {
                Name::Code
            } else {
                Name::Other
            });
        }
        let led =
            self.before(at).is_some_and(|i| self.roles(i).any(Roles::AT) && !self.roles(i).any(Roles::IS));
        let inert = gap.seen.any(Roles::INERT) && self.is_short(at) && !self.is_renewed(at, gap);
        // "send the code, I am in Elm 1204"
        let clause = gap.comma && gap.until_comma >= 2 && self.is_short(at);
        // "the code reviewers meet Thursdays 1530"
        let things = Roles::OWNER.and(Roles::GUARD).and(Roles::ENTER).and(Roles::ACTION);
        let time = self.is_like_time(at) && gap.words >= 3 && !gap.seen.any(things);
        let far = gap.words > FAR || gap.comma && gap.words > 4 || inert || clause || time;
        let reaches = match self.form(at) {
            Some(Form::Loose) => gap.words <= self.loose_reach(at) && !gap.comma && !gap.number,
            Some(Form::Mixed) => !led && (gap.words == 0 || !self.is_like_flight(at)),
            _ => !(self.is_like_time(at) && (led || self.begins_anew(at))),
        };
        let bridged = told && !(inert && self.is_weakly_told(at)) || self.is_quoted(at) && !inert;
        (reaches && (!far || bridged)).then_some(Name::Code)
    }

    /// Whether the words say that this is the new code: "is since yesterday 7714", "wurde auf 9920 geändert".
    fn is_renewed(&self, at: usize, gap: Gap) -> bool {
        let inside = |i: &usize| matches!(self.kind(*i), Kind::Word(_));
        let mut after = (at + 1..self.tokens.len()).take(3).take_while(inside);
        gap.seen.any(Roles::NOW) || !self.is_like_time(at) && after.any(|i| self.roles(i).any(Roles::CHANGED))
    }

    /// How many words may be between a name and a number that hardly looks like a code: "password for the TV:
    /// Tiger8842".
    fn loose_reach(&self, at: usize) -> usize {
        let letters = self.written(at).chars().any(char::is_alphabetic);
        let colon = self.before(at).is_some_and(|i| self.kind(i) == Kind::Colon);
        if letters && colon { 3 } else { 0 }
    }

    /// Whether the number starts a new clause after a comma, and more words follow: "The Da Vinci Code, 1930
    /// screening".
    fn begins_anew(&self, at: usize) -> bool {
        let goes_on = self.tokens.get(at + 1).is_some_and(|next| next.kind == Kind::Word(Roles::default()));
        goes_on && !self.is_glued(at + 1) && at > 0 && self.kind(at - 1) == Kind::Comma
    }

    /// Whether what looks like a date is explicitly given as a code: "Code: 14-11-26", or "the code is 14-11-26." with
    /// nothing after it.
    pub(super) fn is_told_as_code(&self, at: usize) -> bool {
        let Some(lead) = self.before(at) else { return false };
        let named = lead > 0 && self.before(lead).is_some_and(|i| self.roles(i).any(Roles::NAME));
        let is = self.roles(lead).any(Roles::IS) && self.ends_sentence(at);
        named && (self.kind(lead) == Kind::Colon || is)
    }
}
