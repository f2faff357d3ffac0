//! The words that occur around codes, in the languages people use. The data is in `lexicon.txt`, whose head explains
//! the format.

use std::collections::HashMap;
use std::sync::LazyLock;

/// All the words of `lexicon.txt`.
pub(crate) static LEXICON: LazyLock<Lexicon> =
    LazyLock::new(|| Lexicon::parse(include_str!("../lexicon.txt")));

/// The longest word in bytes that is looked up. No entry is longer, so a hostile word costs nothing.
const LONGEST_WORD: usize = 64;
/// The most words in a phrase.
pub(crate) const LONGEST_PHRASE: usize = 4;

/// What a word says about the numbers near it. A word can have several roles, because messages mix languages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Roles(u64);

impl Roles {
    /// "code": a word beside it may turn it into something else.
    pub(crate) const CODE: Self = Self(1);
    /// "password": names a code, whatever is beside it.
    pub(crate) const SECRET: Self = Self(1 << 1);
    /// "encode": looks like a code's name but is not one.
    pub(crate) const SILENT: Self = Self(1 << 2);
    /// "zip": turns "code" into something that is not a secret.
    pub(crate) const KIND: Self = Self(1 << 3);
    /// "order": names the number that follows it, which is not a code.
    pub(crate) const OTHER: Self = Self(1 << 4);
    /// "door": a thing that has a code.
    pub(crate) const OWNER: Self = Self(1 << 5);
    /// "street": names a number, and shows that the text gives an address.
    pub(crate) const PLACE: Self = Self(1 << 6);
    /// "euro": makes the number before it an amount.
    pub(crate) const UNIT: Self = Self(1 << 7);
    /// "enter": tells the reader to give or type a number.
    pub(crate) const ENTER: Self = Self(1 << 8);
    /// "log in": what a code is for.
    pub(crate) const ACTION: Self = Self(1 << 9);
    /// "is": introduces the number after it.
    pub(crate) const IS: Self = Self(1 << 10);
    /// "at": precedes a time or a year.
    pub(crate) const AT: Self = Self(1 << 11);
    /// "expired": the number that follows is not the code.
    pub(crate) const INERT: Self = Self(1 << 12);
    /// "and": joins two numbers.
    pub(crate) const AND: Self = Self(1 << 13);
    /// "the", "de": does not separate a name from its number.
    pub(crate) const LINK: Self = Self(1 << 14);
    /// "nobody", "do not share": asks the reader to keep a code secret.
    pub(crate) const HIDE: Self = Self(1 << 15);
    /// "valid", "expires": says that a code is valid only for a while.
    pub(crate) const LIFE: Self = Self(1 << 16);
    /// "minutes": how long a code is valid.
    pub(crate) const MINUTE: Self = Self(1 << 17);
    /// "keypad", "courier": who or what asks for a code.
    pub(crate) const GUARD: Self = Self(1 << 18);
    /// "key": names a code if a purpose is beside it.
    pub(crate) const KEY: Self = Self(1 << 19);
    /// "security", "one-time": makes a key or a number a code.
    pub(crate) const PURPOSE: Self = Self(1 << 20);
    /// "Dr": a full stop after it does not end a sentence.
    pub(crate) const SHORT: Self = Self(1 << 21);
    /// "type in": what follows is a code, whatever else the text says.
    pub(crate) const TYPE: Self = Self(1 << 22);
    /// "padlock": in "the padlock is 3612", the number is its code.
    pub(crate) const LOCK: Self = Self(1 << 23);
    /// "text … to": the number after "to" is a telephone number.
    pub(crate) const SEND: Self = Self(1 << 24);
    /// "ending in": the number is the end of a longer one.
    pub(crate) const TAIL: Self = Self(1 << 25);
    /// "… 를 눌러 전화하세요": follows a number that the reader is asked to call.
    pub(crate) const CALLED: Self = Self(1 << 26);
    /// "without": no code is given where none is needed.
    pub(crate) const WITHOUT: Self = Self(1 << 27);
    /// "from": the number that follows is a sender, not a code.
    pub(crate) const FROM: Self = Self(1 << 28);
    /// "pass": names a password, but no number: "pass teapot55", and not "boarding pass 4471".
    pub(crate) const PASS: Self = Self(1 << 29);
    /// "now", "since yesterday": what follows is the new code.
    pub(crate) const NOW: Self = Self(1 << 30);
    /// "changed": beside a lock, it speaks of its code.
    pub(crate) const CHANGED: Self = Self(1 << 31);
    /// "opens": beside "with", it says what the number is for.
    pub(crate) const OPEN: Self = Self(1 << 32);
    /// "with": stands between "opens" and the code.
    pub(crate) const BY: Self = Self(1 << 33);
    /// "basket", "discount": what is entered there is a voucher.
    pub(crate) const DEAL: Self = Self(1 << 34);
    /// "in doubt", "fraud": the number is one to call.
    pub(crate) const DOUBT: Self = Self(1 << 35);
    /// "Wi-Fi": a lock whose key is a password.
    pub(crate) const WIFI: Self = Self(1 << 36);
    /// "counter", "collect": what is shown there is a code.
    pub(crate) const SHOP: Self = Self(1 << 37);
    /// "user": names what stands beside a password but is none.
    pub(crate) const USER: Self = Self(1 << 38);

