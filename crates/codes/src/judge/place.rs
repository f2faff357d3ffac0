//! Looks at single tokens and at where a number stands in its sentence.

use super::{REACH, Reader};
use crate::lexicon::Roles;
use crate::tokens::{Form, Kind, Token, is_digit, is_year, value};

impl Reader<'_> {
    pub(super) fn form(&self, at: usize) -> Option<Form> {
        if let Kind::Number(form) = self.tokens.get(at)?.kind { Some(form) } else { None }
    }

    pub(super) fn kind(&self, at: usize) -> Kind {
        self.tokens.get(at).map_or(Kind::Line, |token| token.kind)
    }

    pub(super) fn roles(&self, at: usize) -> Roles {
        self.tokens.get(at).map(Token::roles).unwrap_or_default()
    }

    pub(super) fn written(&self, at: usize) -> &str {
        &self.text[self.tokens[at].start..self.tokens[at].end]
    }

    pub(super) fn is_glued(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|token| token.glued)
    }

    /// How many words a token counts for: a long run without spaces counts as several, and small words as none.
    pub(super) fn weight(&self, at: usize) -> usize {
        let light = Roles::LINK.and(Roles::IS).and(Roles::AND).and(Roles::OWNER);
        if self.roles(at).any(light) { 0 } else { 1 + (self.tokens[at].end - self.tokens[at].start) / 24 }
    }

    /// The nearest token before this one that is not a quote, bracket or emoji.
    pub(super) fn before(&self, at: usize) -> Option<usize> {
        (0..at).rev().take(REACH).find(|i| !matches!(self.kind(*i), Kind::Quote | Kind::Sign))
    }

    pub(super) fn after(&self, at: usize) -> Option<usize> {
        (at + 1..self.tokens.len()).take(REACH).find(|i| !matches!(self.kind(*i), Kind::Quote | Kind::Sign))
    }

    /// Whether this could be a time of day or a year, or a range of them: `0900-1700`.
    pub(super) fn is_like_time(&self, at: usize) -> bool {
        let is_like = |part: &str| {
            let value = value(part);
            let four = part.chars().count() == 4 && part.chars().all(is_digit);
            four && (is_year(value) || value / 100 < 24 && value % 100 < 60)
        };
        self.written(at).split('-').all(is_like)
    }

    /// Whether this is a round number, which is an amount more often than a code: `4500`.
    pub(super) fn is_round(&self, at: usize) -> bool {
        self.is_short(at) && value(self.written(at)).is_multiple_of(100)
    }

    /// Whether this looks like a flight number: two letters and a few digits, as in `BA2490`.
    pub(super) fn is_like_flight(&self, at: usize) -> bool {
        let written = self.written(at);
        let letters = written.chars().take_while(|c| c.is_alphabetic()).count();
        letters == 2 && written.chars().skip(2).all(is_digit) && written.chars().count() <= 6
    }

    /// Whether this looks like a brand or a slogan: a word and one or two digits, as in `OUTILS24`.
    pub(super) fn is_like_brand(&self, at: usize) -> bool {
        let letters = self.written(at).chars().take_while(|c| c.is_alphabetic()).count();
        let digits = self.written(at).chars().skip(letters);
        letters >= 3 && digits.clone().count() <= 2 && digits.clone().all(is_digit)
    }

    /// Whether the number consists of groups of digits, with nothing but blanks and signs between them.
    pub(super) fn is_all_digits(&self, at: usize) -> bool {
        !self.written(at).chars().any(char::is_alphabetic)
    }

    pub(super) fn ends_clause(&self, at: usize) -> bool {
        let ends = |i: usize| matches!(self.kind(i), Kind::Stop | Kind::Line | Kind::Comma);
        self.after(at).is_none_or(|i| ends(i) || self.roles(i).any(Roles::AND))
    }

    /// Whether an unknown word follows the number, so that it may count something: "opens with 3500 exhibits".
    pub(super) fn counts(&self, at: usize) -> bool {
        let small = |i: usize| self.written(i).chars().next().is_some_and(char::is_lowercase);
        self.kind(at + 1) == Kind::Word(Roles::default()) && small(at + 1)
    }

    /// Whether a colon, "is" or "=" directly precedes the number.
    pub(super) fn is_introduced(&self, at: usize) -> bool {
        let leads = |i: usize| self.kind(i) == Kind::Colon || self.roles(i).any(Roles::IS);
        self.before(at).is_some_and(|i| leads(i) || self.is_said_of_lock(i) && !self.counts(at))
    }

    /// Whether this is "e" after a lock. Elsewhere it means "and" more often than "is": "interfonul de la scară e 2744".
    fn is_said_of_lock(&self, at: usize) -> bool {
        let word = |i: &usize| matches!(self.kind(*i), Kind::Word(_));
        let lock = |i: usize| self.roles(i).any(Roles::LOCK);
        self.written(at) == "e" && (0..at).rev().take(5).take_while(word).any(lock)
    }

    /// Whether the word before the number means "is" in one language and something else in another, such as "to" in
    /// Polish and English.
    pub(super) fn is_weakly_told(&self, at: usize) -> bool {
        self.before(at).is_some_and(|i| self.roles(i).any(Roles::LINK))
    }

    /// Whether the number has at most four characters: short enough for a time, a year or a house number.
    pub(super) fn is_short(&self, at: usize) -> bool {
        self.written(at).chars().filter(|c| c.is_alphanumeric()).count() <= 4
    }

    pub(super) fn is_quoted(&self, at: usize) -> bool {
        at > 0
            && self.kind(at - 1) == Kind::Quote
            && self.kind(at + 1) == Kind::Quote
            && self.is_glued(at)
            && self.is_glued(at + 1)
    }

    /// Whether no code was found before it.
    pub(super) fn is_first(&self, at: usize) -> bool {
        !(0..at).rev().take(REACH).any(|i| self.secret[i])
    }

    pub(super) fn is_dash(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|_| matches!(self.written(at), "-" | "–" | "—" | "―"))
    }

    pub(super) fn is_capital(&self, at: usize) -> bool {
        let word = matches!(self.kind(at), Kind::Word(_));
        word && self.written(at).chars().next().is_some_and(char::is_uppercase)
    }

    /// Whether only signs are between the number and the start of its sentence or a colon.
    pub(super) fn begins_sentence(&self, at: usize) -> bool {
        self.before(at).is_none_or(|i| matches!(self.kind(i), Kind::Stop | Kind::Line | Kind::Colon))
            || self.follows_sender(at)
    }

    /// Whether only signs or an aside are between the number and the end of its sentence.
    pub(super) fn ends_sentence(&self, at: usize) -> bool {
        let aside = self.tokens.get(at + 1).is_some_and(|_| matches!(self.written(at + 1), "(" | "（"));
        aside || self.after(at).is_none_or(|i| matches!(self.kind(i), Kind::Stop | Kind::Line))
    }

    /// Whether the number follows a sender's name in brackets: `[Bank] 482913`, `【Bank】482913`.
    fn follows_sender(&self, at: usize) -> bool {
        at > 0 && matches!(self.written(at - 1), "]" | "】" | ">" | "]:")
    }

    /// Whether a code is named nearby without a number of its own.
    pub(super) fn code_is_near(&self, at: usize) -> bool {
        self.is_near(at, Roles::NAME)
    }

    pub(super) fn is_near(&self, at: usize, roles: Roles) -> bool {
        let before = (0..at).rev().take(REACH).take_while(|i| !self.secret[*i]);
        let after = (at + 1..self.tokens.len()).take(REACH).filter(|i| !self.has_own_number(*i));
        before.chain(after).any(|i| self.roles(i).any(roles))
    }
}
