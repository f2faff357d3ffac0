//! Cuts a message into tokens: words with their roles, numbers with their form, signs and breaks.

mod password;

use crate::lexicon::{LEXICON, LONGEST_PHRASE, Roles, is_accent, is_cased, narrow};
use crate::spelled::digits_spelled;

/// The placeholder for a code in a redacted text.
pub const REDACTED: &str = "[code]";

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Word(Roles),
    Number(Form),
    Colon,
    Comma,
    Quote,
    /// Any other sign or emoji.
    Sign,
    /// The end of a sentence.
    Stop,
    /// The end of a line.
    Line,
}

/// What a number looks like on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `482913`, `482 913`, `48-29-13`, `8-2-4106`
    Digits,
    /// `K8R2TP`, `9QT-44B`
    Mixed,
    /// `G-482913`: Google's format, a code even without any word around it.
    Google,
    /// `45к1978`, `123 4567`, `482.913`: a code only right after a code's name.
    Loose,
    /// `teapot5521`, `otter-lantern-88`: what follows the name of a password and looks like one.
    Password,
    /// `four eight two one`: digits written as words.
    Spelled,
    /// `14-11-26`: a date, unless it is explicitly given as a code.
    Date,
    /// Too short for a code.
    Small,
    /// A date, time, amount, telephone number or address: never a code.
    Never,
    /// `[code]`
    Redacted,
}

/// A word, number, sign or break, and its byte range in the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Whether no whitespace separates it from the previous token.
    pub(crate) glued: bool,
}

impl Token {
    /// The roles of a word; none for anything else.
    pub(crate) fn roles(&self) -> Roles {
        if let Kind::Word(roles) = self.kind { roles } else { Roles::default() }
    }
}

/// The tokens of a text, in order.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let pieces = pieces(text);
    let mut cutter = Cutter { text, pieces: &pieces, tokens: Vec::with_capacity(pieces.len()) };
    let mut at = 0;
    while at < pieces.len() {
        at = cutter.next(at);
    }
    let mut tokens = cutter.tokens;
    unmask_kinds(&mut tokens);
    name_keys(&mut tokens, text);
    tokens
}

/// Handles "zip code" and "code de réduction": a word beside "code" can make it the name of something that is not a
/// secret.
fn unmask_kinds(tokens: &mut [Token]) {
    for at in 0..tokens.len() {
        if is_kind_of_code(tokens, at) {
            let roles = tokens[at].roles().without(Roles::NAME).and(Roles::OTHER);
            tokens[at].kind = Kind::Word(roles);
        }
    }
}

/// Whether this is "code" in "zip code" or "code de réduction".
fn is_kind_of_code(tokens: &[Token], at: usize) -> bool {
    if !tokens[at].roles().any(Roles::CODE) || tokens[at].roles().any(Roles::SECRET) {
        return false;
    }
    let hyphen = |i: usize| tokens.get(i).is_some_and(|token| token.kind == Kind::Sign && token.glued);
    let is_kind = |i: usize| tokens.get(i).is_some_and(|token| token.roles().any(Roles::KIND));
    let is_link = |i: usize| hyphen(i) || tokens.get(i).is_some_and(|token| token.roles().any(Roles::LINK));
    let before = at > 0 && (is_kind(at - 1) || at > 1 && hyphen(at - 1) && is_kind(at - 2));
    let links = (1..=3).take_while(|step| is_link(at + step)).count();
    before || (1..=links + 1).any(|step| is_kind(at + step))
}

/// Handles "access key" and "clé d'activation": a purpose beside "key" makes it the name of a code. So does the name
/// of a code right before it: "PIN number", "PUK numarası". In scripts without case, the thing that is locked may stand
/// between the two: "رقم باب العمارة السري", the secret number of the building's door.
fn name_keys(tokens: &mut [Token], text: &str) {
    for at in 0..tokens.len() {
        if !tokens[at].roles().any(Roles::KEY) {
            continue;
        }
        let is_purpose = |i: usize| tokens.get(i).is_some_and(|token| token.roles().any(Roles::PURPOSE));
        let is_link = |i: usize| {
            let glued = |token: &Token| matches!(token.kind, Kind::Sign | Kind::Quote) && token.glued;
            let few = |token: &Token| text[token.start..token.end].chars().nth(3).is_none();
            let small = |token: &Token| matches!(token.kind, Kind::Word(_)) && few(token);
            tokens.get(i).is_some_and(|token| glued(token) || small(token) || token.roles().any(Roles::LINK))
        };
        let is_secret =
            |i: usize| tokens[i].roles().any(Roles::SECRET) && !tokens[i].roles().any(Roles::UNIT);
        let before = at > 0
            && (is_purpose(at - 1) || is_secret(at - 1) || at > 1 && is_link(at - 1) && is_purpose(at - 2));
        let uncased = text[tokens[at].start..].chars().next().is_some_and(|c| !is_cased(c));
        let locked = |i: usize| {
            let thing = Roles::LOCK.and(Roles::OWNER);
            uncased && tokens.get(i).is_some_and(|token| token.roles().any(thing))
        };
        let joins = |i: usize| (is_link(i) || locked(i)) && !is_purpose(i);
        let links = (1..=3).take_while(|step| joins(at + step)).count();
        if before || is_purpose(at + links + 1) {
            let roles = tokens[at].roles().without(Roles::NO_CODE).and(Roles::SECRET);
            tokens[at].kind = Kind::Word(roles);
        }
    }
}