    /// "March", "آذر", "year", "พ.ศ.": a number beside it may be a year.
    pub(crate) const YEAR: Self = Self(1 << 39);

    /// The roles of words that name a code.
    pub(crate) const NAME: Self = Self(Self::CODE.0 | Self::SECRET.0);
    /// The roles of words that name a number that is not a code.
    pub(crate) const NO_CODE: Self = Self(Self::OTHER.0 | Self::PLACE.0);

    /// Whether it has any of these roles.
    pub(crate) fn any(self, of: Self) -> bool {
        self.0 & of.0 != 0
    }

    pub(crate) fn and(self, more: Self) -> Self {
        Self(self.0 | more.0)
    }

    pub(crate) fn without(self, less: Self) -> Self {
        Self(self.0 & !less.0)
    }

    fn of_group(name: &str) -> Self {
        match name {
            "code" => Self::CODE,
            "secret" => Self::SECRET,
            "silent" => Self::SILENT,
            "kind" => Self::KIND,
            "other" => Self::OTHER,
            "owner" => Self::OWNER,
            "place" => Self::PLACE,
            "unit" => Self::UNIT,
            "enter" => Self::ENTER,
            "action" => Self::ACTION,
            "is" => Self::IS,
            "at" => Self::AT,
            "inert" => Self::INERT,
            "and" => Self::AND,
            "link" => Self::LINK,
            "hide" => Self::HIDE,
            "life" => Self::LIFE,
            "minute" => Self::MINUTE,
            "guard" => Self::GUARD,
            "key" => Self::KEY,
            "purpose" => Self::PURPOSE,
            "short" => Self::SHORT,
            "send" => Self::SEND,
            "tail" => Self::TAIL.and(Self::OTHER),
            "called" => Self::CALLED,
            "without" => Self::WITHOUT,
            "from" => Self::FROM,
            "pass" => Self::PASS,
            "now" => Self::NOW.and(Self::IS),
            "changed" => Self::CHANGED,
            "open" => Self::OPEN.and(Self::GUARD),
            "by" => Self::BY,
            "deal" => Self::DEAL,
            "doubt" => Self::DOUBT,
            "shop" => Self::SHOP,
            "user" => Self::USER,
            "year" => Self::YEAR,
            "wifi" => Self::WIFI.and(Self::LOCK).and(Self::GUARD).and(Self::OWNER),
            "type" => Self::TYPE.and(Self::ENTER),
            "lock" => Self::LOCK.and(Self::GUARD),
            _ => Self::default(),
        }
    }
}

type Table = HashMap<String, Roles>;

