//! Codes of doors, gates, boxes and networks, which people often give without a name: "the padlock is 3612".

use super::{FAR, Reader};
use crate::lexicon::Roles;
use crate::tokens::{Form, Kind};

impl Reader<'_> {
    /// Whether the number is written as typed at a door: `2244#`.
    pub(super) fn is_keyed(&self, at: usize) -> bool {
        let more = self.is_glued(at + 2) && matches!(self.kind(at + 2), Kind::Word(_) | Kind::Number(_));
        let ends = self.is_glued(at + 1) && self.written(at + 1) == "#" && !more;
        let door = || self.is_near(at, Roles::NAME.and(Roles::OWNER).and(Roles::GUARD));
        self.form(at) == Some(Form::Digits) && ends && door()
    }

    /// Whether the number opens the thing that is named before it: "To open the key box: 3920", "the front door is now
    /// 4096".
    pub(super) fn opens(&self, owner: usize, at: usize) -> bool {
        let guarded = (0..owner).rev().take(5).any(|i| self.roles(i).any(Roles::GUARD));
        let colon = self.before(at).is_some_and(|i| self.kind(i) == Kind::Colon);
        let lock = (owner..at).any(|i| self.roles(i).any(Roles::LOCK));
        let door = lock && !colon && !self.is_like_time(at);
        self.is_introduced(at) && (self.roles(owner).any(Roles::OWNER) && guarded || door)
    }

    /// Whether the sentence before is about a lock: "The key safe is by the flue. It's 2904."
    pub(super) fn follows_lock(&self, at: usize) -> bool {
        let own = (0..at).rev().take(6).find(|i| self.kind(*i) == Kind::Stop);
        let inside = |i: &usize| !matches!(self.kind(*i), Kind::Stop | Kind::Line | Kind::Number(_));
        let lock = |i: usize| self.roles(i).any(Roles::LOCK) && !self.roles(i).any(Roles::WIFI);
        self.form(at) == Some(Form::Digits)
            && !self.is_round(at)
            && self.ends_clause(at)
            && own.is_some_and(|stop| (0..stop).rev().take(FAR).take_while(inside).any(lock))
    }

    /// Whether the sentence mentions a keypad, a lock or a courier.
    pub(super) fn is_guarded(&self, at: usize) -> bool {
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

    /// Whether the number opens a lock or a network: "The padlock is 3612.", "Guest Wi-Fi, key 83920177".
    pub(super) fn is_of_lock(&self, at: usize) -> bool {
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
        let goes_on = || {
            self.ends_clause(at)
                || beside(Roles::IS) && !counted
                || self.is_near_lock(at) && !self.counts(at)
                || self.after(at).is_some_and(|i| self.is_verb(i) && self.ends_clause(i))
        };
        locked && told && (self.after(at).is_none_or(ends) || !like_time && goes_on())
    }

    /// Whether a lock that has no number but its code is named right before: "the lock of the bike 4471".
    pub(super) fn is_near_lock(&self, at: usize) -> bool {
        let clause = self.words_of_lock(at).take_while(|i| self.kind(*i) != Kind::Comma);
        let mut words = clause.filter(|i| self.weight(*i) > 0).take(3);
        self.form(at) == Some(Form::Digits) && !self.is_round(at) && words.any(|i| self.is_mere_lock(i))
    }

    /// Whether this is a lock that has no number but its code: a padlock, and not a door.
    fn is_mere_lock(&self, at: usize) -> bool {
        let numbered = Roles::NO_CODE.and(Roles::WIFI).and(Roles::OWNER);
        self.roles(at).any(Roles::LOCK) && !self.roles(at).any(numbered)
    }

    /// Whether "number" here means the code of a lock: "the padlock's number 4471", "número del candado: 4471".
    pub(super) fn is_number_of_lock(&self, name: usize, at: usize) -> bool {
        let word = |i: &usize| matches!(self.kind(*i), Kind::Word(_) | Kind::Quote | Kind::Sign);
        let before = (0..name).rev().take(3).take_while(word);
        let after = (name + 1..at).take(4).take_while(word);
        self.roles(name).any(Roles::KEY)
            && self.form(at) == Some(Form::Digits)
            && !self.is_like_time(at)
            && !self.is_round(at)
            && before.chain(after).any(|i| self.is_mere_lock(i))
    }

    /// Whether the number is the new code of a lock: "the gate number changed, now 4826".
    pub(super) fn is_new_of_lock(&self, at: usize) -> bool {
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
    pub(super) fn opens_with(&self, at: usize) -> bool {
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

    /// Whether the sentence before the number mentions a lock.
    fn is_locked(&self, at: usize) -> bool {
        let inside = |i: &usize| !matches!(self.kind(*i), Kind::Stop | Kind::Line);
        (0..at).rev().take(9).take_while(inside).any(|i| self.roles(i).any(Roles::LOCK))
    }

    /// Whether commas set the number off in a sentence about a lock: "Lockbox is left of the meter, 3902, pull hard".
    pub(super) fn is_set_off(&self, at: usize) -> bool {
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

    /// Whether the digits of a lock are written one by one: "neue Nummer am Schloss 4-7-1-9".
    pub(super) fn is_dialled(&self, at: usize) -> bool {
        let groups: Vec<&str> = self.written(at).split('-').collect();
        let single = (4..=6).contains(&groups.len()) && groups.iter().all(|group| group.chars().count() == 1);
        single && self.form(at) == Some(Form::Digits) && self.is_guarded(at)
    }
}
