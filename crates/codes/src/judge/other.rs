//! Rules out numbers that are no codes: amounts, vouchers, telephone numbers, addresses.

use super::{FAR, REACH, Reader, VOWELS};
use crate::lexicon::Roles;
use crate::tokens::{Form, Kind, is_digit, is_year, is_year_elsewhere, value};

impl Reader<'_> {
    /// Whether a unit follows the number, or a street. A unit of one character must stand alone or be attached to the
    /// number; otherwise it is the start of another word.
    pub(super) fn is_amount(&self, at: usize) -> bool {
        let unit = at + 1;
        if !self.roles(unit).any(Roles::UNIT) {
            return self.is_street(unit) || self.is_capital(unit) && self.is_street(unit + 1);
        }
        if self.is_ordinal_of_code(at) {
            return false;
        }
        let short = self.written(unit).chars().nth(1).is_none();
        let apart = !self.is_glued(unit);
        !(short && apart && self.is_glued(unit + 1) && matches!(self.kind(unit + 1), Kind::Word(_)))
    }

    /// Whether the word after the number only means "number", and a code is named right before: "인증번호 482913번".
    fn is_ordinal_of_code(&self, at: usize) -> bool {
        let ordinal = matches!(self.written(at + 1), "번" | "番" | "号" | "號");
        ordinal && !self.is_short(at) && self.before(at).is_some_and(|i| self.roles(i).any(Roles::SECRET))
    }

    /// Whether this is the year of a date in any calendar, beside a month or a word for year: "آذر ۱۴۰۴", "พ.ศ. 2568".
    pub(super) fn is_year_of_date(&self, at: usize) -> bool {
        let year = value(self.written(at));
        let four = self.written(at).chars().count() == 4 && self.form(at) == Some(Form::Digits);
        let is = |i: usize| self.roles(i).any(Roles::YEAR);
        let light = |i: &usize| self.kind(*i) == Kind::Comma || self.roles(*i).any(Roles::LINK) && !is(*i);
        let before = (0..at).rev().take(3).find(|i| !light(i));
        let near = before.is_some_and(is) || is(at + 1);
        four && (is_year(year) || is_year_elsewhere(year)) && near && !self.is_introduced(at)
    }

    /// Whether a street name starts here, as in "2200 Oak Street".
    fn is_street(&self, name: usize) -> bool {
        self.is_capital(name) && self.is_capital(name + 1) && self.roles(name + 1).any(Roles::PLACE)
    }

    /// Whether this is an Indian postal code in an address: "PIN code 560034, Koramangala".
    pub(super) fn is_postal(&self, at: usize) -> bool {
        let named = self.before(at).is_some_and(|name| {
            let pincode = self.written(name).eq_ignore_ascii_case("pincode");
            let pair = name > 0 && self.written(name).eq_ignore_ascii_case("code");
            pincode || pair && self.written(name - 1).eq_ignore_ascii_case("pin")
        });
        let six = self.written(at).chars().filter(|c| is_digit(*c)).count() == 6;
        named && six && self.is_near(at, Roles::PLACE)
    }

    /// Whether this is a discount code such as `SAVE20`: the message mentions a discount, or the letters form a
    /// pronounceable word.
    pub(super) fn is_slogan(&self, at: usize) -> bool {
        let written = self.written(at);
        let letters = written.chars().take_while(|c| c.is_alphabetic()).count();
        let like = letters >= 3 && written.chars().skip(letters).all(is_digit);
        let vowels = written.chars().filter(|c| VOWELS.contains(*c)).count();
        let spoken =
            letters >= 4 && vowels * 3 >= letters && self.is_like_brand(at) && !self.is_introduced(at);
        like && spoken || self.is_voucher(at)
    }

    /// Whether this is a few letters and then digits, in a message about a discount: `BF26`, `welcome15`.
    pub(super) fn is_voucher(&self, at: usize) -> bool {
        let letters = self.written(at).chars().take_while(|c| c.is_alphabetic()).count();
        let like = letters >= 3 && self.written(at).chars().skip(letters).all(is_digit);
        let deal = |i: usize| self.written(i) == "%" || self.roles(i).any(Roles::KIND.and(Roles::DEAL));
        let (from, to) = (at.saturating_sub(REACH / 2), (at + REACH / 2).min(self.tokens.len()));
        like && (from..to).any(deal) && !self.is_of_password(at)
    }

    /// Whether the nearest name before the number is that of a password and not just of a code.
    fn is_of_password(&self, at: usize) -> bool {
        let inside = |i: &usize| self.kind(*i) != Kind::Stop;
        let mut names = (0..at).rev().take(FAR).take_while(inside).map(|i| self.roles(i));
        names
            .find(|roles| roles.any(Roles::NAME.and(Roles::PASS)))
            .is_some_and(|roles| roles.any(Roles::SECRET.and(Roles::PASS)))
    }

    /// Whether the number only says what the code is for, and the code follows: "The code for room 1204: 4821".
    pub(super) fn hands_over(&self, at: usize) -> bool {
        let plain = |i: &usize| match self.kind(*i) {
            Kind::Word(roles) => !roles.any(Roles::NAME),
            kind => kind == Kind::Colon,
        };
        let last = (at + 1..self.tokens.len()).take(4).take_while(plain).last();
        let tells = |i: usize| self.kind(i) == Kind::Colon || self.roles(i).any(Roles::IS);
        let follows = |i: usize| {
            self.form(i + 1).is_some_and(|form| !matches!(form, Form::Small | Form::Date | Form::Never))
        };
        !self.is_introduced(at) && last.is_some_and(|i| tells(i) && follows(i))
    }

    /// Whether "pin" before the number is the verb: "Pin 2026 on your calendar", "to pin 4500 leaflets".
    pub(super) fn is_pinned(&self, at: usize) -> bool {
        let Some(pin) = self.before(at).filter(|i| matches!(self.written(*i), "Pin" | "pin")) else {
            return false;
        };
        let is = |i: Option<usize>, words: &[&str]| i.is_some_and(|i| words.contains(&self.written(i)));
        let asked = is(self.before(pin), &["to", "and", "please"]);
        let begins = self.begins_sentence(pin);
        let onto = is(self.after(at), &["on", "to", "at", "an", "onto"]);
        let thing =
            self.kind(at + 1) == Kind::Word(Roles::default()) && (asked || is_year(value(self.written(at))));
        (asked || begins) && (onto || thing) && !self.is_guarded(at)
    }

    /// Whether the number is one to send a message to: "Text CODE to 82000".
    pub(super) fn is_addressed(&self, at: usize) -> bool {
        const TO: [&str; 14] =
            ["to", "an", "al", "au", "a", "naar", "para", "na", "на", "til", "till", "ke", "la", "στο"];
        let to = self.before(at).filter(|i| TO.contains(&self.written(*i)));
        let inside = |i: &usize| !matches!(self.kind(*i), Kind::Stop | Kind::Line | Kind::Colon);
        let around = |to: usize| {
            let before = (0..to).rev().take(10).take_while(inside);
            before.chain((at + 1..self.tokens.len()).take(3).take_while(inside))
        };
        to.is_some_and(|to| around(to).any(|i| self.roles(i).any(Roles::SEND)))
    }

    /// Whether this is the end of a longer number: "the phone ending in 4471", "4471 ile biten". Not if a code is named
    /// in between.
    pub(super) fn is_tail(&self, at: usize) -> bool {
        let inside =
            |i: &usize| !matches!(self.kind(*i), Kind::Stop | Kind::Line | Kind::Comma | Kind::Number(_));
        let before = (0..at).rev().take(6).take_while(inside);
        let nearest = before.into_iter().find(|i| self.roles(*i).any(Roles::TAIL.and(Roles::NAME)));
        let after = (at + 1..self.tokens.len()).take(3).take_while(inside);
        let behind = after.into_iter().find(|i| self.roles(*i).any(Roles::TAIL.and(Roles::NAME)));
        let is = |i: Option<usize>| i.is_some_and(|i| self.roles(i).any(Roles::TAIL));
        self.is_short(at) && (is(nearest) || is(behind) && !self.is_introduced(at))
    }

    /// Whether the number is one to call: "1930 पर कॉल करें", "1410までお電話ください".
    pub(super) fn is_called(&self, at: usize) -> bool {
        let inside = |i: &usize| !matches!(self.kind(*i), Kind::Stop | Kind::Line | Kind::Comma);
        let mut after = (at + 1..self.tokens.len()).take(4).take_while(inside);
        let few = self.written(at).chars().filter(|c| is_digit(*c)).count() <= 5;
        few && after.any(|i| self.roles(i).any(Roles::CALLED))
    }

    /// Whether the number is one to call in doubt or after a fraud: "En cas de doute, composez le 3955". Not if the text
    /// between names a code or a lock.
    pub(super) fn is_helpline(&self, at: usize) -> bool {
        let few = self.written(at).chars().filter(|c| is_digit(*c)).count() <= 5;
        let asked = |i: usize| matches!(self.written(i), "?" | "？" | "؟" | ";");
        let inside = |i: &usize| match self.kind(*i) {
            Kind::Stop => asked(*i),
            Kind::Word(roles) => !roles.any(Roles::NAME.and(Roles::LOCK)),
            kind => kind != Kind::Line,
        };
        let mut before = (0..at).rev().take(12).take_while(inside);
        few && self.form(at) == Some(Form::Digits)
            && before.any(|i| self.roles(i).any(Roles::DOUBT))
            && self.code_after(at).is_none()
    }

    /// Whether the number is the sender of a code: "The code comes from 57575".
    pub(super) fn is_sender(&self, at: usize) -> bool {
        self.form(at) == Some(Form::Digits) && self.before(at).is_some_and(|i| self.roles(i).any(Roles::FROM))
    }
}