/// The entries, grouped by how they are written in the file. Each example below is an entry of that group.
#[derive(Debug, Default)]
pub(crate) struct Lexicon {
    /// `=TAN`
    written: Table,
    /// `code`
    whole: Table,
    /// `zip*`
    beginning: Table,
    /// `*code`
    ending: Table,
    /// `fehler-`, `sicherheits-`: the first half of a compound, and what it says about the whole word.
    halves: Table,
    /// The words for what codes are called and what they are for, sorted. Messages abbreviate them ("verif.").
    stems: Vec<String>,
    /// `mot de passe`, keyed by the first word.
    phrases: HashMap<String, Vec<(Vec<String>, Roles)>>,
    /// Entries in scripts without case, keyed by the first character, the longest first.
    inside: HashMap<char, Vec<(&'static str, Roles)>>,
}

impl Lexicon {
    fn parse(text: &'static str) -> Self {
        let mut lexicon = Self::default();
        let mut group = Roles::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                group = Roles::of_group(name);
            } else if let Some((_languages, entries)) = line.split_once(':') {
                entries
                    .split(',')
                    .map(str::trim)
                    .filter(|e| !e.is_empty())
                    .for_each(|e| lexicon.add(e, group));
            }
        }
        let stem = Roles::NAME.and(Roles::ACTION).and(Roles::PURPOSE);
        let stems = lexicon.whole.iter().filter(|(_, roles)| roles.any(stem)).map(|(word, _)| word.clone());
        lexicon.stems = stems.collect();
        lexicon.stems.sort_unstable();
        lexicon.inside.values_mut().for_each(|list| list.sort_by_key(|(entry, _)| usize::MAX - entry.len()));
        lexicon
    }

    fn add(&mut self, entry: &'static str, roles: Roles) {
        let first = entry.chars().find(|c| c.is_alphanumeric()).unwrap_or(' ');
        if let Some(written) = entry.strip_prefix('=') {
            join(&mut self.written, written.to_owned(), roles);
        } else if !is_cased(first) && first.is_alphabetic() {
            self.add_inside(entry, first, roles);
        } else if let Some(beginning) = entry.strip_suffix('*').filter(|e| !e.contains(' ')) {
            join(&mut self.beginning, fold(beginning), roles);
        } else if let Some(ending) = entry.strip_prefix('*') {
            join(&mut self.ending, fold(ending), roles);
        } else if let Some(half) = entry.strip_suffix('-') {
            join(&mut self.halves, fold(half), roles);
            join(&mut self.whole, fold(half), roles);
        } else if let Some((head, rest)) = entry.split_once(' ') {
            self.add_phrase(head, rest.split(' ').map(fold).collect(), roles);
        } else {
            join(&mut self.whole, fold(entry), roles);
        }
    }

    fn add_phrase(&mut self, head: &str, rest: Vec<String>, roles: Roles) {
        let list = self.phrases.entry(fold(head)).or_default();
        match list.iter_mut().find(|(known, _)| *known == rest) {
            Some((_, known)) => *known = known.and(roles),
            None => list.push((rest, roles)),
        }
    }

    fn add_inside(&mut self, entry: &'static str, first: char, roles: Roles) {
        let list = self.inside.entry(first).or_default();
        match list.iter_mut().find(|(known, _)| *known == entry) {
            Some((_, known)) => *known = known.and(roles),
            None => list.push((entry, roles)),
        }
    }

    /// The roles of one word in a script with upper and lower case.
    pub(crate) fn word(&self, written: &str) -> Roles {
        if written.len() > LONGEST_WORD {
            return Roles::default();
        }
        let word = fold(written);
        let cuts = || word.char_indices().map(|(at, _)| at).skip(1);
        let beginnings = cuts().chain([word.len()]).filter_map(|at| self.beginning.get(&word[..at]));
        let endings = cuts().filter_map(|at| self.ending.get(&word[at..]));
        let exact = self.whole.get(&word).into_iter().chain(self.written.get(written));
        let roles = exact.chain(beginnings).chain(endings).fold(Roles::default(), |a, b| a.and(*b));
        if roles.any(Roles::SILENT) {
            return Roles::default();
        }
        let half = |at: usize| self.halves.get(&word[..at]).copied().unwrap_or_default();
        let is_half = |at: usize| half(at).any(Roles::KIND) || self.is_kind_of_code(&word, at);
        // "Fehlercode", "barcode": the first half says that the whole is not a secret.
        if roles.any(Roles::CODE) && cuts().any(is_half) {
            return roles.without(Roles::NAME).and(Roles::OTHER);
        }
        // "Sicherheitsnummer"
        if roles.any(Roles::KEY) && cuts().any(|at| half(at).any(Roles::PURPOSE) && self.is_key(&word[at..]))
        {
            return roles.without(Roles::NO_CODE).and(Roles::SECRET);
        }
        roles
    }

    /// Whether this is an entry as it stands, such as `PIN1` or `m2`.
    pub(crate) fn is_entry(&self, written: &str) -> bool {
        written.len() <= LONGEST_WORD && self.whole.contains_key(&fold(written))
    }

    fn is_key(&self, half: &str) -> bool {
        let key = |table: &Table| table.get(half).is_some_and(|roles| roles.any(Roles::KEY));
        key(&self.ending) || key(&self.whole)
    }

    /// Whether this is the beginning of a word about codes and not a whole word itself: "verif", "autorizz".
    pub(crate) fn is_shortened(&self, written: &str) -> bool {
        if written.len() > LONGEST_WORD || written.chars().count() < 3 {
            return false;
        }
        let word = fold(written);
        let next = self.stems.partition_point(|stem| *stem < word);
        self.stems.get(next).is_some_and(|stem| *stem != word && stem.starts_with(&word))
    }

    fn is_kind_of_code(&self, word: &str, cut: usize) -> bool {
        let (first, second) = word.split_at(cut);
        let has =
            |table: &Table, half: &str, role: Roles| table.get(half).is_some_and(|roles| roles.any(role));
        has(&self.ending, second, Roles::CODE) && has(&self.whole, first, Roles::KIND)
    }

    /// The longest phrase that starts with these words: its number of words and its roles.
    pub(crate) fn phrase(&self, words: &[&str]) -> Option<(usize, Roles)> {
        let (first, rest) = words.split_first()?;
        let rest: Vec<String> = rest.iter().map(|word| fold(word)).collect();
        let fits = |phrase: &[String]| {
            phrase.len() <= rest.len() && phrase.iter().zip(&rest).all(|(entry, word)| fits(entry, word))
        };
        let known = self.phrases.get(&fold(first))?.iter();
        known
            .filter(|(phrase, _)| fits(phrase))
            .map(|(phrase, roles)| (phrase.len() + 1, *roles))
            .max_by_key(|p| p.0)
    }

    /// Whether a phrase can start with this word. Checked before the words after it are collected.
    pub(crate) fn begins_phrase(&self, written: &str) -> bool {
        written.len() <= LONGEST_WORD && self.phrases.contains_key(&fold(written))
    }

    /// The longest entry that this text starts with, in a script without case: its length in bytes and its roles.
    pub(crate) fn inside(&self, text: &str) -> Option<(usize, Roles)> {
        let list = self.inside.get(&text.chars().next()?)?;
        list.iter().find(|(entry, _)| text.starts_with(entry)).map(|(entry, roles)| (entry.len(), *roles))
    }
}