// ── Pieces: runs of one sort of character ────────────────────────────────────────────────────────────────────────

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Digits,
    /// Letters of a script with upper and lower case.
    Letters,
    /// Digits and such letters with nothing between them.
    Mixed,
    /// Letters of a script without case. Spaces may not separate its words, so entries are searched for inside the run.
    Script,
    Sign(char),
    Line,
    Redacted,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    sort: Sort,
    start: usize,
    end: usize,
    /// How many whitespace characters precede it.
    blanks: usize,
}

fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let (mut at, mut blanks) = (0, 0);
    while let Some(c) = text[at..].chars().next() {
        let end = at + c.len_utf8();
        if text[at..].starts_with(REDACTED) {
            pieces.push(Piece { sort: Sort::Redacted, start: at, end: at + REDACTED.len(), blanks });
            (at, blanks) = (at + REDACTED.len(), 0);
            continue;
        }
        match sort(c) {
            None if is_accent(c) => extend(&mut pieces, at, end),
            None if c.is_whitespace() => blanks += 1,
            None => {}
            Some(sort) => {
                add(&mut pieces, Piece { sort, start: at, end, blanks });
                blanks = 0;
            }
        }
        at = end;
    }
    pieces.into_iter().flat_map(|piece| split_name(piece, text)).flatten().collect()
}

/// Adds an accent to the letter before it; a stray accent is ignored.
fn extend(pieces: &mut [Piece], start: usize, end: usize) {
    if let Some(last) =
        pieces.last_mut().filter(|last| last.end == start && !matches!(last.sort, Sort::Redacted))
    {
        last.end = end;
    }
}

/// Adds a character to the run before it, or starts a new one. Invisible characters do not end a run.
fn add(pieces: &mut Vec<Piece>, new: Piece) {
    let Some(last) = pieces.last_mut().filter(|_| new.blanks == 0) else { return pieces.push(new) };
    let joined = match (last.sort, new.sort) {
        (Sort::Digits, Sort::Digits) => Sort::Digits,
        (Sort::Letters, Sort::Letters) => Sort::Letters,
        (Sort::Script, Sort::Script) if last.end == new.start => Sort::Script,
        (Sort::Line, Sort::Line) => Sort::Line,
        (Sort::Digits | Sort::Letters | Sort::Mixed, Sort::Digits | Sort::Letters) => Sort::Mixed,
        _ => return pieces.push(new),
    };
    (last.sort, last.end) = (joined, new.end);
}

/// Splits `OTP482913` into the name of a code and the code, and `482913dir` into the code and its ending. A name with a
/// digit, such as `PIN1`, becomes a word.
fn split_name(piece: Piece, text: &str) -> [Option<Piece>; 2] {
    let word = &text[piece.start..piece.end];
    if piece.sort == Sort::Mixed && LEXICON.is_entry(word) {
        return [Some(Piece { sort: Sort::Letters, ..piece }), None];
    }
    if let Some(cut) = ending(word).filter(|_| piece.sort == Sort::Mixed) {
        let middle = piece.start + cut;
        let code = Piece { sort: Sort::Digits, end: middle, ..piece };
        return [Some(code), Some(Piece { sort: Sort::Letters, start: middle, blanks: 0, ..piece })];
    }
    let cut = word.char_indices().find(|(_, c)| is_digit(*c)).map_or(0, |(at, _)| at);
    let (name, digits) = word.split_at(cut);
    let splits = piece.sort == Sort::Mixed
        && digits.chars().filter(|c| is_digit(*c)).count() >= 4
        && !digits.chars().any(char::is_alphabetic)
        && LEXICON.word(name).any(Roles::NAME);
    if !splits {
        return [Some(piece), None];
    }
    let middle = piece.start + cut;
    let name = Piece { sort: Sort::Letters, end: middle, ..piece };
    [Some(name), Some(Piece { sort: Sort::Digits, start: middle, end: piece.end, blanks: 0 })]
}

