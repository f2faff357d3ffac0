//! Names after a number or in another sentence: "4821 is your code", "Here is your code! 4821".

use super::{Gap, REACH, Reader};
use crate::lexicon::Roles;
use crate::tokens::{Form, Kind, is_digit};

impl Reader<'_> {
    /// Whether a code's name follows the number: "482913 is your code".
    pub(super) fn is_named_after(&self, at: usize) -> bool {
        if self.roles(at + 1).any(Roles::NO_CODE) {
            return false;
        }
        let Some(gap) = self.code_after(at) else { return false };
        let Gap { words, comma, seen, .. } = gap;
        // "36-12-88 for the safe, that is the code"
        let added = comma && seen.any(Roles::IS) && words <= gap.until_last + 1;
        let next = self.after(at);
        let is = next.is_some_and(|i| self.is_verb(i)) || self.is_dash(at + 1);
        let led = self.before(at).is_some_and(|i| self.roles(i).any(Roles::AT));
        let long = self.form(at) == Some(Form::Mixed) && !self.is_like_brand(at)
            || self.written(at).chars().filter(|c| is_digit(*c)).count() > 4;
        self.begins_sentence(at)
            || is
            || words == 0 && !led
            || long && !led && (!comma || added) && words <= 6
    }

    /// Whether the words after the number declare it a code, whatever precedes the colon: "Card set-up: 482913 is your
    /// code", "Cash & Co: 482913 to verify".
    pub(super) fn is_declared(&self, at: usize) -> bool {
        let is = self.after(at).is_some_and(|i| self.is_verb(i));
        let named = || self.code_after(at).is_some_and(|gap| gap.words <= 3 && !gap.comma);
        let sender = self.before(at).and_then(|colon| self.before(colon));
        let other = sender.is_some_and(|i| self.roles(i).any(Roles::NO_CODE));
        let purpose = !other && !self.is_short(at) && self.form(at) == Some(Form::Digits) && self.serves(at);
        self.begins_sentence(at) && (is && named() || purpose)
    }

    /// Whether the reader is to use the digits as a code: "Use 850 2714 as your login code".
    pub(super) fn is_used(&self, at: usize) -> bool {
        let verb =
            |i: usize| self.roles(i).any(Roles::ENTER) && !self.roles(i).any(Roles::NO_CODE.and(Roles::BY));
        self.is_all_digits(at)
            && self.before(at).is_some_and(verb)
            && self.code_after(at).is_some_and(|gap| gap.words <= 3 && !gap.comma)
    }

    /// Whether this is a word for "is", and not just "now".
    pub(super) fn is_verb(&self, at: usize) -> bool {
        self.roles(at).any(Roles::IS) && !self.roles(at).any(Roles::NOW)
    }

    /// What is between the number and a code's name later in the sentence, if that name does not belong to another
    /// number.
    pub(super) fn code_after(&self, at: usize) -> Option<Gap> {
        let mut gap = Gap::default();
        for i in (at + 1..self.tokens.len()).take(REACH) {
            match self.kind(i) {
                Kind::Stop | Kind::Line if self.stands_in_sentence_alone(at) && gap.words == 0 => {}
                Kind::Number(Form::Small | Form::Date | Form::Loose) => {}
                Kind::Stop | Kind::Line | Kind::Number(_) => return None,
                Kind::Word(roles) if roles.any(Roles::NAME) && !self.is_counted(i) => {
                    return (!self.has_own_number(i) && !self.needs_no_code(i, at)).then_some(gap);
                }
                Kind::Word(roles) => gap.pass_word(self.weight(i), roles),
                Kind::Comma => gap.pass_comma(),
                // "Episode 3197 is out: cracking the code"
                Kind::Colon if gap.words > 0 => return None,
                _ => {}
            }
        }
        None
    }

    /// Whether a number directly follows this name, so that the name belongs to it.
    pub(super) fn has_own_number(&self, name: usize) -> bool {
        let light = Roles::IS.and(Roles::LINK).and(Roles::NAME).and(Roles::ACTION).and(Roles::PURPOSE);
        let next = (name + 1..self.tokens.len()).take(5).find(|i| match self.kind(*i) {
            Kind::Word(roles) => !roles.any(light),
            kind => matches!(kind, Kind::Number(_) | Kind::Stop | Kind::Line),
        });
        next.and_then(|i| self.form(i))
            .is_some_and(|form| !matches!(form, Form::Small | Form::Date | Form::Never))
    }

    /// Whether the number has its own line or sentence, near a code's name or near what a code is for.
    pub(super) fn stands_alone(&self, at: usize) -> bool {
        let digits = self.form(at) == Some(Form::Digits);
        let named = || self.code_is_near(at) && (digits || self.is_first(at));
        let login = || self.is_near(at, Roles::ACTION.and(Roles::HIDE)) && digits;
        self.stands_in_sentence_alone(at) && (named() || login()) || self.begins_after_name(at)
    }

    fn stands_in_sentence_alone(&self, at: usize) -> bool {
        // A short number after a question is more likely a telephone number: "Trouble with your code? 60123"
        let asked = |stop: usize| matches!(self.written(stop), "?" | "？" | "؟");
        let fits =
            |stop: usize| !asked(stop) || self.written(at).chars().filter(|c| is_digit(*c)).count() >= 6;
        let before =
            self.before(at).is_none_or(|i| self.kind(i) == Kind::Line || self.follows_news(i) && fits(i));
        before && self.ends_sentence(at)
    }

    /// Whether the sentence that ends here names a code without saying what happened to it: "Here is your code!
    /// 482913".
    fn follows_news(&self, stop: usize) -> bool {
        let said =
            || (0..stop).rev().take(REACH).take_while(|i| !matches!(self.kind(*i), Kind::Stop | Kind::Line));
        let has = |roles: Roles| said().any(|i| self.roles(i).any(roles));
        let number = said().any(|i| matches!(self.kind(i), Kind::Number(_)));
        self.kind(stop) == Kind::Stop && has(Roles::NAME) && !number && !has(Roles::INERT.and(Roles::HIDE))
    }

    /// Whether the line before the number ends with a code's name or a colon: "Access code⏎4821 is valid for five
    /// minutes".
    fn begins_after_name(&self, at: usize) -> bool {
        let Some(line) = self.before(at).filter(|i| self.kind(*i) == Kind::Line) else { return false };
        let last = self.before(line);
        last.is_some_and(|i| self.kind(i) == Kind::Colon || self.roles(i).any(Roles::NAME))
            && self.code_is_near(at)
    }

    /// Whether a line holds only who speaks and the number, below a line that ends with a code's name: "Your login
    /// code⏎Paul: 482913". So notifications show chats of several people.
    pub(super) fn is_spoken(&self, at: usize) -> bool {
        let Some(colon) = self.before(at).filter(|i| self.kind(*i) == Kind::Colon) else { return false };
        let plain =
            |i: &usize| matches!(self.kind(*i), Kind::Sign) || self.kind(*i) == Kind::Word(Roles::default());
        let Some(first) = (0..colon).rev().take(4).take_while(plain).last() else { return false };
        let apart = |i: &usize| matches!(self.kind(*i), Kind::Quote | Kind::Sign | Kind::Line);
        let above = (0..first).rev().take(REACH).find(|i| !apart(i));
        self.before(first).is_some_and(|i| self.kind(i) == Kind::Line)
            && self.ends_sentence(at)
            && above.is_some_and(|i| self.roles(i).any(Roles::NAME))
    }

    /// Whether the next sentence names the number: "Keep it safe: 482913. It is the code for …"
    pub(super) fn is_explained(&self, at: usize) -> bool {
        let Some(stop) = self.after(at).filter(|i| matches!(self.kind(*i), Kind::Stop | Kind::Line)) else {
            return false;
        };
        let next = || {
            (stop + 1..self.tokens.len())
                .take(12)
                .take_while(|i| !matches!(self.kind(*i), Kind::Stop | Kind::Line))
        };
        let Some(name) = next().find(|i| self.roles(*i).any(Roles::NAME)) else { return false };
        let told = (stop..name).any(|i| self.roles(i).any(Roles::IS));
        let inert = next().any(|i| self.roles(i).any(Roles::INERT));
        self.begins_sentence(at)
            && !self.has_own_number(name)
            && (told || !inert && !self.is_short(at) && !self.is_like_time(at))
    }

    /// Whether the number's sentence says nothing but "it is": "Your code has come. It is 482913".
    pub(super) fn is_answer(&self, at: usize) -> bool {
        let inside = |i: &usize| !matches!(self.kind(*i), Kind::Stop | Kind::Line | Kind::Comma);
        let words = || (0..at).rev().take(5).take_while(inside);
        let small = |i: usize| {
            self.written(i).chars().count() <= 6 && !self.roles(i).any(Roles::NO_CODE.and(Roles::AT))
        };
        let is = words().any(|i| self.roles(i).any(Roles::IS)) && words().all(small);
        // "We shall ask for a PIN. Yours: 482913"
        let light = |i: usize| self.kind(i) == Kind::Colon || self.roles(i).any(Roles::IS.and(Roles::LINK));
        let yours = words().any(|i| self.kind(i) == Kind::Colon) && words().count() > 1 && words().all(light);
        (is || yours)
            && words().count() < 5
            && !self.is_like_time(at)
            && (self.code_is_near(at) || self.follows_lock(at))
    }

    /// Whether the number continues a list of codes, after "and" or a comma, and looks like the code before it: "code
    /// 2468 and 1350 for the box".
    pub(super) fn continues(&self, at: usize) -> bool {
        let mut words = 0;
        let mut joined = false;
        for i in (0..at).rev().take(REACH) {
            match self.kind(i) {
                Kind::Number(_) if self.secret[i] => return joined && words <= 6 && self.is_alike(i, at),
                Kind::Stop | Kind::Line | Kind::Number(_) => return false,
                Kind::Comma => joined = true,
                Kind::Word(roles) if roles.any(Roles::NO_CODE) && !roles.any(Roles::OWNER) => return false,
                Kind::Word(roles) if roles.any(Roles::AT) && self.before(at) == Some(i) => return false,
                Kind::Word(roles) => {
                    joined |= roles.any(Roles::AND);
                    words += self.weight(i);
                }
                _ => {}
            }
        }
        false
    }

    /// Whether both consist of digits and have the same length.
    fn is_alike(&self, code: usize, at: usize) -> bool {
        let digits = |i: usize| (self.form(i) == Some(Form::Digits)).then(|| self.written(i).chars().count());
        digits(code).is_some() && digits(code) == digits(at)
    }
}
