//! Recognises passwords, which may hold small letters and signs, after the name of a password.

use super::{
    Cutter, Form, Kind, Piece, Sort, Token, count_digits, is_caps, is_digit, is_hyphen, is_kind_of_code,
    is_quote, joined_form,
};
use crate::lexicon::{LEXICON, Roles, is_cased, narrow};

impl Cutter<'_> {
    /// The end of a password that starts here: letters and digits, perhaps with signs between them, after the name of a
    /// password.
    pub(super) fn password_end(&self, at: usize) -> Option<usize> {
        let begins = |piece: &Piece| matches!(piece.sort, Sort::Digits | Sort::Letters | Sort::Mixed);
        if !begins(&self.pieces[at]) || !self.is_free_before(at) {
            return None;
        }
        let joined = |i: &usize| {
            let piece = &self.pieces[*i];
            piece.blanks == 0 && (begins(piece) || matches!(piece.sort, Sort::Sign(c) if is_in_password(c)))
        };
        let run = (at + 1..self.pieces.len()).take(LONGEST_PASSWORD).take_while(joined);
        let last = run.filter(|i| begins(&self.pieces[*i])).last().unwrap_or(at);
        let last = if self.is_ending(at, last) { last - 2 } else { last };
        let written = &self.text[self.pieces[at].start..self.pieces[last].end];
        let strength = strength(written)?;
        let strength = if strength == Strength::Long && !self.ends_clause(last + 1) {
            Strength::Short
        } else {
            strength
        };
        let told = self.is_told() || self.is_told_after(last + 1);
        (self.is_free_after(last + 1) && self.follows_password_name(strength, told)).then_some(last + 1)
    }

    /// Whether the last of these pieces is a case ending after a hyphen: `Kx29pl7-dir`.
    fn is_ending(&self, first: usize, last: usize) -> bool {
        let hyphen = |i: usize| matches!(self.pieces[i].sort, Sort::Sign(c) if is_hyphen(c));
        last >= first + 2
            && hyphen(last - 1)
            && self.pieces[last - 2].sort == Sort::Mixed
            && ENDINGS.contains(&self.written(last))
    }

    /// Whether "is" follows, as in languages that end a sentence with the verb: "رمز … Bw46kz9t است".
    fn is_told_after(&self, end: usize) -> bool {
        let script = self.pieces.get(end).is_some_and(|next| next.sort == Sort::Script);
        script && LEXICON.inside(&self.text[self.pieces[end].start..]).is_some_and(|(_, r)| r.any(Roles::IS))
    }

    /// Whether a sign, a line break, a verb or nothing follows.
    fn ends_clause(&self, end: usize) -> bool {
        self.pieces.get(end).is_none_or(|next| match next.sort {
            Sort::Letters => LEXICON.word(self.written(end)).any(Roles::IS.and(Roles::AND)),
            Sort::Script => LEXICON.inside(self.written(end)).is_some_and(|(_, roles)| roles.any(Roles::IS)),
            sort => matches!(sort, Sort::Sign(_) | Sort::Line),
        })
    }

    /// Whether this piece does not continue a web address or a longer number.
    fn is_free_before(&self, at: usize) -> bool {
        let previous = at.checked_sub(1).map(|before| self.pieces[before].sort);
        let opens = |c: char| matches!(narrow(c), ':' | '=' | '(' | '[' | '<' | '*') || is_quote(c);
        self.pieces[at].blanks > 0
            || match previous {
                Some(Sort::Sign(c)) => opens(c),
                sort => matches!(sort, None | Some(Sort::Line | Sort::Script)),
            }
    }

    /// Whether no web address goes on here: `jan88@mail.example`, `app2.example/login`.
    fn is_free_after(&self, end: usize) -> bool {
        let glued = |i: usize| self.pieces.get(i).filter(|piece| piece.blanks == 0);
        let sign =
            glued(end).is_some_and(|p| matches!(p.sort, Sort::Sign('.' | '/' | ':' | '\\' | '@' | '+')));
        let more = glued(end + 1).is_some_and(|p| !matches!(p.sort, Sort::Line));
        !(sign && more)
    }

    /// Whether the name of a password leads to the next token: "password teapot5521", "password for the portal is
    /// teapot5521".
    fn follows_password_name(&self, strength: Strength, told: bool) -> bool {
        if self.tokens.last().is_some_and(|last| FOR.contains(&&self.text[last.start..last.end])) {
            return false;
        }
        // A name in the sentence before counts only if nothing else is named since.
        let (mut words, mut confined) = (0, false);
        for (i, token) in self.tokens.iter().enumerate().rev().take(24) {
            if is_kind_of_code(&self.tokens, i) {
                return false;
            }
            if self.names_password(i) {
                return self.reaches(i, words, told, strength);
            }
            match token.kind {
                // "We reset your password. Your new one is: k9Lm-22xQ"
                Kind::Stop if told && words <= 2 && strength == Strength::Long && !confined => {
                    confined = true;
                }
                Kind::Stop => return false,
                Kind::Line if !self.leads_on(i) => return false,
                Kind::Comma if !told => return false,
                Kind::Number(form) if !told || !matches!(form, Form::Small | Form::Loose) => return false,
                Kind::Word(roles) if names_something_else(roles, told, words == 0, strength) => return false,
                Kind::Word(roles) => {
                    words += usize::from(!is_light(roles));
                    confined |= roles.any(Roles::NO_CODE); // "I forgot my password. My car is: KX4471ab"
                }
                _ => {}
            }
        }
        false
    }

    /// Whether a colon, "is" or a dash comes right before the next token.
    fn is_told(&self) -> bool {
        let apart = |token: &&Token| matches!(token.kind, Kind::Quote | Kind::Sign | Kind::Line);
        // "Ваш пароль для входа – Rt48bm2k"
        let dash = |token: &Token| matches!(&self.text[token.start..token.end], "–" | "—") && !token.glued;
        if let [.., lead, last] = self.tokens.as_slice()
            && dash(last)
        {
            return !lead.roles().any(Roles::INERT); // "Password changed – Galaxy24ultra"
        }
        let last = self.tokens.iter().rev().take(6).find(|token| !apart(token));
        last.is_some_and(|token| token.kind == Kind::Colon || token.roles().any(Roles::IS))
    }

    /// Whether a name is close enough to a password. "Code" is a weaker name than "password".
    fn reaches(&self, name: usize, words: usize, told: bool, strength: Strength) -> bool {
        let weak = !self.tokens[name].roles().any(Roles::SECRET.and(Roles::PASS));
        match (told, weak) {
            (true, false) => words <= 8,
            (true, true) => {
                words <= 2 && strength != Strength::Serial
                    || words <= 8 && strength == Strength::Long && !self.is_of_goods(name)
            }
            (false, false) => words == 0 || words <= 2 && strength == Strength::Long,
            (false, true) => words == 0 && strength != Strength::Serial && self.is_about_wifi(name),
        }
    }

    /// Whether the words since the name speak of an order or a product, whose code is no secret.
    fn is_of_goods(&self, name: usize) -> bool {
        let goods = |roles: Roles| roles.any(Roles::KIND) && !roles.any(Roles::OWNER.and(Roles::ACTION));
        self.tokens[name + 1..].iter().any(|token| goods(token.roles()))
    }

    fn is_about_wifi(&self, at: usize) -> bool {
        let near = at.saturating_sub(24)..self.tokens.len().min(at + 4);
        self.tokens[near].iter().any(|token| token.roles().any(Roles::WIFI))
    }

    /// Whether the text continues after this line break: a colon or a password's name stands before it.
    fn leads_on(&self, line: usize) -> bool {
        line > 0 && (self.tokens[line - 1].kind == Kind::Colon || self.names_password(line - 1))
    }

    /// Whether this word names a password. A key does if the message speaks of Wi-Fi.
    fn names_password(&self, at: usize) -> bool {
        let roles = self.tokens[at].roles();
        roles.any(Roles::NAME.and(Roles::PASS)) || roles.any(Roles::KEY) && self.is_about_wifi(at)
    }
}