/// Where the ending of an inflected number begins: `482913dir`.
fn ending(word: &str) -> Option<usize> {
    let cut = word.char_indices().find(|(_, c)| !is_digit(*c)).map(|(at, _)| at)?;
    let (digits, ending) = word.split_at(cut);
    ((4..=8).contains(&count_digits(digits)) && is_clitic(ending)).then_some(cut)
}

/// Whether these letters are a verb or a case ending that some languages attach to a number without a hyphen. Endings
/// that may also be a unit are left out.
fn is_clitic(letters: &str) -> bool {
    const CLITICS: [&str; 27] = [
        "dir",
        "dır",
        "dur",
        "dür",
        "tir",
        "tır",
        "tur",
        "tür",
        "dirler",
        "yi",
        "yı",
        "yu",
        "yü",
        "ye",
        "ya",
        "nin",
        "nın",
        "nun",
        "nün",
        "yle",
        "yla",
        "ymış",
        "ymiş",
        "ymuş",
        "ymüş",
        "numaralı",
        "nolu",
    ];
    CLITICS.contains(&letters)
}

/// The sort of a character; `None` for whitespace, accents and invisible characters.
fn sort(c: char) -> Option<Sort> {
    match c {
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => Some(Sort::Line),
        '\u{ad}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}'
        | '\u{feff}' => None,
        _ if c.is_whitespace() || is_accent(c) => None,
        _ if is_digit(c) => Some(Sort::Digits),
        _ if is_cased(c) => Some(Sort::Letters),
        _ if c.is_alphabetic() || is_script_mark(c) => Some(Sort::Script),
        _ => Some(Sort::Sign(c)),
    }
}

/// Whether this is a vowel or tone mark that Unicode does not count as a letter although words contain it.
fn is_script_mark(c: char) -> bool {
    matches!(c, '\u{591}'..='\u{5c7}' | '\u{64b}'..='\u{65f}' | '\u{e47}'..='\u{e4e}')
        || matches!(c, '\u{900}'..='\u{dff}' if !matches!(c, '\u{964}' | '\u{965}' | '\u{970}'))
        || matches!(c, '\u{eb1}'..='\u{ecd}' | '\u{102b}'..='\u{103e}' | '\u{17b6}'..='\u{17d3}')
}

/// Whether this is a decimal digit of any script.
pub(crate) fn is_digit(c: char) -> bool {
    digit_value(c).is_some()
}

/// The value of a decimal digit of any script.
pub(crate) fn digit_value(c: char) -> Option<u32> {
    const ZEROS: [u32; 18] = [
        0x660, 0x6f0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xe50, 0xed0, 0xf20,
        0x1040, 0x17e0, 0x1810, 0xff10,
    ];
    match c {
        '\0'..='\u{7f}' => c.to_digit(10),
        '\u{1d7ce}'..='\u{1d7ff}' => Some((c as u32 - 0x1d7ce) % 10),
        '⓪' | '⓿' => Some(0),
        '①'..='⑨' => Some(c as u32 - '①' as u32 + 1),
        '❶'..='❾' => Some(c as u32 - '❶' as u32 + 1),
        _ => ZEROS.iter().map(|zero| (c as u32).wrapping_sub(*zero)).find(|value| *value < 10),
    }
}

// ── Tokens: pieces put together ──────────────────────────────────────────────────────────────────────────────────

struct Cutter<'a> {
    text: &'a str,
    pieces: &'a [Piece],
    tokens: Vec<Token>,
}

