//! Decides which numbers of a message are codes, by who names them.

use std::collections::HashSet;
use std::ops::Range;

use super::lexicon::Roles;
use super::tokens::{Form, Kind, Token, is_digit, is_year, tokens, value};

/// How many tokens a look to either side goes at most.
const REACH: usize = 48;
/// How many words may stand between a code's name and the code.
const FAR: usize = 14;

/// How to decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    Judge,
    /// Whatever could be a code is one.
    TakeAll,
}

/// Where the codes are in this text.
pub(super) fn judge(text: &str, patience: Patience) -> Vec<Range<usize>> {
    let tokens = tokens(text);
    let mut reader = Reader { text, tokens: &tokens, secret: vec![false; tokens.len()] };
    for at in 0..tokens.len() {
        reader.secret[at] = reader.judge(at, patience);
    }
    reader.mark_repeated();
    let is_new = |at: &usize| reader.secret[*at] && tokens[*at].kind != Kind::Number(Form::Redacted);
    (0..tokens.len()).filter(is_new).map(|at| tokens[at].start..tokens[at].end).collect()
}

/// Who names a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Code,
    Other,
}

/// What stands between a name and the number after it.
#[derive(Debug, Default, Clone, Copy)]
struct Gap {
    words: usize,
    comma: bool,
    number: bool,
    /// The roles of all the words.
    seen: Roles,
}

impl Gap {
    /// Is a name on the other side near enough to name the number? Not if one is told to enter it: 番号を入力：4821.
    fn names_at_hand(self) -> bool {
        self.words <= 2 && !self.comma && !self.seen.any(Roles::ENTER)
    }
}

struct Reader<'a> {
    text: &'a str,
    tokens: &'a [Token],
    /// Which tokens were found to be codes; filled from left to right.
    secret: Vec<bool>,
}