/// Whether a word between a name and a password says that the password belongs to neither: "user", "order", "changed".
/// Before a colon, a word may belong to the name: "password for the 3rd floor:".
fn names_something_else(roles: Roles, told: bool, nearest: bool, strength: Strength) -> bool {
    if roles.any(Roles::IS) || roles.any(Roles::OWNER.and(Roles::LOCK)) && !roles.any(Roles::USER) {
        return false;
    }
    let other = roles.any(Roles::NO_CODE.and(Roles::INERT).and(Roles::USER));
    let own = told && (!nearest || strength == Strength::Long && !roles.any(Roles::USER));
    other && !own
}

/// Whether a word does not separate a name from its password.
fn is_light(roles: Roles) -> bool {
    roles.any(
        Roles::OWNER.and(Roles::LOCK).and(Roles::LINK).and(Roles::IS).and(Roles::AND).and(Roles::PURPOSE),
    )
}

/// Words before what a password is for: "password reset for office365".
const FOR: [&str; 16] = [
    "for", "für", "pour", "para", "per", "voor", "för", "til", "till", "do", "pro", "pre", "для", "за", "za",
    "untuk",
];
/// Endings that are attached to a password with a hyphen, in Azerbaijani, Kazakh, Turkish and Hungarian.
const ENDINGS: [&str; 40] = [
    "dir", "dır", "dur", "dür", "tir", "tır", "tur", "tür", "i", "ı", "u", "ü", "ni", "nı", "nu", "nü", "yi",
    "yı", "yu", "yü", "ті", "ты", "ді", "ды", "ні", "ны", "es", "as", "os", "ös", "at", "et", "ot", "öt",
    "t", "ra", "re", "val", "vel", "nak",
];
/// The most pieces of a password.
const LONGEST_PASSWORD: usize = 12;