impl Cutter<'_> {
    /// Makes the tokens that start at this piece, and returns the piece to continue with.
    fn next(&mut self, at: usize) -> usize {
        let piece = self.pieces[at];
        if let Some(end) = self.password_end(at) {
            return self.push(Kind::Number(Form::Password), at, end);
        }
        if let Some(end) = self.spelled_end(at) {
            return self.push(Kind::Number(Form::Spelled), at, end);
        }
        if let Some(end) = self.blocks_end(at) {
            return self.number(Form::Mixed, at, end);
        }
        match piece.sort {
            Sort::Digits => self.digits(at),
            Sort::Mixed => self.cluster(at),
            Sort::Letters if self.leads_cluster(at) => self.cluster(at),
            Sort::Letters => self.word(at),
            Sort::Script => self.script(at),
            Sort::Sign(sign) => self.sign(at, sign),
            Sort::Line => self.push(Kind::Line, at, at + 1),
            Sort::Redacted => self.push(Kind::Number(Form::Redacted), at, at + 1),
        }
    }

    fn push(&mut self, kind: Kind, from: usize, to: usize) -> usize {
        let (first, last) = (self.pieces[from], self.pieces[to - 1]);
        self.tokens.push(Token { kind, start: first.start, end: last.end, glued: first.blanks == 0 });
        to
    }

    fn written(&self, at: usize) -> &str {
        &self.text[self.pieces[at].start..self.pieces[at].end]
    }

    fn word(&mut self, at: usize) -> usize {
        let alone = LEXICON.word(self.written(at));
        if !LEXICON.begins_phrase(self.written(at)) {
            return self.push(Kind::Word(alone), at, at + 1);
        }
        let places = self.words_in_a_row(at);
        let words: Vec<&str> = places.iter().map(|place| self.written(*place)).collect();
        match LEXICON.phrase(&words) {
            Some((count, roles)) => self.push(Kind::Word(roles), at, places[count - 1] + 1),
            None => self.push(Kind::Word(alone), at, at + 1),
        }
    }

    /// The pieces that could form a phrase: words with only a space, a hyphen or an apostrophe between them.
    fn words_in_a_row(&self, at: usize) -> Vec<usize> {
        let mut places = vec![at];
        let mut next = at + 1;
        while places.len() < LONGEST_PHRASE {
            let Some(piece) = self.pieces.get(next) else { break };
            match piece.sort {
                Sort::Letters | Sort::Mixed | Sort::Digits => places.push(next),
                Sort::Sign('-' | '\'' | '’' | '‑')
                    if piece.blanks == 0 && next == places[places.len() - 1] + 1 => {}
                _ => break,
            }
            next += 1;
        }
        places
    }

    /// Searches a run of a script without case for entries of the lexicon; the text between them becomes words without
    /// a role. An entry of two words reaches into the next pieces.
    fn script(&mut self, at: usize) -> usize {
        let (begin, apart) = (self.pieces[at].start, self.pieces[at].blanks > 0);
        let (mut from, mut here, mut last) = (begin, begin, at);
        while here < self.pieces[last].end {
            let rest = &self.text[here..];
            let Some((length, roles)) = LEXICON.inside(rest) else {
                here += rest.chars().next().map_or(1, char::len_utf8);
                continue;
            };
            self.plain(from, here, from > begin || !apart);
            let roles = if roles.any(Roles::SILENT) { Roles::default() } else { roles };
            let glued = here > begin || !apart;
            self.tokens.push(Token { kind: Kind::Word(roles), start: here, end: here + length, glued });
            here += length;
            from = here;
            last += self.pieces[last..].iter().take_while(|piece| piece.end < here).count();
        }
        self.plain(from, self.pieces[last].end, from > begin || !apart);
        last + 1
    }

    fn plain(&mut self, start: usize, end: usize, glued: bool) {
        if start < end {
            // One or two characters are a particle or an article, such as は and ال.
            let small = self.text[start..end].chars().count() <= 2;
            let roles = if small { Roles::LINK } else { Roles::default() };
            self.tokens.push(Token { kind: Kind::Word(roles), start, end, glued });
        }
    }

    fn sign(&mut self, at: usize, sign: char) -> usize {
        let kind = match narrow(sign) {
            ':' | '=' | '→' | '➡' | '⇒' | '︰' | '՝' | '፡' => Kind::Colon,
            ',' | '،' | '、' | '､' | '၊' | '፣' => Kind::Comma,
            quote if is_quote(quote) => Kind::Quote,
            '.' if self.ends_sentence(at) => Kind::Stop,
            '!' | '?' | ';' | '|' | '。' | '｡' | '।' | '॥' | '؟' | '؛' | '۔' | '‼' | '⁉' | '։' | '።'
            | '។' | '။' => Kind::Stop,
            '№' | '☎' | '☏' | '📞' | '℡' | '〒' => Kind::Word(Roles::OTHER),
            '°' if at > 0 && self.written(at - 1).eq_ignore_ascii_case("n") => Kind::Word(Roles::OTHER),
            _ => Kind::Sign,
        };
        self.push(kind, at, at + 1)
    }

    /// Whether a full stop ends a sentence. It does not after an abbreviation ("no. 12", "dvs. de", "Dr. Weber") or an
    /// ordinal ("3. OG").
    fn ends_sentence(&self, at: usize) -> bool {
        let next = self.pieces.get(at + 1);
        if next.is_some_and(|piece| piece.blanks == 0 && piece.sort != Sort::Line) {
            return false;
        }
        !self.tokens.last().is_some_and(|last| {
            let length = self.text[last.start..last.end].chars().take(11).count();
            last.kind == Kind::Number(Form::Small)
                || length <= 10 && last.roles().any(Roles::NO_CODE)
                || length <= 4
                    && matches!(last.kind, Kind::Word(_))
                    && next.is_some_and(|next| self.begins_small(next))
                || self.is_title(last)
                || next.is_some_and(|next| self.shortens(next))
        })
    }

    /// Whether a word is a title such as "Dr", "Sf" or "Mgr": in the lexicon, or without any vowel.
    fn is_title(&self, word: &Token) -> bool {
        let written = &self.text[word.start..word.end];
        let capital = |c: char| !c.is_uppercase();
        let voiceless =
            written.len() <= 8 && written.chars().all(is_consonant) && written.chars().skip(1).all(capital);
        word.roles().any(Roles::SHORT) || voiceless && word.kind == Kind::Word(Roles::default())
    }

    /// Whether the words before a full stop are abbreviations of a code's name or purpose, as in "Cod. autorizz. 712
    /// 665" and "Verif. code".
    fn shortens(&self, next: &Piece) -> bool {
        let number = matches!(next.sort, Sort::Digits | Sort::Mixed);
        if !number && !self.begins_small(next) && !matches!(next.sort, Sort::Sign(':' | '-')) {
            return false;
        }
        let mut words = self.tokens.iter().rev().take(4).filter(|token| token.kind != Kind::Sign);
        let (last, earlier) = (words.next(), words.next());
        let is_short = |token: &Token| LEXICON.is_shortened(&self.text[token.start..token.end]);
        let is_name = |token: &Token| token.end - token.start <= 6 && token.roles().any(Roles::NAME);
        last.is_some_and(|last| matches!(last.kind, Kind::Word(_)) && is_short(last))
            || number
                && last.is_some_and(|last| last.end - last.start <= 18 && !last.roles().any(Roles::INERT))
                && earlier.is_some_and(is_name)
    }

    fn begins_small(&self, piece: &Piece) -> bool {
        self.text[piece.start..].chars().next().is_some_and(char::is_lowercase)
    }

    // ── Numbers ──────────────────────────────────────────────────────────────────────────────────────────────────

    /// Whether a prefix as in `G-482913` or `AB-12C` starts here. The name of a code is not a prefix: `PIN-4821`.
    fn leads_cluster(&self, at: usize) -> bool {
        let caps = |i: usize| {
            self.pieces.get(i).is_some_and(|p| p.sort == Sort::Letters && is_caps(self.written(i)))
        };
        let leads = caps(at)
            && self.written(at).chars().count() <= 4
            && !LEXICON.word(self.written(at)).any(Roles::NAME.and(Roles::NO_CODE));
        let mut next = at;
        while leads && self.joins(next + 1, is_hyphen) && next < at + 8 {
            next += 2;
            match self.pieces.get(next).map(|piece| piece.sort) {
                Some(Sort::Digits) => return true,
                Some(Sort::Mixed) => return is_caps(self.written(next)),
                _ if caps(next) => {}
                _ => return false,
            }
        }
        false
    }

    /// Whether this piece is such a sign, without whitespace before or after it.
    fn joins(&self, at: usize, sign: fn(char) -> bool) -> bool {
        let glued = |i: usize| self.pieces.get(i).filter(|piece| piece.blanks == 0);
        glued(at + 1).is_some() && glued(at).is_some_and(|p| matches!(p.sort, Sort::Sign(c) if sign(c)))
    }

    /// The end of the pieces that signs join to one number, and whether one of the signs does not occur in codes.
    fn cluster_end(&self, at: usize) -> (usize, bool) {
        let (mut end, mut broken) = (at + 1, false);
        while let Some(next) = self.pieces.get(end + 1).map(|piece| piece.sort) {
            let here = self.pieces[end - 1].sort;
            let digits =
                matches!(here, Sort::Digits | Sort::Mixed) && matches!(next, Sort::Digits | Sort::Mixed);
            let mixed = here == Sort::Mixed && next == Sort::Mixed;
            let caps = mixed || next == Sort::Digits || is_caps(self.written(end + 1));
            if self.joins(end, is_hyphen) && caps && next != Sort::Script {
                end += 2;
            } else if digits && self.joins(end, breaks_code) && !self.ends_with_code(end) {
                (end, broken) = (end + 2, true);
            } else {
                break;
            }
        }
        (end, broken)
    }

    /// Whether the digits before this comma are a code that was just named, as in "Code 482913,10 min". Then the comma
    /// is not a decimal separator.
    fn ends_with_code(&self, comma: usize) -> bool {
        let light = |token: &&Token| match token.kind {
            Kind::Word(roles) => !roles.any(Roles::NAME) && roles.any(Roles::IS.and(Roles::LINK)),
            kind => matches!(kind, Kind::Colon | Kind::Quote | Kind::Sign),
        };
        let named = || self.tokens.iter().rev().take(4).find(|token| !light(token));
        matches!(self.pieces[comma].sort, Sort::Sign(',' | '.'))
            && (4..=8).contains(&count_digits(self.written(comma - 1)))
            && named().is_some_and(|token| token.roles().any(Roles::NAME))
    }

    /// Makes a token of one number without whitespace.
    fn cluster(&mut self, at: usize) -> usize {
        let (end, broken) = self.cluster_end(at);
        let parts: Vec<&str> = (at..end).step_by(2).map(|i| self.written(i)).collect();
        let dotted = || (at..end).all(|i| matches!(self.pieces[i].sort, Sort::Sign('.') | Sort::Digits));
        let form = match broken {
            false => joined_form(&parts),
            true if dotted() => broken_form(&parts),
            true => Form::Never,
        };
        self.number(form, at, end)
    }

    /// Makes a token of digits, which may continue after a space: `482 913`.
    fn digits(&mut self, at: usize) -> usize {
        if let Some(end) = self.starred_end(at) {
            return self.push(Kind::Number(Form::Digits), at, end);
        }
        let lone = |i: usize| self.cluster_end(i).0 == i + 1;
        if !lone(at) {
            return self.cluster(at);
        }
        let follows = |i: &usize| {
            self.pieces.get(*i).is_some_and(|p| p.sort == Sort::Digits && p.blanks == 1) && lone(*i)
        };
        let groups = 1 + (at + 1..self.pieces.len()).take_while(follows).count();
        let lengths: Vec<usize> = (at..at + groups).map(|i| count_digits(self.written(i))).collect();
        let (taken, form) = group(&lengths);
        self.number(form, at, at + taken)
    }

    /// The end of digits that are written as words, with a blank or a hyphen between them: "four eight two one".
    fn spelled_end(&self, at: usize) -> Option<usize> {
        let spelled = |i: usize| {
            let piece = self.pieces.get(i)?;
            let word = matches!(piece.sort, Sort::Letters | Sort::Script);
            Some(if word { digits_spelled(self.written(i)) } else { 0 }).filter(|count| *count > 0)
        };
        let (mut count, mut end) = (spelled(at)?, at + 1);
        while count <= 8 {
            let next = if self.joins(end, is_hyphen) { end + 1 } else { end };
            let Some(more) = spelled(next) else { break };
            (count, end) = (count + more, next + 1);
        }
        (4..=8).contains(&count).then_some(end)
    }

    /// The end of single digits that a sign separates: `4·8·2·1`, `4*8*2*1`.
    fn starred_end(&self, at: usize) -> Option<usize> {
        let single = |i: usize| {
            self.pieces.get(i).is_some_and(|p| p.sort == Sort::Digits) && count_digits(self.written(i)) == 1
        };
        let between = |c: char| matches!(c, '·' | '*' | '•' | '・');
        let mut end = at + 1;
        while single(end - 1) && self.joins(end, between) && single(end + 1) && end < at + 16 {
            end += 2;
        }
        (single(at) && (7..=15).contains(&(end - at))).then_some(end)
    }

    /// The end of blocks of capitals and digits after a code's name, as in "Code: 843 M2K".
    fn blocks_end(&self, at: usize) -> Option<usize> {
        let block = |i: usize| {
            let piece = self.pieces.get(i)?;
            let fits = matches!(piece.sort, Sort::Digits | Sort::Letters | Sort::Mixed);
            let written = self.written(i);
            let length = written.chars().take(5).count();
            (fits && (3..=4).contains(&length) && is_caps(written)).then_some(length)
        };
        let first = block(at)?;
        let follows = |i: &usize| self.pieces[*i].blanks == 1 && block(*i) == Some(first);
        let more = (at + 1..self.pieces.len()).take(2).take_while(follows).count();
        let end = at + 1 + more;
        let mixed = (at..end).any(|i| self.pieces[i].sort == Sort::Mixed);
        let apart =
            self.pieces.get(end).is_none_or(|next| next.blanks > 0 || matches!(next.sort, Sort::Sign(_)));
        (more == 1 && mixed && apart && self.follows_code_name()).then_some(end)
    }

    /// Whether the next token comes right after a code's name, or after a colon behind one: "Code pour le retrait :".
    fn follows_code_name(&self) -> bool {
        let inside = |token: &&Token| !matches!(token.kind, Kind::Stop | Kind::Line | Kind::Number(_));
        let mut before = self.tokens.iter().rev().take(8).take_while(inside).peekable();
        let reach = if before.peek().is_some_and(|token| token.kind == Kind::Colon) { 8 } else { 2 };
        before.take(reach).any(|token| token.roles().any(Roles::NAME))
    }

    fn number(&mut self, form: Form, from: usize, to: usize) -> usize {
        let (start, end) = (self.pieces[from].start, self.pieces[to - 1].end);
        let bound = form != Form::Small && is_bound(&self.text[..start], &self.text[end..]);
        self.push(Kind::Number(if bound { Form::Never } else { form }), from, to)
    }
}