fn fits(entry: &str, word: &str) -> bool {
    entry.strip_suffix('*').map_or(entry == word, |beginning| word.starts_with(beginning))
}

fn join(table: &mut Table, entry: String, roles: Roles) {
    let known = table.entry(entry).or_default();
    *known = known.and(roles);
}

/// Whether this is a letter of a script with upper and lower case, such as Latin, Cyrillic and Greek.
pub(crate) fn is_cased(c: char) -> bool {
    c.is_lowercase() || c.is_uppercase()
}

/// Removes case and accents from a word: people write "codigo" and "CÓDIGO".
fn fold(word: &str) -> String {
    let mut folded = String::with_capacity(word.len());
    for c in word.chars().map(plain).flat_map(char::to_lowercase) {
        match c {
            'ß' => folded.push_str("ss"),
            'æ' => folded.push_str("ae"),
            'œ' => folded.push_str("oe"),
            _ if is_accent(c) => {}
            _ => folded.push(plain(c)),
        }
    }
    folded
}

/// Whether this is a combining accent or an emoji mark.
pub(crate) fn is_accent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{fe00}'..='\u{fe0f}' | '\u{20e3}')
}

/// The base letters of accented Latin letters, in Unicode order from U+00C0 and from U+0100.
const LATIN_1: &str = "aaaaaaæceeeeiiiidnooooo×ouuuuyþßaaaaaaæceeeeiiiidnooooo÷ouuuuyþy";
const LATIN_A: &str = "aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiijjjjkkklllllllllln\
                       nnnnnnnnoooooooœœrrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzzs";

