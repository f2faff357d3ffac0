//! Decides which numbers of a message are codes, by the words that name them.

use std::collections::HashSet;
use std::ops::Range;

use crate::lexicon::Roles;
use crate::tokens::{Form, Kind, Token, is_digit, is_year, tokens, value};

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
            None if self.form(at) == Some(Form::Loose) => self.is_declared(at),
            None => self.form(at) == Some(Form::Google) || self.is_named(at) || self.is_meant(at),
        }
    }

    fn is_ruled_out(&self, at: usize) -> bool {
        self.is_amount(at)
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

    // ── Looking at one token ─────────────────────────────────────────────────────────────────────────────────────

    fn form(&self, at: usize) -> Option<Form> {
        if let Kind::Number(form) = self.tokens.get(at)?.kind { Some(form) } else { None }
    }

    fn kind(&self, at: usize) -> Kind {
        self.tokens.get(at).map_or(Kind::Line, |token| token.kind)
    }

    fn roles(&self, at: usize) -> Roles {
        self.tokens.get(at).map(Token::roles).unwrap_or_default()
    }

    fn written(&self, at: usize) -> &str {
        &self.text[self.tokens[at].start..self.tokens[at].end]
    }

    fn is_glued(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|token| token.glued)
    }

    /// How many words a token counts for: a long run without spaces counts as several, and small words as none.
    fn weight(&self, at: usize) -> usize {
        let light = Roles::LINK.and(Roles::IS).and(Roles::AND).and(Roles::OWNER);
        if self.roles(at).any(light) { 0 } else { 1 + (self.tokens[at].end - self.tokens[at].start) / 24 }
    }

    /// The nearest token before this one that is not a quote, bracket or emoji.
    fn before(&self, at: usize) -> Option<usize> {
        (0..at).rev().take(REACH).find(|i| !matches!(self.kind(*i), Kind::Quote | Kind::Sign))
    }

    fn after(&self, at: usize) -> Option<usize> {
        (at + 1..self.tokens.len()).take(REACH).find(|i| !matches!(self.kind(*i), Kind::Quote | Kind::Sign))
    }

    /// Whether this could be a time of day or a year, or a range of them: `0900-1700`.
    fn is_like_time(&self, at: usize) -> bool {
        let is_like = |part: &str| {
            let value = value(part);
            let four = part.chars().count() == 4 && part.chars().all(is_digit);
            four && (is_year(value) || value / 100 < 24 && value % 100 < 60)
        };
        self.written(at).split('-').all(is_like)
    }

    /// Whether this is a round number, which is an amount more often than a code: `4500`.
    fn is_round(&self, at: usize) -> bool {
        self.is_short(at) && value(self.written(at)).is_multiple_of(100)
    }

    /// Whether this looks like a flight number: two letters and a few digits, as in `BA2490`.
    fn is_like_flight(&self, at: usize) -> bool {
        let written = self.written(at);
        let letters = written.chars().take_while(|c| c.is_alphabetic()).count();
        letters == 2 && written.chars().skip(2).all(is_digit) && written.chars().count() <= 6
    }

    /// Whether this looks like a brand or a slogan: a word and one or two digits, as in `OUTILS24`.
    fn is_like_brand(&self, at: usize) -> bool {
        let letters = self.written(at).chars().take_while(|c| c.is_alphabetic()).count();
        let digits = self.written(at).chars().skip(letters);
        letters >= 3 && digits.clone().count() <= 2 && digits.clone().all(is_digit)
    }

    // ── Decided by form alone ───────────────────────────────────────────────────────────────────────────────────────

    /// Whether the number is bound to a website by the format that browsers read, in the last line of a message:
    /// `@example.com #482913`.
    fn is_bound_to_site(&self, at: usize) -> bool {
        let line = (0..at).rev().take(REACH).take_while(|i| !matches!(self.kind(*i), Kind::Line)).last();
        line.is_some_and(|first| self.written(first) == "@")
            && self.is_glued(at)
            && self.written(at - 1) == "#"
    }

    /// Whether the number is written as typed at a door: `2244#`.
    fn is_keyed(&self, at: usize) -> bool {
        let more = self.is_glued(at + 2) && matches!(self.kind(at + 2), Kind::Word(_) | Kind::Number(_));
        let ends = self.is_glued(at + 1) && self.written(at + 1) == "#" && !more;
        let door = || self.is_near(at, Roles::NAME.and(Roles::OWNER).and(Roles::GUARD));
        self.form(at) == Some(Form::Digits) && ends && door()
    }

    // ── Not a code ──────────────────────────────────────────────────────────────────────────────────────────────────

    /// Whether a unit follows the number, or a street. A unit of one character must stand alone or be attached to the
    /// number; otherwise it is the start of another word.
    fn is_amount(&self, at: usize) -> bool {
        let unit = at + 1;
        if !self.roles(unit).any(Roles::UNIT) {
            return self.is_street(unit) || self.is_capital(unit) && self.is_street(unit + 1);
        }
        let short = self.written(unit).chars().nth(1).is_none();
        let apart = !self.is_glued(unit);
        !(short && apart && self.is_glued(unit + 1) && matches!(self.kind(unit + 1), Kind::Word(_)))
    }

    /// Whether a street name starts here, as in "2200 Oak Street".
    fn is_street(&self, name: usize) -> bool {
        self.is_capital(name) && self.is_capital(name + 1) && self.roles(name + 1).any(Roles::PLACE)
    }

    /// Whether this is an Indian postal code in an address: "PIN code 560034, Koramangala".
    fn is_postal(&self, at: usize) -> bool {
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
    fn is_slogan(&self, at: usize) -> bool {
        let written = self.written(at);
        let letters = written.chars().take_while(|c| c.is_alphabetic()).count();
        let like = letters >= 3 && written.chars().skip(letters).all(is_digit);
        let vowels = written.chars().filter(|c| VOWELS.contains(*c)).count();
        let spoken =
            letters >= 4 && vowels * 3 >= letters && self.is_like_brand(at) && !self.is_introduced(at);
        like && spoken || self.is_voucher(at)
    }

    /// Whether this is a few letters and then digits, in a message about a discount: `BF26`, `welcome15`.
    fn is_voucher(&self, at: usize) -> bool {
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
    fn hands_over(&self, at: usize) -> bool {
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
    fn is_pinned(&self, at: usize) -> bool {
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
    fn is_addressed(&self, at: usize) -> bool {
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
    fn is_tail(&self, at: usize) -> bool {
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
    fn is_called(&self, at: usize) -> bool {
        let inside = |i: &usize| !matches!(self.kind(*i), Kind::Stop | Kind::Line | Kind::Comma);
        let mut after = (at + 1..self.tokens.len()).take(4).take_while(inside);
        let few = self.written(at).chars().filter(|c| is_digit(*c)).count() <= 5;
        few && after.any(|i| self.roles(i).any(Roles::CALLED))
    }

    /// Whether the number is one to call in doubt or after a fraud: "En cas de doute, composez le 3955". Not if the text
    /// between names a code or a lock.
    fn is_helpline(&self, at: usize) -> bool {
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
    fn is_sender(&self, at: usize) -> bool {
        self.form(at) == Some(Form::Digits) && self.before(at).is_some_and(|i| self.roles(i).any(Roles::FROM))
    }

    // ── At the end of its sentence ──────────────────────────────────────────────────────────────────────────────────

    /// Whether the number concludes a sentence that is about a code or says to enter something, whatever other numbers
    /// the sentence contains: "OTP for your payment of 64.99 at Shop 3217 is 771290."
    fn concludes(&self, at: usize) -> bool {
        let plain = matches!(self.form(at), Some(Form::Digits | Form::Mixed));
        if !plain || self.is_like_time(at) || !self.ends_sentence(at) {
            return false;
        }
        let Some(lead) = self.lead(at) else { return false };
        let mut numbered = false;
        for i in (0..lead).rev().take(REACH) {
            let roles = self.roles(i);
            match self.kind(i) {
                Kind::Line => return false,
                Kind::Stop if !self.is_midway(i) => return false,
                Kind::Number(_) => numbered = true,
                // "the order number is 55512": "order number" names this number.
                Kind::Word(_) if roles.any(Roles::NO_CODE) && !roles.any(Roles::ENTER) && !numbered => {
                    return false;
                }
                Kind::Word(_) if roles.any(Roles::NAME) && self.needs_no_code(i, at) => return false,
                Kind::Word(_) if roles.any(Roles::NAME.and(Roles::ENTER)) && !self.is_counted(i) => {
                    return true;
                }
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
    fn is_concluded_later(&self, at: usize) -> bool {
        let inside = |i: &usize| !matches!(self.kind(*i), Kind::Stop | Kind::Line);
        let rest = (at + 1..self.tokens.len()).take(REACH).take_while(inside);
        rest.filter(|i| self.form(*i).is_some()).any(|i| self.concludes(i))
    }

    // ── A name before the number ────────────────────────────────────────────────────────────────────────────────────

    /// The nearest name before the number in its sentence that does not belong to another number.
    fn named_before(&self, at: usize) -> Option<Name> {
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
        doubt.map(|(name, _)| if self.opens(name, at) { Name::Code } else { Name::Other })
    }

    /// Whether the number opens the thing that is named before it: "To open the key box: 3920", "the front door is now
    /// 4096".
    fn opens(&self, owner: usize, at: usize) -> bool {
        let guarded = (0..owner).rev().take(5).any(|i| self.roles(i).any(Roles::GUARD));
        let colon = self.before(at).is_some_and(|i| self.kind(i) == Kind::Colon);
        let lock = (owner..at).any(|i| self.roles(i).any(Roles::LOCK));
        let door = lock && !colon && !self.is_like_time(at);
        self.is_introduced(at) && (self.roles(owner).any(Roles::OWNER) && guarded || door)
    }

    /// Whether a word that usually names another number ("dial", "number") does not do so here, because a lock or a
    /// person asks for the number: "Dial 2580 to open", "give the courier the number 4839".
    fn is_requested(&self, name: usize, at: usize) -> bool {
        let enters = |i: usize| self.roles(i).any(Roles::ENTER);
        let wanted =
            enters(name) || self.roles(name).any(Roles::KEY) && (name.saturating_sub(6)..name).any(enters);
        wanted && self.is_guarded(at)
    }

    /// Whether a name says what was counted: "14072 tokens".
    fn is_counted(&self, name: usize) -> bool {
        name > 0 && self.roles(name).any(Roles::UNIT) && matches!(self.kind(name - 1), Kind::Number(_))
    }

    /// Whether the text says that no code is needed: "bis 1200 ohne PIN", "sans code : 1200". "Without the code 4821 …"
    /// does give one.
    fn needs_no_code(&self, name: usize, at: usize) -> bool {
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

    // ── A name after the number, or in another sentence ─────────────────────────────────────────────────────────────

    /// Whether a code's name follows the number: "482913 is your code".
    fn is_named_after(&self, at: usize) -> bool {
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
    fn is_declared(&self, at: usize) -> bool {
        let is = self.after(at).is_some_and(|i| self.is_verb(i));
        let named = || self.code_after(at).is_some_and(|gap| gap.words <= 3 && !gap.comma);
        let sender = self.before(at).and_then(|colon| self.before(colon));
        let other = sender.is_some_and(|i| self.roles(i).any(Roles::NO_CODE));
        let purpose = !other && !self.is_short(at) && self.form(at) == Some(Form::Digits) && self.serves(at);
        self.begins_sentence(at) && (is && named() || purpose)
    }

    /// Whether this is a word for "is", and not just "now".
    fn is_verb(&self, at: usize) -> bool {
        self.roles(at).any(Roles::IS) && !self.roles(at).any(Roles::NOW)
    }

    /// What is between the number and a code's name later in the sentence, if that name does not belong to another
    /// number.
    fn code_after(&self, at: usize) -> Option<Gap> {
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
    fn has_own_number(&self, name: usize) -> bool {
        let light = Roles::IS.and(Roles::LINK).and(Roles::NAME).and(Roles::ACTION).and(Roles::PURPOSE);
        let next = (name + 1..self.tokens.len()).take(5).find(|i| match self.kind(*i) {
            Kind::Word(roles) => !roles.any(light),
            kind => matches!(kind, Kind::Number(_) | Kind::Stop | Kind::Line),
        });
        next.and_then(|i| self.form(i))
            .is_some_and(|form| !matches!(form, Form::Small | Form::Date | Form::Never))
    }

    /// Whether the number has its own line or sentence, near a code's name or near what a code is for.
    fn stands_alone(&self, at: usize) -> bool {
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
    fn is_spoken(&self, at: usize) -> bool {
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
    fn is_explained(&self, at: usize) -> bool {
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
    fn is_answer(&self, at: usize) -> bool {
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

    /// Whether the sentence before is about a lock: "The key safe is by the flue. It's 2904."
    fn follows_lock(&self, at: usize) -> bool {
        let own = (0..at).rev().take(6).find(|i| self.kind(*i) == Kind::Stop);
        let inside = |i: &usize| !matches!(self.kind(*i), Kind::Stop | Kind::Line | Kind::Number(_));
        let lock = |i: usize| self.roles(i).any(Roles::LOCK) && !self.roles(i).any(Roles::WIFI);
        self.form(at) == Some(Form::Digits)
            && !self.is_round(at)
            && self.ends_clause(at)
            && own.is_some_and(|stop| (0..stop).rev().take(FAR).take_while(inside).any(lock))
    }

    /// Whether the number continues a list of codes, after "and" or a comma, and looks like the code before it: "code
    /// 2468 and 1350 for the box".
    fn continues(&self, at: usize) -> bool {
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

    // ── A code without a name ───────────────────────────────────────────────────────────────────────────────────────

    /// Whether the text says to enter the number, and mentions a code or a login nearby: "enter 482913", "4821 girin".
    fn is_entered(&self, at: usize) -> bool {
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

    /// Whether the sentence mentions a keypad, a lock or a courier.
    fn is_guarded(&self, at: usize) -> bool {
        let inside = |i: &usize| !matches!(self.kind(*i), Kind::Stop | Kind::Line);
        let before = (0..at).rev().take(FAR).take_while(inside);
        let after = (at + 1..self.tokens.len()).take(FAR).take_while(inside);
        // "opens with 3500 exhibits" speaks of no lock
        let opens = !self.counts(at) || self.is_locked(at);
        let guards = |roles: Roles| {
            roles.any(Roles::GUARD) && !roles.any(Roles::ENTER) && (opens || !roles.any(Roles::OPEN))
        };
        before.chain(after).any(|i| guards(self.roles(i)))
    }

    /// Whether the number is given for a login or a confirmation: "Acme login: 482913", "Confirm your email: W2X-8PD",
    /// "482913 to verify your account".
    fn is_login(&self, at: usize) -> bool {
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
    fn serves(&self, at: usize) -> bool {
        (at + 1..self.tokens.len())
            .take(8)
            .take_while(|i| matches!(self.kind(*i), Kind::Word(_) | Kind::Sign | Kind::Quote))
            .any(|i| self.roles(i).any(Roles::ACTION.and(Roles::HIDE)))
    }

    /// Whether this is a code with a sender's prefix: "FB-38291 will confirm your number".
    fn is_prefixed(&self, at: usize) -> bool {
        let written = self.written(at);
        let letters = written.chars().take_while(|c| c.is_alphabetic()).count();
        let digits = written.chars().filter(|c| is_digit(*c)).count();
        let like = (1..=4).contains(&letters) && digits >= 4 + usize::from(letters == 2);
        like && written.contains('-') && self.begins_sentence(at) && self.serves(at)
    }

    /// Whether the number opens a lock or a network: "The padlock is 3612.", "Guest Wi-Fi, key 83920177".
    fn is_of_lock(&self, at: usize) -> bool {
        let locked = self.words_of_lock(at).any(|i| self.roles(i).any(Roles::LOCK));
        let beside = |roles: Roles| self.before(at).is_some_and(|i| self.roles(i).any(roles));
        let like_time = self.is_like_time(at);
        let told = self.is_introduced(at)
            && !(beside(Roles::AT) && like_time)
            && !(beside(Roles::NOW) && self.is_round(at))
            || beside(Roles::KEY)
            || (beside(Roles::LOCK) || self.is_near_lock(at)) && !like_time;
        let ends =
            |i: usize| matches!(self.kind(i), Kind::Stop | Kind::Line | Kind::Comma) || self.is_glued(i);
        let counted = beside(Roles::NOW) && self.counts(at);
        let ended = self.after(at).is_none_or(ends)
            || !like_time && (self.ends_clause(at) || beside(Roles::IS) && !counted);
        locked && told && ended
    }

    /// Whether a lock that has no number but its code is named right before: "the lock of the bike 4471".
    fn is_near_lock(&self, at: usize) -> bool {
        let numbered = Roles::NO_CODE.and(Roles::WIFI).and(Roles::OWNER);
        let lock = |i: usize| self.roles(i).any(Roles::LOCK) && !self.roles(i).any(numbered);
        self.form(at) == Some(Form::Digits) && !self.is_round(at) && self.words_of_lock(at).take(3).any(lock)
    }

    /// Whether the number is the new code of a lock: "the gate number changed, now 4826".
    fn is_new_of_lock(&self, at: usize) -> bool {
        let before = || self.words_of_lock(at).take_while(|i| self.kind(*i) != Kind::Colon);
        let word = |i: &usize| matches!(self.kind(*i), Kind::Word(_) | Kind::Sign);
        let after = (at + 1..self.tokens.len()).take(4).take_while(word);
        let is_new = |i: usize| self.roles(i).any(Roles::NOW.and(Roles::CHANGED));
        let plain = self.form(at) == Some(Form::Digits) && !self.is_like_time(at) && !self.is_round(at);
        plain
            && before().any(|i| self.roles(i).any(Roles::LOCK))
            && before().chain(after).any(is_new)
            && !self.counts(at)
    }

    /// The tokens before the number in its sentence, back to the name of something else: a price, a room.
    fn words_of_lock(&self, at: usize) -> impl Iterator<Item = usize> {
        let own = Roles::KEY.and(Roles::OWNER).and(Roles::LOCK).and(Roles::ENTER);
        let inside = move |i: &usize| match self.kind(*i) {
            Kind::Number(form) => form == Form::Small,
            Kind::Word(roles) => !roles.any(Roles::NO_CODE) || roles.any(own),
            kind => !matches!(kind, Kind::Stop | Kind::Line),
        };
        (0..at).rev().take(9).take_while(inside)
    }

    /// Whether something opens with the number: "the gate opens with 3917", "3917で開く".
    fn opens_with(&self, at: usize) -> bool {
        let inside = |i: &usize| !matches!(self.kind(*i), Kind::Stop | Kind::Line | Kind::Number(_));
        let mut before = (0..at).rev().take(6).take_while(inside);
        let mut after = (at + 1..self.tokens.len()).take(5).take_while(inside);
        let opens = |i: usize| self.roles(i).any(Roles::OPEN);
        let is = |i: Option<usize>, roles: Roles| i.is_some_and(|i| self.roles(i).any(roles));
        let by = is(self.before(at), Roles::BY) && before.any(opens)
            || is(self.after(at), Roles::BY) && after.any(opens);
        let small = self.before(at).filter(|i| self.roles(*i).any(Roles::LINK));
        let lead = small.and_then(|i| self.before(i)).or(self.before(at));
        let beside = is(lead, Roles::OPEN) || is(self.after(at), Roles::OPEN);
        let digits = self.form(at) == Some(Form::Digits) && !self.is_round(at);
        digits && by && (self.is_locked(at) || self.ends_clause(at) && !self.is_like_time(at))
            || digits && beside && self.is_locked(at) && !self.is_like_time(at)
    }

    fn ends_clause(&self, at: usize) -> bool {
        let ends = |i: usize| matches!(self.kind(i), Kind::Stop | Kind::Line | Kind::Comma);
        self.after(at).is_none_or(|i| ends(i) || self.roles(i).any(Roles::AND))
    }

    /// Whether an unknown word follows the number, so that it may count something: "opens with 3500 exhibits".
    fn counts(&self, at: usize) -> bool {
        let small = |i: usize| self.written(i).chars().next().is_some_and(char::is_lowercase);
        self.kind(at + 1) == Kind::Word(Roles::default()) && small(at + 1)
    }

    /// Whether the sentence before the number mentions a lock.
    fn is_locked(&self, at: usize) -> bool {
        let inside = |i: &usize| !matches!(self.kind(*i), Kind::Stop | Kind::Line);
        (0..at).rev().take(9).take_while(inside).any(|i| self.roles(i).any(Roles::LOCK))
    }

    /// Whether commas set the number off in a sentence about a lock: "Lockbox is left of the meter, 3902, pull hard".
    fn is_set_off(&self, at: usize) -> bool {
        let inside = |i: &usize| match self.kind(*i) {
            Kind::Number(form) => form == Form::Small,
            kind => !matches!(kind, Kind::Stop | Kind::Line),
        };
        let lock = |i: usize| self.roles(i).any(Roles::LOCK) && !self.roles(i).any(Roles::WIFI);
        self.form(at) == Some(Form::Digits)
            && !self.is_like_time(at)
            && !self.is_round(at)
            && at > 0
            && self.kind(at - 1) == Kind::Comma
            && (self.ends_clause(at)
                || self.after(at).is_some_and(|i| self.is_verb(i) && self.ends_clause(i)))
            && (0..at).rev().take(12).take_while(inside).any(lock)
    }

    /// Whether the text says to keep the number secret or that it expires soon: "Do not share: 482913", "Here you go:
    /// 482913. Expires in 10 minutes."
    fn is_marked_secret(&self, at: usize) -> bool {
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
    fn is_surrounded(&self, at: usize) -> bool {
        let long = self.form(at) == Some(Form::Digits) && !self.is_short(at) && !self.is_like_time(at);
        let led = self.before(at).is_some_and(|i| self.roles(i).any(Roles::AT));
        let secret = || self.is_near(at, Roles::HIDE) || self.is_fleeting(at);
        long && !led && self.is_first(at) && secret() && self.is_near(at, Roles::ACTION)
    }

    /// Whether the digits are written one by one or in three pairs, as one dictates a code, and the sentence asks to type
    /// something. Digits one by one are a code also beside a lock or a secret.
    fn is_dictated(&self, at: usize) -> bool {
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

    /// Whether the digits of a lock are written one by one: "neue Nummer am Schloss 4-7-1-9".
    fn is_dialled(&self, at: usize) -> bool {
        let groups: Vec<&str> = self.written(at).split('-').collect();
        let single = (4..=6).contains(&groups.len()) && groups.iter().all(|group| group.chars().count() == 1);
        single && self.form(at) == Some(Form::Digits) && self.is_guarded(at)
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

    /// Whether what looks like a date is explicitly given as a code: "Code: 14-11-26", or "the code is 14-11-26." with
    /// nothing after it.
    fn is_told_as_code(&self, at: usize) -> bool {
        let Some(lead) = self.before(at) else { return false };
        let named = lead > 0 && self.before(lead).is_some_and(|i| self.roles(i).any(Roles::NAME));
        let is = self.roles(lead).any(Roles::IS) && self.ends_sentence(at);
        named && (self.kind(lead) == Kind::Colon || is)
    }

    // ── Position in the sentence ────────────────────────────────────────────────────────────────────────────────────

    /// Whether a colon, "is" or "=" directly precedes the number.
    fn is_introduced(&self, at: usize) -> bool {
        self.before(at).is_some_and(|i| self.kind(i) == Kind::Colon || self.roles(i).any(Roles::IS))
    }

    /// Whether the word before the number means "is" in one language and something else in another, such as "to" in
    /// Polish and English.
    fn is_weakly_told(&self, at: usize) -> bool {
        self.before(at).is_some_and(|i| self.roles(i).any(Roles::LINK))
    }

    /// Whether the number has at most four characters: short enough for a time, a year or a house number.
    fn is_short(&self, at: usize) -> bool {
        self.written(at).chars().filter(|c| c.is_alphanumeric()).count() <= 4
    }

    fn is_quoted(&self, at: usize) -> bool {
        at > 0
            && self.kind(at - 1) == Kind::Quote
            && self.kind(at + 1) == Kind::Quote
            && self.is_glued(at)
            && self.is_glued(at + 1)
    }

    /// Whether no code was found before it.
    fn is_first(&self, at: usize) -> bool {
        !(0..at).rev().take(REACH).any(|i| self.secret[i])
    }

    fn is_dash(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|_| matches!(self.written(at), "-" | "–" | "—" | "―"))
    }

    fn is_capital(&self, at: usize) -> bool {
        let word = matches!(self.kind(at), Kind::Word(_));
        word && self.written(at).chars().next().is_some_and(char::is_uppercase)
    }

    /// Whether only signs are between the number and the start of its sentence or a colon.
    fn begins_sentence(&self, at: usize) -> bool {
        self.before(at).is_none_or(|i| matches!(self.kind(i), Kind::Stop | Kind::Line | Kind::Colon))
            || self.follows_sender(at)
    }

    /// Whether only signs or an aside are between the number and the end of its sentence.
    fn ends_sentence(&self, at: usize) -> bool {
        let aside = self.tokens.get(at + 1).is_some_and(|_| matches!(self.written(at + 1), "(" | "（"));
        aside || self.after(at).is_none_or(|i| matches!(self.kind(i), Kind::Stop | Kind::Line))
    }

    /// Whether the number follows a sender's name in brackets: `[Bank] 482913`, `【Bank】482913`.
    fn follows_sender(&self, at: usize) -> bool {
        at > 0 && matches!(self.written(at - 1), "]" | "】" | ">" | "]:")
    }

    /// Whether a code is named nearby without a number of its own.
    fn code_is_near(&self, at: usize) -> bool {
        self.is_near(at, Roles::NAME)
    }

    fn is_near(&self, at: usize, roles: Roles) -> bool {
        let before = (0..at).rev().take(REACH).take_while(|i| !self.secret[*i]);
        let after = (at + 1..self.tokens.len()).take(REACH).filter(|i| !self.has_own_number(*i));
        before.chain(after).any(|i| self.roles(i).any(roles))
    }

    // ── Other codes ─────────────────────────────────────────────────────────────────────────────────────────────────

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