fn is_quote(c: char) -> bool {
    matches!(
        c,
        '"' | '\''
            | '“'
            | '”'
            | '„'
            | '‟'
            | '«'
            | '»'
            | '‹'
            | '›'
            | '‘'
            | '’'
            | '‚'
            | '「'
            | '」'
            | '『'
            | '』'
            | '`'
            | '〝'
            | '〞'
    )
}

fn is_consonant(c: char) -> bool {
    c.is_alphabetic()
        && !"aeiouyAEIOUYаеиоуыэюяіїєАЕИОУЫЭЮЯІЇЄαειουωη".contains(c)
        && c < '\u{500}'
        && !matches!(c, '\u{c0}'..='\u{2ff}')
}

fn is_hyphen(c: char) -> bool {
    matches!(c, '-' | '‐' | '‑' | '–' | '−')
}

/// Signs that occur inside dates, times and amounts, but not in codes.
fn breaks_code(c: char) -> bool {
    matches!(c, '.' | ',' | ':' | '/' | '\'' | '’' | '٫' | '٬')
}

fn count_digits(text: &str) -> usize {
    text.chars().filter(|c| is_digit(*c)).count()
}

/// Whether the text has no lower-case letter.
fn is_caps(text: &str) -> bool {
    text.chars().all(|c| !c.is_lowercase())
}