/// How much a run of characters looks like a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strength {
    /// `KX7P-2QLM-98ZT`: capitals and digits, which may be a serial number too.
    Serial,
    /// `anar55`, `Zdrowie24`: may be a name.
    Short,
    /// `anar5580`: hardly a name, a model or a unit.
    Long,
}

/// How much this looks like a password: letters and digits, but no other form of a code and no inflected number, as in
/// "7731-re" and "ngu-7731".
fn strength(written: &str) -> Option<Strength> {
    let letters = written.chars().filter(|c| is_cased(*c)).count();
    let digits = count_digits(written);
    let parts: Vec<&str> = written.split(is_hyphen).collect();
    let plain = parts.iter().all(|part| part.chars().all(char::is_alphanumeric));
    let known = matches!(joined_form(&parts), Form::Digits | Form::Mixed | Form::Google | Form::Date);
    let ending = |a: &str, b: &str| a.chars().all(is_digit) && count_digits(b) == 0;
    let inflected = parts.len() == 2
        && (ending(parts[0], parts[1]) || ending(parts[1], parts[0]) && parts[0].chars().count() <= 3);
    let few = letters < 2 || digits == 0 || !(6..=32).contains(&(letters + digits));
    let ends = written.trim_end_matches(is_digit).chars().all(char::is_alphabetic);
    let brand = ends && digits <= 2 && written.chars().next().is_some_and(char::is_uppercase);
    match () {
        () if few || plain && (known || inflected) => None,
        () if is_caps(written) => Some(Strength::Serial),
        () if letters + digits < 7 || letters < 3 || digits < 2 || brand => Some(Strength::Short),
        () => Some(Strength::Long),
    }
}

fn is_in_password(c: char) -> bool {
    matches!(c, '-' | '_' | '!' | '@' | '#' | '$' | '~' | '^')
}