impl Reader<'_> {
    fn judge(&self, at: usize, patience: Patience) -> bool {
        match self.tokens[at].kind {
            Kind::Number(Form::Redacted) => true,
            Kind::Number(Form::Small | Form::Never) => false,
            Kind::Number(_) => patience == Patience::TakeAll || self.is_code(at),
            Kind::Word(roles) => self.is_word_code(at, roles),
            _ => false,
        }
    }

    fn is_code(&self, at: usize) -> bool {
        if self.is_bound_to_site(at) {
            return true;
        }
        if self.is_amount(at) || self.is_postal(at) || self.is_slogan(at) || self.hands_over(at) {
            return false;
        }
        match self.named_before(at) {
            Some(name) => name == Name::Code,
            None if self.form(at) == Some(Form::Loose) => false,
            None => {
                self.form(at) == Some(Form::Google)
                    || self.is_named_after(at)
                    || self.stands_alone(at)
                    || self.is_entered(at)
                    || self.is_quoted(at) && self.code_is_near(at)
                    || self.is_login(at)
                    || self.continues(at)
            }
        }
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

    /// How many words a word counts for: a long run without blanks is several.
    fn weight(&self, at: usize) -> usize {
        let light = Roles::LINK.and(Roles::IS).and(Roles::AND).and(Roles::OWNER);
        if self.roles(at).any(light) { 0 } else { 1 + (self.tokens[at].end - self.tokens[at].start) / 24 }
    }

    /// The nearest token before this one that is no quote, bracket or picture.
    fn before(&self, at: usize) -> Option<usize> {
        (0..at).rev().take(REACH).find(|i| !matches!(self.kind(*i), Kind::Quote | Kind::Sign))
    }

    fn after(&self, at: usize) -> Option<usize> {
        (at + 1..self.tokens.len()).take(REACH).find(|i| !matches!(self.kind(*i), Kind::Quote | Kind::Sign))
    }

    /// Four digits that could be a time of day or a year.
    fn is_like_time(&self, at: usize) -> bool {
        let written = self.written(at);
        let value = value(written);
        let four = written.chars().count() == 4 && written.chars().all(is_digit);
        four && (is_year(value) || value / 100 < 24 && value % 100 < 60)
    }

    /// `BA2490`: two letters and a few digits.
    fn is_like_flight(&self, at: usize) -> bool {
        let written = self.written(at);
        let letters = written.chars().take_while(|c| c.is_alphabetic()).count();
        letters == 2 && written.chars().skip(2).all(is_digit) && written.chars().count() <= 6
    }

    // ── Questions ────────────────────────────────────────────────────────────────────────────────────────────────

    /// `@example.com #482913`, as browsers read it: the last line of a message that is bound to a site.
    fn is_bound_to_site(&self, at: usize) -> bool {
        let line = (0..at).rev().take(REACH).take_while(|i| !matches!(self.kind(*i), Kind::Line)).last();
        line.is_some_and(|first| self.written(first) == "@")
            && self.is_glued(at)
            && self.written(at - 1) == "#"
    }

    /// A unit after the number. One of a single character must stand alone or stick to the number, or it is the
    /// beginning of another word.
    fn is_amount(&self, at: usize) -> bool {
        let unit = at + 1;
        if !self.roles(unit).any(Roles::UNIT) {
            return self.roles(unit + 1).any(Roles::UNIT) && self.is_street(unit);
        }
        let short = self.written(unit).chars().nth(1).is_none();
        let apart = !self.is_glued(unit);
        !(short && apart && self.is_glued(unit + 1) && matches!(self.kind(unit + 1), Kind::Word(_)))
    }

    /// "PIN code 560034, Koramangala": what India calls its postal codes, where an address is told.
    fn is_postal(&self, at: usize) -> bool {
        let named = self.before(at).is_some_and(|name| {
            let pincode = self.written(name).eq_ignore_ascii_case("pincode");
            let pair = name > 0 && self.written(name).eq_ignore_ascii_case("code");
            pincode || pair && self.written(name - 1).eq_ignore_ascii_case("pin")
        });
        let six = self.written(at).chars().filter(|c| is_digit(*c)).count() == 6;
        named && six && self.is_near(at, Roles::PLACE)
    }

    /// `SAVE20` where a discount is spoken of.
    fn is_slogan(&self, at: usize) -> bool {
        let written = self.written(at);
        let letters = written.chars().take_while(|c| c.is_alphabetic()).count();
        let like = letters >= 3 && written.chars().skip(letters).all(is_digit);
        let deal = |i: usize| self.written(i) == "%" || self.roles(i).any(Roles::KIND);
        let (from, to) = (at.saturating_sub(REACH / 2), (at + REACH / 2).min(self.tokens.len()));
        like && (from..to).any(deal)
    }

    /// "2200 Oak Street"
    fn is_street(&self, name: usize) -> bool {
        let capital = |i: usize| self.written(i).chars().next().is_some_and(char::is_uppercase);
        matches!(self.kind(name), Kind::Word(_)) && self.roles(name + 1).any(Roles::PLACE) && capital(name)
    }

    /// Does a colon, "is" or "=" stand right before it?
    fn is_told(&self, at: usize) -> bool {
        self.before(at).is_some_and(|i| self.kind(i) == Kind::Colon || self.roles(i).any(Roles::IS))
    }

    /// "The code for room 1204: 4821": the number tells what the code is of, and the code follows.
    fn hands_over(&self, at: usize) -> bool {
        let plain = |i: &usize| match self.kind(*i) {
            Kind::Word(roles) => !roles.any(Roles::NAME),
            kind => kind == Kind::Colon,
        };
        let last = (at + 1..self.tokens.len()).take(4).take_while(plain).last();
        let tells = |i: usize| self.kind(i) == Kind::Colon || self.roles(i).any(Roles::IS);
        let follows =
            |i: usize| self.form(i + 1).is_some_and(|form| !matches!(form, Form::Small | Form::Never));
        !self.is_told(at) && last.is_some_and(|i| tells(i) && follows(i))
    }

    /// "to" is "is" in Polish and something else in English.
    fn is_weakly_told(&self, at: usize) -> bool {
        self.before(at).is_some_and(|i| self.roles(i).any(Roles::LINK))
    }

    /// At most four digits: short enough for a time, a year, a house number.
    fn is_short(&self, at: usize) -> bool {
        self.written(at).chars().filter(|c| c.is_alphanumeric()).count() <= 4
    }

    /// The name that stands before the number in its sentence and has no other number yet.
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
                    // "… and the one of the box 1350": no name of its own, so what the code before it says counts.
                    return doubt
                        .filter(|(name, _)| !self.roles(*name).any(Roles::OWNER))
                        .map(|_| Name::Other);
                }
                Kind::Number(_) => (taken, gap.number) = (true, true),
                Kind::Comma => gap.comma = true,
                Kind::Sign => aside = self.aside(i).unwrap_or(aside),
                Kind::Word(_) if roles.any(Roles::NAME) => {
                    return self.weigh(at, gap, doubt.map(|(_, gap)| gap));
                }
                Kind::Word(_) if roles.any(Roles::NO_CODE) && taken => taken = self.names_on(i),
                Kind::Word(_) if roles.any(Roles::NO_CODE) && doubt.is_none() && gap.names_at_hand() => {
                    if !self.is_told(at) && !roles.any(Roles::OWNER) {
                        return Some(Name::Other);
                    }
                    doubt = Some((i, gap));
                }
                Kind::Word(_) => (gap.words, gap.seen) = (gap.words + self.weight(i), gap.seen.and(roles)),
                _ => {}
            }
        }
        doubt.map(|_| Name::Other)
    }

    /// "order number 55512": two words name one number.
    fn names_on(&self, name: usize) -> bool {
        name > 0 && self.roles(name - 1).any(Roles::NO_CODE)
    }

    /// "(valid for 5 minutes)" is an aside; what stands before it goes on behind it. Where it begins.
    fn aside(&self, close: usize) -> Option<usize> {
        if !matches!(self.written(close), ")" | "）") {
            return None;
        }
        let inner =
            (0..close).rev().take(16).take_while(|i| !matches!(self.kind(*i), Kind::Stop | Kind::Line));
        let mut inner = inner.take_while(|i| !self.roles(*i).any(Roles::NAME));
        inner.find(|i| matches!(self.written(*i), "(" | "（"))
    }

    /// A line that ends with a colon goes on in the next.
    fn goes_on(&self, line: usize) -> bool {
        line > 0 && self.kind(line - 1) == Kind::Colon
    }

    /// A code's name stands before the number: does it reach it?
    fn weigh(&self, at: usize, gap: Gap, doubt: Option<Gap>) -> Option<Name> {
        let told = self.is_told(at);
        if let Some(nearer) = doubt {
            // "the code for your order is 4821" and "code de la porte 4821", but not "code sent, room 4417".
            let close = gap.words <= nearer.words + 1;
            return Some(if !gap.comma && !gap.seen.any(Roles::INERT) && (told || close) {
                Name::Code
            } else {
                Name::Other
            });
        }
        let led =
            self.before(at).is_some_and(|i| self.roles(i).any(Roles::AT) && !self.roles(i).any(Roles::IS));
        let inert = gap.seen.any(Roles::INERT) && self.is_short(at);
        let far = gap.words > FAR || gap.comma && gap.words > 4 || inert;
        let reaches = match self.form(at) {
            Some(Form::Loose) => gap.words == 0 && !gap.comma && !gap.number,
            Some(Form::Mixed) => !led && (gap.words == 0 || !self.is_like_flight(at)),
            _ => !(self.is_like_time(at) && (led || self.begins_anew(at))),
        };
        let bridged = told && !(inert && self.is_weakly_told(at)) || self.is_quoted(at) && !inert;
        (reaches && (!far || bridged)).then_some(Name::Code)
    }

    /// "The Da Vinci Code, 1930 screening": after a comma, and more about it follows.
    fn begins_anew(&self, at: usize) -> bool {
        let goes_on = self.tokens.get(at + 1).is_some_and(|next| next.kind == Kind::Word(Roles::default()));
        goes_on && !self.is_glued(at + 1) && at > 0 && self.kind(at - 1) == Kind::Comma
    }

    /// "482913 is your code"
    fn is_named_after(&self, at: usize) -> bool {
        if self.roles(at + 1).any(Roles::NO_CODE) {
            return false;
        }
        let Some(Gap { words, comma, .. }) = self.code_after(at) else { return false };
        let next = self.after(at);
        let is = next.is_some_and(|i| self.roles(i).any(Roles::IS)) || self.is_dash(at + 1);
        let led = self.before(at).is_some_and(|i| self.roles(i).any(Roles::AT));
        let long = self.form(at) == Some(Form::Mixed)
            || self.written(at).chars().filter(|c| is_digit(*c)).count() > 4;
        self.begins_sentence(at) || is || words == 0 && !led || long && !led && !comma && words <= 6
    }

    fn is_dash(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|_| matches!(self.written(at), "-" | "–" | "—" | "―"))
    }

    /// What stands between the number and a code's name after it in the sentence, one that has no other number.
    fn code_after(&self, at: usize) -> Option<Gap> {
        let mut gap = Gap::default();
        for i in (at + 1..self.tokens.len()).take(REACH) {
            match self.kind(i) {
                Kind::Stop | Kind::Line if self.stands_in_sentence_alone(at) && gap.words == 0 => {}
                Kind::Number(Form::Small | Form::Loose) => {}
                Kind::Stop | Kind::Line | Kind::Number(_) => return None,
                Kind::Word(roles) if roles.any(Roles::NAME) => {
                    return (!self.has_own_number(i)).then_some(gap);
                }
                Kind::Word(_) => gap.words += self.weight(i),
                Kind::Comma => gap.comma = true,
                _ => {}
            }
        }
        None
    }

    /// Does a number follow this name at once, so that it names that one?
    fn has_own_number(&self, name: usize) -> bool {
        let next = (name + 1..self.tokens.len()).take(4).find(|i| match self.kind(*i) {
            Kind::Word(roles) => !roles.any(Roles::IS.and(Roles::LINK).and(Roles::NAME)),
            kind => matches!(kind, Kind::Number(_) | Kind::Stop | Kind::Line),
        });
        next.and_then(|i| self.form(i)).is_some_and(|form| !matches!(form, Form::Small | Form::Never))
    }

    /// Only signs between the beginning of the sentence, or a colon, and the number.
    fn begins_sentence(&self, at: usize) -> bool {
        self.before(at).is_none_or(|i| matches!(self.kind(i), Kind::Stop | Kind::Line | Kind::Colon))
            || self.follows_sender(at)
    }

    /// `[Bank] 482913`, `【Bank】482913`
    fn follows_sender(&self, at: usize) -> bool {
        at > 0 && matches!(self.written(at - 1), "]" | "】" | ">" | "]:")
    }

    fn stands_in_sentence_alone(&self, at: usize) -> bool {
        let before = self.before(at).is_none_or(|i| self.kind(i) == Kind::Line);
        let after = self.after(at).is_none_or(|i| matches!(self.kind(i), Kind::Stop | Kind::Line));
        before && after
    }

    /// A line of its own, near a code's name or near what a code is for.
    fn stands_alone(&self, at: usize) -> bool {
        let digits = self.form(at) == Some(Form::Digits);
        let named = || self.code_is_near(at) && (digits || self.is_first(at));
        let login = || self.is_near(at, Roles::ACTION) && digits;
        self.stands_in_sentence_alone(at) && (named() || login()) || self.begins_after_name(at)
    }

    /// No code was found before it.
    fn is_first(&self, at: usize) -> bool {
        !(0..at).rev().take(REACH).any(|i| self.secret[i])
    }

    /// "Access code⏎4821 is valid for five minutes": the line before is little more than the name.
    fn begins_after_name(&self, at: usize) -> bool {
        let Some(line) = self.before(at).filter(|i| self.kind(*i) == Kind::Line) else { return false };
        let last = self.before(line);
        last.is_some_and(|i| self.kind(i) == Kind::Colon || self.roles(i).any(Roles::NAME))
            && self.code_is_near(at)
    }

    /// Is a code named around here, without a number of its own?
    fn code_is_near(&self, at: usize) -> bool {
        self.is_near(at, Roles::NAME)
    }

    fn is_near(&self, at: usize, roles: Roles) -> bool {
        let before = (0..at).rev().take(REACH).take_while(|i| !self.secret[*i]);
        let after = (at + 1..self.tokens.len()).take(REACH).filter(|i| !self.has_own_number(*i));
        before.chain(after).any(|i| self.roles(i).any(roles))
    }

    fn is_quoted(&self, at: usize) -> bool {
        at > 0
            && self.kind(at - 1) == Kind::Quote
            && self.kind(at + 1) == Kind::Quote
            && self.is_glued(at)
            && self.is_glued(at + 1)
    }

    /// "enter 482913", "4821 girin", and somewhere around a code or a login is spoken of.
    fn is_entered(&self, at: usize) -> bool {
        let verb = |i: &usize| self.roles(*i).any(Roles::ENTER);
        let word = |i: &usize| matches!(self.kind(*i), Kind::Word(_) | Kind::Quote | Kind::Sign);
        let word_or_colon = |i: &usize| word(i) || self.kind(*i) == Kind::Colon;
        let before = (0..at).rev().take(4).take_while(word_or_colon).any(|i| verb(&i));
        let after = (at + 1..self.tokens.len()).take(4).take_while(word).find(verb);
        let after = after.is_some_and(|i| !self.has_own_number(i));
        let led = self.before(at).is_some_and(|i| self.roles(i).any(Roles::AT)) && self.is_like_time(at);
        (before || after) && !led && (self.code_is_near(at) || self.is_near(at, Roles::ACTION))
    }

    /// "Acme login: 482913", "482913 to verify your account".
    fn is_login(&self, at: usize) -> bool {
        let digits = self.form(at) == Some(Form::Digits) && !self.is_like_time(at);
        let colon = self.before(at).filter(|i| self.kind(*i) == Kind::Colon);
        let name =
            colon.and_then(|colon| (0..colon).rev().take(4).find(|i| matches!(self.kind(*i), Kind::Word(_))));
        let named = name.is_some_and(|i| self.roles(i).any(Roles::ACTION));
        let purpose = (at + 1..self.tokens.len())
            .take(5)
            .take_while(|i| matches!(self.kind(*i), Kind::Word(_) | Kind::Sign | Kind::Quote));
        let serves =
            self.begins_sentence(at) && purpose.into_iter().any(|i| self.roles(i).any(Roles::ACTION));
        digits && (named || serves)
    }

    /// "code 2468 and 1350 for the box": a number like the code before it, after "and" or a comma.
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

    /// Both of digits, and of one length.
    fn is_alike(&self, code: usize, at: usize) -> bool {
        let digits = |i: usize| (self.form(i) == Some(Form::Digits)).then(|| self.written(i).chars().count());
        digits(code).is_some() && digits(code) == digits(at)
    }

    /// Letters only are a code where hardly anything else is possible: "Your code: KXTQPL", "code «KXTQPL»".
    fn is_word_code(&self, at: usize, roles: Roles) -> bool {
        let written = self.written(at);
        let long = (5..=8).contains(&written.chars().count());
        if roles != Roles::default() || !long || !written.chars().all(char::is_uppercase) {
            return false;
        }
        let vowels = written.chars().filter(|c| "AEIOUYАЕИОУЫЭЮЯІЇ".contains(*c)).count();
        let ends =
            self.after(at).is_none_or(|i| matches!(self.kind(i), Kind::Stop | Kind::Line | Kind::Comma));
        let Some(mut name) = self.before(at) else { return false };
        let told = self.is_told(at) || self.is_quoted(at);
        while name > 0 && (self.kind(name) == Kind::Colon || self.roles(name).any(Roles::IS)) {
            name -= 1;
        }
        vowels * 3 <= written.chars().count() && ends && told && self.roles(name).any(Roles::NAME)
    }

    /// What was found to be a code is one wherever it stands.
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