/// How many of the digit groups, each separated by one space, form one number, and the form of that number. Takes their
/// lengths.
fn group(lengths: &[usize]) -> (usize, Form) {
    let (total, first) = (lengths.iter().sum::<usize>(), lengths[0]);
    let rest = &lengths[1..];
    let equal = rest.iter().all(|length| *length == first);
    // "482913 10 minutes": the code is complete, and another number follows it.
    let complete = rest.iter().all(|length| *length <= 2) && (total <= 8 || rest.len() == 1);
    match total {
        _ if (4..=8).contains(&first) && complete => (1, Form::Digits),
        4..=8 if equal => (lengths.len(), Form::Digits),
        // "482 913 10 minutes"
        7..=8 if lengths[..2] == [3, 3] => (2, Form::Digits),
        // "3 482913"
        4..=8 if first <= 2 && rest.iter().any(|length| *length >= 4) => (1, Form::Small),
        4..=8 => (lengths.len(), Form::Loose),
        0..=3 => (lengths.len(), Form::Small),
        _ => (lengths.len(), Form::Never),
    }
}

/// The form of parts that are joined by dots: `482.913`, `48.29.73`. They may be a code right after its name, but a
/// decimal, a version or a date is more likely.
fn broken_form(parts: &[&str]) -> Form {
    let all = |length: usize| parts.iter().all(|part| part.len() == length && count_digits(part) == length);
    let pairs = parts.len() == 3 && all(2) && !is_short_date(parts);
    if parts.len() == 2 && all(3) || pairs { Form::Loose } else { Form::Never }
}