fn plain(c: char) -> char {
    let at = |table: &str, first: u32| table.chars().nth((c as u32 - first) as usize).unwrap_or(c);
    match c {
        '\u{c0}'..='\u{ff}' => at(LATIN_1, 0xc0),
        '\u{100}'..='\u{17f}' => at(LATIN_A, 0x100),
        'ơ' | 'Ơ' | 'Ọ'..='ợ' => 'o',
        'ư' | 'Ư' | 'Ụ'..='ự' => 'u',
        'ș' | 'Ș' => 's',
        'ț' | 'Ț' => 't',
        'Ạ'..='ặ' => 'a',
        'Ẹ'..='ệ' => 'e',
        'Ỉ'..='ị' => 'i',
        'Ỳ'..='ỹ' => 'y',
        'ά' | 'Ά' => 'α',
        'έ' | 'Έ' => 'ε',
        'ή' | 'Ή' => 'η',
        'ί' | 'Ί' | 'ϊ' | 'ΐ' => 'ι',
        'ό' | 'Ό' => 'ο',
        'ύ' | 'Ύ' | 'ϋ' => 'υ',
        'ώ' | 'Ώ' => 'ω',
        'ς' => 'σ',
        'ё' | 'Ё' => 'е',
        // Full-width forms, which Japanese phones write.
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0).unwrap_or(c),
        _ => c,
    }
}

/// The ASCII form of a full-width sign.
pub(crate) fn narrow(c: char) -> char {
    if ('\u{ff01}'..='\u{ff5e}').contains(&c) { plain(c) } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_accents_do_not_matter() {
        for (word, folded) in [
            ("CÓDIGO", "codigo"),
            ("Şifreniz", "sifreniz"),
            ("İŞLEM", "islem"),
            ("Straße", "strasse"),
            ("mật", "mat"),
            ("ověřovací", "overovaci"),
            ("Κωδικός", "κωδικοσ"),
            ("co\u{301}digo", "codigo"),
            ("ＯＴＰ", "otp"),
            ("žluťoučký", "zlutoucky"),
            ("źdźbło", "zdzblo"),
        ] {
            assert_eq!(fold(word), folded);
        }
    }

    #[test]
    fn words_have_their_roles() {
        for (word, role) in [
            ("Bestätigungscode", Roles::CODE),
            ("PASSWORT", Roles::SECRET),
            ("TAN", Roles::SECRET),
            ("Fehlercode", Roles::OTHER),
            ("kortingscode", Roles::OTHER),
            ("Kundennummer", Roles::OTHER),
            ("mã", Roles::CODE),
        ] {
            assert!(LEXICON.word(word).any(role), "{word}");
        }
        for word in ["tan", "encode", "Fehlercode", "Unicode", "ma"] {
            assert!(!LEXICON.word(word).any(Roles::NAME), "{word} is no code's name");
        }
        assert_eq!(LEXICON.phrase(&["Mot", "de", "passe", "à"]).map(|(words, _)| words), Some(3));
        assert_eq!(LEXICON.inside("인증번호는").map(|(length, _)| length), Some("인증번호".len()));
    }

    #[test]
    fn every_group_and_entry_is_read() {
        let text = include_str!("../lexicon.txt");
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let name = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            let known = name.map_or(line.contains(": "), |name| Roles::of_group(name) != Roles::default());
            assert!(known, "not understood: {line}");
        }
        let longest = LEXICON.phrases.values().flatten().map(|(rest, _)| rest.len() + 1).max();
        assert!(longest <= Some(LONGEST_PHRASE), "a phrase of {longest:?} words would never be found");
    }
}
