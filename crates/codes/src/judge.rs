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

/// How doubtful numbers are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// By the words around them.
    Judge,
    /// All of them are codes.
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

/// What a number is named as.
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
    /// How many of the words stand between the number and the first comma.
    until_comma: usize,
    /// How many of the words stand between the number and the last comma.
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

    /// Is a name on the other side near enough to name the number? Not if one is told to enter it: 番号を入力：4821.
    fn names_at_hand(self) -> bool {
        self.words <= 2 && !self.comma && !self.seen.any(Roles::ENTER)
    }
}

/// A message while its numbers are judged, from left to right.
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
        if self.is_ruled_out(at) || self.is_concluded_later(at) {
            return false;
        }
        if self.concludes(at) {
            return true;
        }
        match self.named_before(at) {
            Some(name) => name == Name::Code || self.is_declared(at),
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
            || self.is_sender(at)
    }

    /// No name stands before it in its sentence, but one after it or in another sentence.
    fn is_named(&self, at: usize) -> bool {
        self.is_named_after(at)
            || self.stands_alone(at)
            || self.is_explained(at)
            || self.is_answer(at)
            || self.is_quoted(at) && self.code_is_near(at)
            || self.continues(at)
    }

    /// No name need be said: one is to enter it, to hide it, to log in or to open something with it.
    fn is_meant(&self, at: usize) -> bool {
        self.is_entered(at)
            || self.is_login(at)
            || self.is_prefixed(at)
            || self.is_of_lock(at)
            || self.is_hushed(at)
            || self.is_surrounded(at)
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

    /// Four digits that could be a time of day or a year, or two such with a hyphen: `0900-1700`.
    fn is_like_time(&self, at: usize) -> bool {
        let is_like = |part: &str| {
            let value = value(part);
            let four = part.chars().count() == 4 && part.chars().all(is_digit);
            four && (is_year(value) || value / 100 < 24 && value % 100 < 60)
        };
        self.written(at).split('-').all(is_like)
    }

    /// `BA2490`: two letters and a few digits.
    fn is_like_flight(&self, at: usize) -> bool {
        let written = self.written(at);
        let letters = written.chars().take_while(|c| c.is_alphabetic()).count();
        letters == 2 && written.chars().skip(2).all(is_digit) && written.chars().count() <= 6
    }

    /// `OUTILS24`: a word and one or two digits.
    fn is_like_brand(&self, at: usize) -> bool {
        let letters = self.written(at).chars().take_while(|c| c.is_alphabetic()).count();
        let digits = self.written(at).chars().skip(letters);
        letters >= 3 && digits.clone().count() <= 2 && digits.clone().all(is_digit)
    }

    // ── By its form alone ───────────────────────────────────────────────────────────────────────────────────────────

    /// `@example.com #482913`, as browsers read it: the last line of a message that is bound to a site.
    fn is_bound_to_site(&self, at: usize) -> bool {
        let line = (0..at).rev().take(REACH).take_while(|i| !matches!(self.kind(*i), Kind::Line)).last();
        line.is_some_and(|first| self.written(first) == "@")
            && self.is_glued(at)
            && self.written(at - 1) == "#"
    }

    /// `2244#`, as one types it at a door.
    fn is_keyed(&self, at: usize) -> bool {
        let more = self.is_glued(at + 2) && matches!(self.kind(at + 2), Kind::Word(_) | Kind::Number(_));
        let ends = self.is_glued(at + 1) && self.written(at + 1) == "#" && !more;
        let door = || self.is_near(at, Roles::NAME.and(Roles::OWNER).and(Roles::GUARD));
        self.form(at) == Some(Form::Digits) && ends && door()
    }

    // ── No code ─────────────────────────────────────────────────────────────────────────────────────────────────────

    /// A unit after the number. One of a single character must stand alone or stick to the number, or it is the
    /// beginning of another word.
    fn is_amount(&self, at: usize) -> bool {
        let unit = at + 1;
        if !self.roles(unit).any(Roles::UNIT) {
            return self.is_street(unit) || self.is_capital(unit) && self.is_street(unit + 1);
        }
        let short = self.written(unit).chars().nth(1).is_none();
        let apart = !self.is_glued(unit);
        !(short && apart && self.is_glued(unit + 1) && matches!(self.kind(unit + 1), Kind::Word(_)))
    }

    /// "2200 Oak Street"
    fn is_street(&self, name: usize) -> bool {
        self.is_capital(name) && self.is_capital(name + 1) && self.roles(name + 1).any(Roles::PLACE)
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

    /// `SAVE20` where a discount is spoken of, or where it is a word that one can say.
    fn is_slogan(&self, at: usize) -> bool {
        let written = self.written(at);
        let letters = written.chars().take_while(|c| c.is_alphabetic()).count();
        let like = letters >= 3 && written.chars().skip(letters).all(is_digit);
        let vowels = written.chars().filter(|c| VOWELS.contains(*c)).count();
        let spoken = letters >= 4 && vowels * 3 >= letters && self.is_like_brand(at) && !self.is_told(at);
        let deal = |i: usize| self.written(i) == "%" || self.roles(i).any(Roles::KIND);
        let (from, to) = (at.saturating_sub(REACH / 2), (at + REACH / 2).min(self.tokens.len()));
        like && (spoken || (from..to).any(deal))
    }

    /// "The code for room 1204: 4821": the number tells what the code is of, and the code follows.
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
        !self.is_told(at) && last.is_some_and(|i| tells(i) && follows(i))
    }

    /// "Pin 2026 on your calendar", "to pin 4500 leaflets": the verb, not the number.
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

    /// "Text CODE to 82000"
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

    /// "the phone ending in 4471", "4471 ile biten": the end of a longer number, unless a code is named in between.
    fn is_tail(&self, at: usize) -> bool {
        let inside =
            |i: &usize| !matches!(self.kind(*i), Kind::Stop | Kind::Line | Kind::Comma | Kind::Number(_));
        let before = (0..at).rev().take(6).take_while(inside);
        let nearest = before.into_iter().find(|i| self.roles(*i).any(Roles::TAIL.and(Roles::NAME)));
        let after = (at + 1..self.tokens.len()).take(3).take_while(inside);
        let behind = after.into_iter().find(|i| self.roles(*i).any(Roles::TAIL.and(Roles::NAME)));
        let is = |i: Option<usize>| i.is_some_and(|i| self.roles(i).any(Roles::TAIL));
        self.is_short(at) && (is(nearest) || is(behind) && !self.is_told(at))
    }

    /// "1930 पर कॉल करें", "1410までお電話ください": one is to call it.
    fn is_called(&self, at: usize) -> bool {
        let inside = |i: &usize| !matches!(self.kind(*i), Kind::Stop | Kind::Line | Kind::Comma);
        let mut after = (at + 1..self.tokens.len()).take(4).take_while(inside);
        let few = self.written(at).chars().filter(|c| is_digit(*c)).count() <= 5;
        few && after.any(|i| self.roles(i).any(Roles::CALLED))
    }

    /// "The code comes from 57575": who sends it. What opens a lock or is typed in is no sender.
    fn is_sender(&self, at: usize) -> bool {
        self.form(at) == Some(Form::Digits) && self.before(at).is_some_and(|i| self.roles(i).any(Roles::FROM))
    }

    // ── At the end of what it is told with ──────────────────────────────────────────────────────────────────────────

    /// "OTP for your payment of 64.99 at Shop 3217 is 771290.": the last word of a sentence that is about a code or that
    /// tells to enter something, whatever other numbers it holds.
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
                // "the order number is 55512": it names this one.
                Kind::Word(_) if roles.any(Roles::NO_CODE) && !roles.any(Roles::ENTER) && !numbered => {
                    return false;
                }
                Kind::Word(_) if roles.any(Roles::NAME) && self.is_spared(i, at) => return false,
                Kind::Word(_) if roles.any(Roles::NAME.and(Roles::ENTER)) && !self.is_counted(i) => {
                    return true;
                }
                _ => {}
            }
        }
        false
    }

    /// What leads to the number: "is", or a colon, with the number perhaps on a line of its own.
    fn lead(&self, at: usize) -> Option<usize> {
        let before = (0..at)
            .rev()
            .take(4)
            .find(|i| !matches!(self.kind(*i), Kind::Line | Kind::Quote | Kind::Sign))?;
        let same_line = self.kind(at - 1) != Kind::Line;
        let leads = self.kind(before) == Kind::Colon || same_line && self.roles(before).any(Roles::IS);
        leads.then_some(before)
    }

    /// "am 12.06. um 14:30": the point belongs to the date.
    fn is_midway(&self, stop: usize) -> bool {
        let small = |i: usize| self.written(i).chars().next().is_some_and(char::is_lowercase);
        stop > 0
            && matches!(self.kind(stop - 1), Kind::Number(_))
            && matches!(self.kind(stop + 1), Kind::Word(_))
            && small(stop + 1)
    }

    /// Another number of the sentence is the one that is told.
    fn is_concluded_later(&self, at: usize) -> bool {
        let inside = |i: &usize| !matches!(self.kind(*i), Kind::Stop | Kind::Line);
        let rest = (at + 1..self.tokens.len()).take(REACH).take_while(inside);
        rest.filter(|i| self.form(*i).is_some()).any(|i| self.concludes(i))
    }

    // ── A name before it ────────────────────────────────────────────────────────────────────────────────────────────

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
                Kind::Comma => gap.pass_comma(),
                Kind::Sign => aside = self.aside(i).unwrap_or(aside),
                Kind::Word(_) if roles.any(Roles::NAME) && self.is_spared(i, at) => gap.pass_word(1, roles),
                Kind::Word(_) if roles.any(Roles::NAME) && !self.is_counted(i) => {
                    return self.weigh(at, gap, doubt);
                }
                Kind::Word(_) if roles.any(Roles::NO_CODE) && self.is_handed(i, at) => {
                    gap.pass_word(0, roles);
                }
                Kind::Word(_) if roles.any(Roles::NO_CODE) && taken => taken = self.names_on(i),
                Kind::Word(_) if roles.any(Roles::NO_CODE) && doubt.is_none() && gap.names_at_hand() => {
                    if !self.is_told(at) && !roles.any(Roles::OWNER) {
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

    /// "To open the key box: 3920", "the front door is now 4096"
    fn opens(&self, owner: usize, at: usize) -> bool {
        let guarded = (0..owner).rev().take(5).any(|i| self.roles(i).any(Roles::GUARD));
        let colon = self.before(at).is_some_and(|i| self.kind(i) == Kind::Colon);
        let door = self.roles(owner).any(Roles::LOCK) && !colon && !self.is_like_time(at);
        self.is_told(at) && (self.roles(owner).any(Roles::OWNER) && guarded || door)
    }

    /// "Dial 2580 to open", "give the courier the number 4839": no other name, as a lock or a person wants it.
    fn is_handed(&self, name: usize, at: usize) -> bool {
        let enters = |i: usize| self.roles(i).any(Roles::ENTER);
        let wanted =
            enters(name) || self.roles(name).any(Roles::KEY) && (name.saturating_sub(4)..name).any(enters);
        wanted && self.is_guarded(at)
    }

    /// "14072 tokens": a name that says what was counted.
    fn is_counted(&self, name: usize) -> bool {
        name > 0 && self.roles(name).any(Roles::UNIT) && matches!(self.kind(name - 1), Kind::Number(_))
    }

    /// "bis 1200 ohne PIN", "sans code : 1200": where none is needed, none is told. "Without the code 4821 …" tells one.
    fn is_spared(&self, name: usize, at: usize) -> bool {
        let without = |i: usize| self.roles(i).any(Roles::WITHOUT);
        let before = (name.saturating_sub(3)..name).any(without);
        let behind = (name + 1..self.tokens.len().min(name + 3)).any(without);
        (before || behind) && name + 1 != at
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
    fn weigh(&self, at: usize, gap: Gap, doubt: Option<(usize, Gap)>) -> Option<Name> {
        let told = self.is_told(at);
        if let Some((other, nearer)) = doubt {
            // "the code for your order is 4821" and "code de la porte 4821", but not "code sent, room 4417".
            let owned = self.roles(other).any(Roles::OWNER) && !self.is_short(at) && gap.words <= 4;
            let close = owned || gap.words <= nearer.words + 1;
            return Some(if !gap.comma && !gap.seen.any(Roles::INERT) && (told || close) {
                Name::Code
            } else {
                Name::Other
            });
        }
        let led =
            self.before(at).is_some_and(|i| self.roles(i).any(Roles::AT) && !self.roles(i).any(Roles::IS));
        let inert = gap.seen.any(Roles::INERT) && self.is_short(at);
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

    /// "password for the TV: Tiger8842": how many words may stand between a name and what is hardly like a code.
    fn loose_reach(&self, at: usize) -> usize {
        let letters = self.written(at).chars().any(char::is_alphabetic);
        let colon = self.before(at).is_some_and(|i| self.kind(i) == Kind::Colon);
        if letters && colon { 3 } else { 0 }
    }

    /// "The Da Vinci Code, 1930 screening": after a comma, and more about it follows.
    fn begins_anew(&self, at: usize) -> bool {
        let goes_on = self.tokens.get(at + 1).is_some_and(|next| next.kind == Kind::Word(Roles::default()));
        goes_on && !self.is_glued(at + 1) && at > 0 && self.kind(at - 1) == Kind::Comma
    }

    // ── A name after it, or in another sentence ─────────────────────────────────────────────────────────────────────

    /// "482913 is your code"
    fn is_named_after(&self, at: usize) -> bool {
        if self.roles(at + 1).any(Roles::NO_CODE) {
            return false;
        }
        let Some(gap) = self.code_after(at) else { return false };
        let Gap { words, comma, seen, .. } = gap;
        // "36-12-88 for the safe, that is the code"
        let added = comma && seen.any(Roles::IS) && words <= gap.until_last + 1;
        let next = self.after(at);
        let is = next.is_some_and(|i| self.roles(i).any(Roles::IS)) || self.is_dash(at + 1);
        let led = self.before(at).is_some_and(|i| self.roles(i).any(Roles::AT));
        let long = self.form(at) == Some(Form::Mixed) && !self.is_like_brand(at)
            || self.written(at).chars().filter(|c| is_digit(*c)).count() > 4;
        self.begins_sentence(at)
            || is
            || words == 0 && !led
            || long && !led && (!comma || added) && words <= 6
    }

    /// "Card set-up: 482913 is your code", "Cash & Co: 482913 to verify", whatever stands before the colon.
    fn is_declared(&self, at: usize) -> bool {
        let is = self.after(at).is_some_and(|i| self.roles(i).any(Roles::IS));
        let named = || self.code_after(at).is_some_and(|gap| gap.words <= 3 && !gap.comma);
        let sender = self.before(at).and_then(|colon| self.before(colon));
        let other = sender.is_some_and(|i| self.roles(i).any(Roles::NO_CODE));
        let purpose = !other && !self.is_short(at) && self.form(at) == Some(Form::Digits) && self.serves(at);
        self.begins_sentence(at) && (is && named() || purpose)
    }

    /// What stands between the number and a code's name after it in the sentence, one that has no other number.
    fn code_after(&self, at: usize) -> Option<Gap> {
        let mut gap = Gap::default();
        for i in (at + 1..self.tokens.len()).take(REACH) {
            match self.kind(i) {
                Kind::Stop | Kind::Line if self.stands_in_sentence_alone(at) && gap.words == 0 => {}
                Kind::Number(Form::Small | Form::Date | Form::Loose) => {}
                Kind::Stop | Kind::Line | Kind::Number(_) => return None,
                Kind::Word(roles) if roles.any(Roles::NAME) && !self.is_counted(i) => {
                    return (!self.has_own_number(i) && !self.is_spared(i, at)).then_some(gap);
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

    /// Does a number follow this name at once, so that it names that one?
    fn has_own_number(&self, name: usize) -> bool {
        let light = Roles::IS.and(Roles::LINK).and(Roles::NAME).and(Roles::ACTION).and(Roles::PURPOSE);
        let next = (name + 1..self.tokens.len()).take(5).find(|i| match self.kind(*i) {
            Kind::Word(roles) => !roles.any(light),
            kind => matches!(kind, Kind::Number(_) | Kind::Stop | Kind::Line),
        });
        next.and_then(|i| self.form(i))
            .is_some_and(|form| !matches!(form, Form::Small | Form::Date | Form::Never))
    }

    /// A line of its own, near a code's name or near what a code is for.
    fn stands_alone(&self, at: usize) -> bool {
        let digits = self.form(at) == Some(Form::Digits);
        let named = || self.code_is_near(at) && (digits || self.is_first(at));
        let login = || self.is_near(at, Roles::ACTION.and(Roles::HIDE)) && digits;
        self.stands_in_sentence_alone(at) && (named() || login()) || self.begins_after_name(at)
    }

    fn stands_in_sentence_alone(&self, at: usize) -> bool {
        // After a question rather a telephone number follows, unless it is long: "Trouble with your code? 60123"
        let asked = |stop: usize| matches!(self.written(stop), "?" | "？" | "؟");
        let fits =
            |stop: usize| !asked(stop) || self.written(at).chars().filter(|c| is_digit(*c)).count() >= 6;
        let before =
            self.before(at).is_none_or(|i| self.kind(i) == Kind::Line || self.follows_news(i) && fits(i));
        before && self.ends_sentence(at)
    }

    /// "Here is your code! 482913": the sentence that ends here names a code, and does not say what became of it.
    fn follows_news(&self, stop: usize) -> bool {
        let said =
            || (0..stop).rev().take(REACH).take_while(|i| !matches!(self.kind(*i), Kind::Stop | Kind::Line));
        let has = |roles: Roles| said().any(|i| self.roles(i).any(roles));
        let number = said().any(|i| matches!(self.kind(i), Kind::Number(_)));
        self.kind(stop) == Kind::Stop && has(Roles::NAME) && !number && !has(Roles::INERT.and(Roles::HIDE))
    }

    /// "Access code⏎4821 is valid for five minutes": the line before is little more than the name.
    fn begins_after_name(&self, at: usize) -> bool {
        let Some(line) = self.before(at).filter(|i| self.kind(*i) == Kind::Line) else { return false };
        let last = self.before(line);
        last.is_some_and(|i| self.kind(i) == Kind::Colon || self.roles(i).any(Roles::NAME))
            && self.code_is_near(at)
    }

    /// "Keep it safe: 482913. It is the code for …": the next sentence names it.
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

    /// "Your code has come. It is 482913": its sentence says nothing but "it is".
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
        (is || yours) && words().count() < 5 && !self.is_like_time(at) && self.code_is_near(at)
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

    // ── Meant without a name ────────────────────────────────────────────────────────────────────────────────────────

    /// "enter 482913", "4821 girin", and somewhere around a code or a login is spoken of.
    fn is_entered(&self, at: usize) -> bool {
        let verb = |i: &usize| self.roles(*i).any(Roles::ENTER);
        let word = |i: &usize| matches!(self.kind(*i), Kind::Word(_) | Kind::Quote | Kind::Sign);
        let word_or_colon = |i: &usize| word(i) || self.kind(*i) == Kind::Colon;
        let before = (0..at).rev().take(6).take_while(word_or_colon).any(|i| verb(&i));
        let after = (at + 1..self.tokens.len()).take(6).take_while(word).find(verb);
        let after = after.is_some_and(|i| !self.has_own_number(i));
        let led = self.before(at).is_some_and(|i| self.roles(i).any(Roles::AT)) && self.is_like_time(at);
        let reason = || self.is_near(at, Roles::NAME.and(Roles::ACTION)) || self.is_fleeting(at);
        let guarded = || self.is_guarded(at) && (!self.is_like_time(at) || self.is_near_type(at));
        (before || after) && !led && (reason() || guarded() || self.is_typed(at))
    }

    /// "enter 482913": what one types is a code, unless it is a time.
    fn is_typed(&self, at: usize) -> bool {
        self.is_near_type(at) && self.form(at) == Some(Form::Digits) && !self.is_like_time(at)
    }

    fn is_near_type(&self, at: usize) -> bool {
        let mut near = at.saturating_sub(2)..(at + 4).min(self.tokens.len());
        near.any(|i| self.roles(i).any(Roles::TYPE))
    }

    /// A keypad, a lock, a courier in its sentence.
    fn is_guarded(&self, at: usize) -> bool {
        let inside = |i: &usize| !matches!(self.kind(*i), Kind::Stop | Kind::Line);
        let before = (0..at).rev().take(FAR).take_while(inside);
        let after = (at + 1..self.tokens.len()).take(FAR).take_while(inside);
        before.chain(after).any(|i| self.roles(i).any(Roles::GUARD) && !self.roles(i).any(Roles::ENTER))
    }

    /// "Acme login: 482913", "Confirm your email: W2X-8PD", "482913 to verify your account".
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

    /// "Verification for Lakeside Online Banking": the clause that ends here says at its beginning what it is about.
    fn begins_with_action(&self, last: usize) -> bool {
        let inside = |i: &usize| matches!(self.kind(*i), Kind::Word(_) | Kind::Sign | Kind::Quote);
        let Some(first) = (0..last).rev().take(FAR).take_while(inside).last() else { return false };
        let other = (first..=last).any(|i| self.roles(i).any(Roles::NO_CODE));
        !other && (first..last).take(3).any(|i| self.roles(i).any(Roles::ACTION))
    }

    /// What it is for follows: "482913 to verify your account".
    fn serves(&self, at: usize) -> bool {
        (at + 1..self.tokens.len())
            .take(8)
            .take_while(|i| matches!(self.kind(*i), Kind::Word(_) | Kind::Sign | Kind::Quote))
            .any(|i| self.roles(i).any(Roles::ACTION.and(Roles::HIDE)))
    }

    /// "FB-38291 will confirm your number"
    fn is_prefixed(&self, at: usize) -> bool {
        let written = self.written(at);
        let letters = written.chars().take_while(|c| c.is_alphabetic()).count();
        let digits = written.chars().filter(|c| is_digit(*c)).count();
        let like = (1..=4).contains(&letters) && digits >= 4 + usize::from(letters == 2);
        like && written.contains('-') && self.begins_sentence(at) && self.serves(at)
    }

    /// "The padlock is 3612.", "Guest Wi-Fi, key 83920177"
    fn is_of_lock(&self, at: usize) -> bool {
        let inside = |i: &usize| match self.kind(*i) {
            Kind::Number(form) => form == Form::Small,
            kind => !matches!(kind, Kind::Stop | Kind::Line),
        };
        let locked = (0..at).rev().take(9).take_while(inside).any(|i| self.roles(i).any(Roles::LOCK));
        let beside = |roles: Roles| self.before(at).is_some_and(|i| self.roles(i).any(roles));
        let like_time = self.is_like_time(at);
        let told = self.is_told(at) || beside(Roles::KEY) || beside(Roles::LOCK) && !like_time;
        let ends =
            |i: usize| matches!(self.kind(i), Kind::Stop | Kind::Line | Kind::Comma) || self.is_glued(i);
        let ended = self.after(at).is_none_or(ends) || beside(Roles::IS) && !like_time;
        locked && told && ended
    }

    /// "Do not share: 482913", "Here you go: 482913. Expires in 10 minutes."
    fn is_hushed(&self, at: usize) -> bool {
        let plain = match self.form(at) {
            Some(Form::Digits) => !self.is_like_time(at) || self.is_told(at),
            form => form == Some(Form::Mixed) && !self.is_like_flight(at),
        };
        plain
            && self.is_shown(at)
            && self.is_first(at)
            && (self.is_near(at, Roles::HIDE) || self.is_fleeting(at))
    }

    /// "667 201 gets you in": what a code is for and that it is secret are both said around it.
    fn is_surrounded(&self, at: usize) -> bool {
        let long = self.form(at) == Some(Form::Digits) && !self.is_short(at) && !self.is_like_time(at);
        let led = self.before(at).is_some_and(|i| self.roles(i).any(Roles::AT));
        let secret = || self.is_near(at, Roles::HIDE) || self.is_fleeting(at);
        long && !led && self.is_first(at) && secret() && self.is_near(at, Roles::ACTION)
    }

    /// "expires in 10 minutes" is said around here.
    fn is_fleeting(&self, at: usize) -> bool {
        let around = at.saturating_sub(REACH)..(at + REACH).min(self.tokens.len());
        let minutes =
            |i: usize| i > 0 && self.roles(i).any(Roles::MINUTE) && self.form(i - 1) == Some(Form::Small);
        let near = |life: usize| (life.saturating_sub(5)..life + 6).any(minutes);
        around.into_iter().any(|i| self.roles(i).any(Roles::LIFE) && near(i))
    }

    /// It stands at the beginning of its sentence or behind a colon, and nothing more is said of it there.
    fn is_shown(&self, at: usize) -> bool {
        let comma = self.kind(at + 1) == Kind::Comma;
        self.begins_sentence(at) && (self.ends_sentence(at) || comma || self.is_dash(at + 1))
    }

    /// "Code: 14-11-26", or "the code is 14-11-26." with nothing behind it.
    fn is_told_as_code(&self, at: usize) -> bool {
        let Some(lead) = self.before(at) else { return false };
        let named = lead > 0 && self.before(lead).is_some_and(|i| self.roles(i).any(Roles::NAME));
        let is = self.roles(lead).any(Roles::IS) && self.ends_sentence(at);
        named && (self.kind(lead) == Kind::Colon || is)
    }

    // ── Where it stands ─────────────────────────────────────────────────────────────────────────────────────────────

    /// Does a colon, "is" or "=" stand right before it?
    fn is_told(&self, at: usize) -> bool {
        self.before(at).is_some_and(|i| self.kind(i) == Kind::Colon || self.roles(i).any(Roles::IS))
    }

    /// "to" is "is" in Polish and something else in English.
    fn is_weakly_told(&self, at: usize) -> bool {
        self.before(at).is_some_and(|i| self.roles(i).any(Roles::LINK))
    }

    /// At most four digits: short enough for a time, a year, a house number.
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

    /// No code was found before it.
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

    /// Only signs between the beginning of the sentence, or a colon, and the number.
    fn begins_sentence(&self, at: usize) -> bool {
        self.before(at).is_none_or(|i| matches!(self.kind(i), Kind::Stop | Kind::Line | Kind::Colon))
            || self.follows_sender(at)
    }

    /// Only signs, or an aside, between the number and the end of the sentence.
    fn ends_sentence(&self, at: usize) -> bool {
        let aside = self.tokens.get(at + 1).is_some_and(|_| matches!(self.written(at + 1), "(" | "（"));
        aside || self.after(at).is_none_or(|i| matches!(self.kind(i), Kind::Stop | Kind::Line))
    }

    /// `[Bank] 482913`, `【Bank】482913`
    fn follows_sender(&self, at: usize) -> bool {
        at > 0 && matches!(self.written(at - 1), "]" | "】" | ">" | "]:")
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

    // ── Other codes ─────────────────────────────────────────────────────────────────────────────────────────────────

    /// Letters only are a code where hardly anything else is possible: "Your code: KXTQPL", "code «KXTQPL»".
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