/// The form of one run, or of several runs joined by hyphens.
fn joined_form(parts: &[&str]) -> Form {
    let letters = parts.iter().flat_map(|part| part.chars()).filter(|c| is_cased(*c)).count();
    let digits: usize = parts.iter().map(|part| count_digits(part)).sum();
    match (letters, letters + digits) {
        (_, 0..=3) => Form::Small,
        (0, 4..=8) if parts.len() > 1 && is_date(parts) => Form::Never,
        (0, 6) if parts.len() == 3 && is_short_date(parts) => Form::Date,
        (0, 4..=8) => Form::Digits,
        (0, _) => Form::Never,
        (1, 7) if parts.len() == 2 && parts[0].eq_ignore_ascii_case("g") => Form::Google,
        (_, 4..=8) if is_plain_mix(parts) => Form::Mixed,
        (_, 4..=10) if !is_measure(parts) => Form::Loose,
        _ => Form::Never,
    }
}

fn is_plain_mix(parts: &[&str]) -> bool {
    parts.iter().all(|part| is_caps(part)) && !is_measure(parts)
}

/// Whether this is an amount, a time or a partly hidden number: `1930h`, `16h22`, `6560р`, `14th`, `xx8831`.
fn is_measure(parts: &[&str]) -> bool {
    let [word] = parts else { return false };
    let tail = word.trim_start_matches(is_digit);
    let is_suffix = tail.len() < word.len() && !tail.chars().any(is_digit) && !is_caps(tail);
    let head = word.trim_start_matches(['x', 'X', 'х', 'Х']);
    let is_masked = head.len() + 2 <= word.len() && head.chars().all(is_digit);
    let hours = word.trim_matches(is_digit);
    is_suffix || is_masked || matches!(hours, "h" | "H") && word.len() <= 5
}

/// Whether this is a date or a range of years: `2025-06-14`, `12-03-2025`, `1404-09-30`, `2024-2025`.
fn is_date(parts: &[&str]) -> bool {
    let values: Vec<u32> = parts.iter().map(|part| value(part)).collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.chars().count()).collect();
    let day = |a: u32, b: u32| (1..=31).contains(&a) && (1..=31).contains(&b) && (a <= 12 || b <= 12);
    match (values.as_slice(), lengths.as_slice()) {
        ([year, a, b], [4, 1..=2, 1..=2]) | ([a, b, year], [1..=2, 1..=2, 4]) => {
            let pairs = lengths.iter().all(|length| matches!(length, 2 | 4));
            (is_year(*year) || pairs && is_year_elsewhere(*year)) && day(*a, *b)
        }
        ([a, b], [4, 4]) => is_year(*a) && is_year(*b),
        _ => false,
    }
}

/// Whether this is a date with a two-digit year around now: `14-11-26`, `11-14-26`, `26-11-14`. One in fifty codes
/// written in pairs looks like that.
fn is_short_date(parts: &[&str]) -> bool {
    let [a, b, c] = [value(parts[0]), value(parts[1]), value(parts[2])];
    let pairs = parts.iter().all(|part| part.chars().count() == 2);
    let year = |value: u32| (15..=45).contains(&value);
    let day = |day: u32, month: u32| (1..=31).contains(&day) && (1..=12).contains(&month);
    pairs && (year(c) && (day(a, b) || day(b, a)) || year(a) && day(c, b))
}

/// The value of a short number; only the first eight digits count.
pub(crate) fn value(text: &str) -> u32 {
    text.chars().filter_map(digit_value).take(8).fold(0, |sum, digit| sum * 10 + digit)
}

/// Whether people would read this number as a year.
pub(crate) fn is_year(value: u32) -> bool {
    (1900..=2099).contains(&value)
}

/// Whether this is a recent year of another calendar: Persian and Islamic, Bengali, Buddhist or Hebrew.
pub(crate) fn is_year_elsewhere(value: u32) -> bool {
    matches!(value, 1300..=1499 | 2480..=2599 | 5700..=5899)
}

/// Whether the text around a number makes it part of something larger: an amount, a masked card number, a telephone
/// number, an address.
fn is_bound(before: &str, after: &str) -> bool {
    let mut back = before.chars().rev().map(narrow);
    let (previous, earlier) = (back.next().unwrap_or(' '), back.next().unwrap_or(' '));
    let mut front = after.chars().map(narrow);
    let (next, later) = (front.next().unwrap_or(' '), front.next().unwrap_or(' '));
    let near_before = if previous.is_whitespace() { earlier } else { previous };
    let near_after = if next.is_whitespace() { later } else { next };
    let starred =
        previous == '*' && !matches!(next, '*' | '#') || next == '*' && later == '*' && previous != '*';
    let in_path = matches!(previous, '/' | '\\' | '_' | '@' | '+' | '~' | '•' | '●' | '…' | '×')
        || previous == '.' && !earlier.is_alphabetic()
        || matches!(next, '@' | '_' | '\\' | '×')
        || matches!(next, '/' | '+' | '~') && later.is_alphanumeric()
        || next == '.' && later.is_lowercase();
    // "(415) 555-0143"
    let area =
        near_before == ')' && ends_with_digit(before.trim_end().trim_end_matches(')')) && has_open(before)
            || next == ')' && (is_digit(later) || front.next().is_some_and(|c| later == ' ' && is_digit(c)));
    starred || in_path || area || is_money(near_before) || is_money(near_after) || previous == '%'
}

fn ends_with_digit(text: &str) -> bool {
    text.chars().next_back().is_some_and(is_digit)
}

/// Whether the closing bracket before this place belongs to a bracket that holds only digits.
fn has_open(before: &str) -> bool {
    let inner = before.trim_end().trim_end_matches(')');
    inner.trim_end_matches(is_digit).ends_with(['(', '+'])
}

fn is_money(sign: char) -> bool {
    matches!(
        sign,
        '%' | '‰' | '°' | '$' | '£' | '¥' | '¢' | '₿' | '฿' | '℃' | '℉' | '\u{20a0}'..='\u{20cf}' | '﷼'
    )
}
