//! Finds the codes in a text and replaces them.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use crate::judge::{Patience, judge};
use crate::tokens::REDACTED;

/// How many times a text is judged again: finding one code can reveal another (the same one repeated, or its
/// neighbour). Only a hostile text needs more rounds; it then loses every number that could be a code.
const ROUNDS: usize = 6;

/// Whether a search for `wanted` may match the placeholder `[code]` in a redacted text, wholly or in part.
///
/// Redacting is expensive. A search over many redacted texts can skip every text that does not contain `wanted` itself,
/// unless this is true.
pub fn may_match_placeholder(wanted: &str) -> bool {
    wanted.contains(['[', ']']) || REDACTED.contains(wanted)
}

/// The text with every one-time code replaced by [`REDACTED`]. Redacting the result again changes nothing.
pub fn redact(text: &str) -> String {
    replace(text, &find(text))
}

/// The byte ranges of the one-time codes in a text, in order and without overlap.
///
/// The text is judged again without the codes that were found, until no more turn up.
pub fn find(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for round in 0..=ROUNDS {
        let shown = replace(text, &found);
        let patience = if round < ROUNDS { Patience::Judge } else { Patience::TakeAll };
        let new = judge(&shown, patience);
        if new.is_empty() {
            break;
        }
        let new: Vec<_> = new.into_iter().map(|range| in_original(range, &found)).collect();
        found.extend(new);
        found.sort_by_key(|range| range.start);
        found.extend(echoes(text, &found));
        found.sort_by_key(|range| range.start);
    }
    found
}

/// Other occurrences of the codes that were found, including inside words and addresses. Inside a longer number the
/// same digits are a different number, so those are skipped.
fn echoes(text: &str, found: &[Range<usize>]) -> Vec<Range<usize>> {
    let codes = found.iter().map(|range| &text[range.clone()]);
    let codes: HashSet<&str> = codes.filter(|code| code.contains(char::is_numeric)).collect();
    let lengths: BTreeSet<usize> = codes.iter().map(|code| code.len()).collect();
    let digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    let ends = found.iter().map(|range| range.start).chain([text.len()]);
    let gaps = [0].into_iter().chain(found.iter().map(|range| range.end)).zip(ends);
    let mut echoes = Vec::new();
    for (mut at, end) in gaps {
        while at < end {
            let is_code =
                |to: &usize| *to <= end && text.get(at..*to).is_some_and(|part| codes.contains(part));
            let bytes = text.as_bytes();
            let alone = |to: &usize| {
                !digit(at.checked_sub(1).and_then(|before| bytes.get(before))) && !digit(bytes.get(*to))
            };
            let echo = lengths.iter().rev().map(|length| at + length).find(|to| is_code(to) && alone(to));
            echoes.extend(echo.map(|to| at..to));
            at = echo.unwrap_or(at + 1);
        }
    }
    echoes
}

/// The text with each of these ranges replaced by [`REDACTED`].
pub(crate) fn replace(text: &str, ranges: &[Range<usize>]) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut at = 0;
    for range in ranges {
        shown.push_str(&text[at..range.start]);
        shown.push_str(REDACTED);
        at = range.end;
    }
    shown.push_str(&text[at..]);
    shown
}

/// Maps a range in the text from which `found` was redacted back to the original text.
fn in_original(range: Range<usize>, found: &[Range<usize>]) -> Range<usize> {
    let (mut kept, mut shown) = (0, 0);
    for earlier in found {
        let next = shown + (earlier.start - kept);
        if range.start < next {
            break;
        }
        (kept, shown) = (earlier.end, next + REDACTED.len());
    }
    range.start - shown + kept..range.end - shown + kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn codes_of_every_shape() {
        for (text, expected) in [
            ("Your code: 482913", "Your code: [code]"),
            ("PIN: 7052, https://a.test/?c=7052x, 17052", "PIN: [code], https://a.test/?c=[code]x, 17052"),
            ("code 482-913, call 0800 123456", "code [code], call 0800 123456"),
            ("Code: 4 8 1 0 2 7", "Code: [code]"),
            ("Code 482913 10 minutes left", "Code [code] 10 minutes left"),
            ("验证码123456,10分钟内有效", "验证码[code],10分钟内有效"),
            ("رمز ٧٢-٠٤-٨٨", "رمز [code]"),
            ("認証番号 ０６４８２９", "認証番号 [code]"),
            ("OTP ४८२९१३", "OTP [code]"),
            ("OTP482913", "OTP[code]"),
            ("G-482913 para confirmar", "[code] para confirmar"),
            ("code 4\u{200b}82\u{200b}1", "code [code]"),
            ("code 4\u{fe0f}\u{20e3}8\u{fe0f}\u{20e3}2\u{fe0f}\u{20e3}1\u{fe0f}\u{20e3}", "code [code]"),
            ("pickup code X4T-9PL", "pickup code [code]"),
            ("Code: KXTQPL", "Code: [code]"),
            ("@a.example #482913", "@a.example #[code]"),
            ("co\u{301}digo 482913", "co\u{301}digo [code]"),
            ("https://a.example/?code=482913&x=1", "https://a.example/?code=[code]&x=1"),
            ("https://a.example/#token=Zp81Lq40", "https://a.example/#token=[code]"),
            ("Code: 843 M2K", "Code: [code]"),
            ("PIN1: 0934, PUK1: 68214750", "PIN1: [code], PUK1: [code]"),
            ("door code ④⑧①⓪", "door code [code]"),
            ("code 4·8·2·1", "code [code]"),
            ("the code is four eight two one", "the code is [code]"),
        ] {
            assert_eq!(redact(text), expected);
        }
    }

    #[test]
    fn what_is_no_code_stays() {
        for text in [
            "",
            "482913",
            "[code]",
            "Code: WORDS",
            "Password changed on 12-03-2025 at 1152",
            "code sent to +44 7700 900321",
            "code (415) 555-0143",
            "code xx8831 *8831 …8831 8831**",
            "code 4.50, 1,299.00, 12:30, 2025-06-14, 2024-2025",
            "code 1299 €, $1299, 1299 %",
            "zip code 90210, Fehlercode 4031, código postal 28013, 优惠码 SAVE20",
            "mail code4821@a.example or see a.example/4821",
            "Pin 2026 on your calendar",
            "You used 14072 tokens this month, limit 100000",
            "Text CODE to 82000",
            "Valid for 10 days: 2500 points",
            "KL-1023 will depart from gate 12",
            "Nobody knows why 7400 fish died",
            "Your login code is here\nPaul: 482913 steps",
            "Your login code\nOrder: 482913",
            "Ideas for the weekend\nPaul: 482913",
            "2 for 1 with code PIZZA22",
        ] {
            assert_eq!(redact(text), text);
        }
    }

    #[test]
    fn a_password_may_hold_small_letters_and_signs() {
        for (text, expected) in [
            ("wifi: Barn, password otter-lantern-88.", "wifi: Barn, password [code]."),
            (
                "Your temporary password for the portal is Vt9mRq2x.",
                "Your temporary password for the portal is [code].",
            ),
            ("Wifi: Barn, key goose4417", "Wifi: Barn, key [code]"),
            ("pass 77biangon", "pass [code]"),
            (
                "We reset your password. Your new one is: k9Lm-22xQ",
                "We reset your password. Your new one is: [code]",
            ),
            ("user: jan4471, password: Birch_4408", "user: jan4471, password: [code]"),
            (
                "Sua senha provisória de acesso ao portal é Xk29plm7.",
                "Sua senha provisória de acesso ao portal é [code].",
            ),
            ("رمز موقت شما برای ورود Bw46-kz9t است", "رمز موقت شما برای ورود [code] است"),
            ("Müvəqqəti şifrəniz Kx29pl7-dir.", "Müvəqqəti şifrəniz [code]-dir."),
        ] {
            assert_eq!(redact(text), expected);
        }
        for text in [
            "Password reset for office365, see app2.example/login",
            "Your password for user jan4471 was changed",
            "Boarding pass for LX2291",
            "Use code welcome15 at checkout for 15 % off",
            "Your tracking code is Hk38mz92",
            "Password changed – Galaxy24ultra",
        ] {
            assert_eq!(redact(text), text);
        }
    }

    #[test]
    fn a_lock_may_have_a_code_without_a_name() {
        for (text, expected) in [
            (
                "Lockbox is left of the meter, 3902, then pull",
                "Lockbox is left of the meter, [code], then pull",
            ),
            ("gate number changed, now 4826", "gate number changed, now [code]"),
            ("The back gate opens with 6602", "The back gate opens with [code]"),
            ("Die Haustür ist seit gestern 7714", "Die Haustür ist seit gestern [code]"),
            ("Show 55 81 20 at the counter", "Show [code] at the counter"),
            ("interfonul de la scara e 27C4419, etajul 5", "interfonul de la scara e [code], etajul 5"),
            ("El candado de la bici 9384", "El candado de la bici [code]"),
            ("Nummer fürs Schlüsselkästchen: 5174", "Nummer fürs Schlüsselkästchen: [code]"),
            ("तिजोरी का नंबर 5174 है", "तिजोरी का नंबर [code] है"),
            ("Yung padlock ng gate 3058", "Yung padlock ng gate [code]"),
            ("رقم باب العمارة السري 3719 والشقة", "رقم باب العمارة السري [code] والشقة"),
        ] {
            assert_eq!(redact(text), expected);
        }
        for text in [
            "The museum opens with 3550 exhibits",
            "The door company changed its price, now 2450",
            "Gate changed, now 4500 people inside",
            "En cas de doute, composez le 3955",
            "Chiudi porta e cancello e 4471 chiamate perse",
            "The front door number is 1204, gate 4471",
            "האינטרקום לא עובד, קריאה 55817",
            "رقم الطريق السريع 4471",
            "Startnummer 4471, Wohnung 1204, Alarm um 0645",
        ] {
            assert_eq!(redact(text), text);
        }
    }

    #[test]
    fn digits_may_stand_in_uneven_groups_where_a_code_is_named() {
        for (text, expected) in [
            (
                "Kód pro platbu 1 249 Kč u ALZA.CZ je 850 2714. Nikomu ho nesdělujte.",
                "Kód pro platbu 1 249 Kč u ALZA.CZ je [code]. Nikomu ho nesdělujte.",
            ),
            ("Use 850 2714 as your login code", "Use [code] as your login code"),
            ("Code 48.29.73 for your login", "Code [code] for your login"),
        ] {
            assert_eq!(redact(text), expected);
        }
        for text in [
            "Your code has been sent. Support is 850 2714.",
            "The code was sent, our number is 850 2714.",
            "Dial 850 2714 for your code",
            "Ihr Code gilt bis 12.11.26",
        ] {
            assert_eq!(redact(text), text);
        }
    }

    #[test]
    fn a_key_may_be_a_code() {
        for (text, expected) in [
            ("Your M-PESA start key is 639174.", "Your M-PESA start key is [code]."),
            ("Ключ за активиране: 4827-1190", "Ключ за активиране: [code]"),
            ("Wifi Barn, clé sécurité lemonTree42", "Wifi Barn, clé sécurité [code]"),
        ] {
            assert_eq!(redact(text), expected);
        }
        for text in ["Key fob 4471 has been deactivated", "Número de confirmação 482913, quarto 1204"] {
            assert_eq!(redact(text), text);
        }
    }

    #[test]
    fn a_code_may_have_an_ending() {
        for (text, expected) in [
            ("PUK numarası 58203917'dir.", "PUK numarası [code]'dir."),
            ("Doğrulama kodunuz 618204dür.", "Doğrulama kodunuz [code]dür."),
            ("A kapukód 4829-es lett.", "A kapukód [code]-es lett."),
            ("인증번호 482913번으로 찾아가세요.", "인증번호 [code]번으로 찾아가세요."),
        ] {
            assert_eq!(redact(text), expected);
        }
    }

    #[test]
    fn a_year_of_any_calendar_stays() {
        for text in [
            "کد YALDA20 تا پایان آذر ۱۴۰۴",
            "رمز کارت شما در تاریخ ۱۴۰۴-۰۹-۳۰ تغییر کرد",
            "เปลี่ยนรหัส PIN เมื่อปี พ.ศ. 2567",
            "הקוד שונה בתשרי 5786",
            "Your password expires in December 2027.",
        ] {
            assert_eq!(redact(text), text);
        }
        assert_eq!(redact("رمز کارت: ۱۳۸۵"), "رمز کارت: [code]");
        assert_eq!(redact("Your March code: 2027"), "Your March code: [code]");
    }

    #[test]
    fn each_name_has_one_number() {
        for (text, expected) in [
            ("code 80462, desk 2207", "code [code], desk 2207"),
            ("Code for room 1204: 4821", "Code for room 1204: [code]"),
            ("code for order number 55512 is 4821", "code for order number 55512 is [code]"),
            ("code 2468 and 1350", "code [code] and [code]"),
            ("code 2468, 4821 is the PIN", "code [code], [code] is the PIN"),
        ] {
            assert_eq!(redact(text), expected);
        }
    }

    #[test]
    fn a_name_may_be_short_far_or_in_another_sentence() {
        for (text, expected) in [
            ("Cod. autorizz. 712 665 per bonifico", "Cod. autorizz. [code] per bonifico"),
            ("Yr verif. code: 70412", "Yr verif. code: [code]"),
            ("Zugangscode Praxis Dr. Weber Video: K7M2XP", "Zugangscode Praxis Dr. Weber Video: [code]"),
            ("Sicherheitsnummer 55291", "Sicherheitsnummer [code]"),
            ("Clé d'activation : 8H2K-9QLM", "Clé d'activation : [code]"),
            (
                "Keep this: 648201. It is the code for J SMITH.",
                "Keep this: [code]. It is the code for J SMITH.",
            ),
            ("Your code is here! 730118", "Your code is here! [code]"),
            ("We shall want a PIN. Yours: 2718", "We shall want a PIN. Yours: [code]"),
            ("Your login code\n\nPaul: 482913", "Your login code\n\nPaul: [code]"),
        ] {
            assert_eq!(redact(text), expected);
        }
    }

    #[test]
    fn a_code_may_have_no_name() {
        for (text, expected) in [
            ("FB-38291 will confirm your number", "[code] will confirm your number"),
            ("Do not tell anybody: 771 204", "Do not tell anybody: [code]"),
            ("[Kestrel] 620481 (valid 3 mins)", "[Kestrel] [code] (valid 3 mins)"),
            ("Tell the courier 5528", "Tell the courier [code]"),
            ("Teclea 4417 en el panel", "Teclea [code] en el panel"),
            ("The padlock is 3612", "The padlock is [code]"),
            ("gym door's 2244# now", "gym door's [code]# now"),
            ("Guest Wi-Fi, key 83920177", "Guest Wi-Fi, key [code]"),
        ] {
            assert_eq!(redact(text), expected);
        }
    }

    #[test]
    fn a_code_is_one_wherever_it_stands() {
        assert_eq!(
            redact("482913 here. Code: 482-913, a.example/482913"),
            "[code] here. Code: [code], a.example/[code]"
        );
    }

    #[test]
    fn long_text_of_one_kind_ends() {
        for part in [
            "code 4821, ",
            "1 ",
            "1-",
            "(4821) ",
            "code:\n",
            "x: 48213. code ",
            "lock is 4821 valid 10 min ",
            "verif. 4821 Dr. ",
            "密碼",
            "zip code de la ",
            "4821 box ",
            "A1-",
            ").(",
            "password ab12",
            "password a1-",
            "pass word1 for ",
            "code K2M ",
            "four ",
            "4·",
            "gate now 4826, ",
            "opens with ",
            "code – ab12cd34 ",
            "March 2026 ",
            "4821dir",
        ] {
            let once = redact(&part.repeat(20_000 / part.len()));
            assert_eq!(redact(&once), once, "{part}");
        }
    }

    /// Words and signs that play a role.
    #[rustfmt::skip]
    const WORDS: &[&str] = &[
        "code", "Code:", "is", "PIN", "OTP", "zip", "order", "room", "door", "and", "at", "enter", "€",
        "(", ")", "\n", ". ", ", ", "\"", "[code]", "验证码", "인증번호", "رمز", "@a.example #", "#", "*",
        "login", "min", "de la", "valid 10", "nobody", "key", "security", "lock", "Dr.", "verif.",
        "courier", "tokens", "pin", "send", "to", "password", "wifi", "pass ab12cd", "opens with",
        "gate", "now", "changed", "four", "basket", "doubt",
    ];

    /// Words and numbers as they occur in messages, in any order.
    fn message() -> impl Strategy<Value = String> {
        let words = proptest::sample::select(WORDS);
        let numbers =
            proptest::string::string_regex("[0-9]{1,8}|[0-9]{2,3}[- ][0-9]{2,3}|[A-Z0-9]{4,8}|[٠-٩]{4,6}");
        let part = prop_oneof![
            words.prop_map(str::to_owned),
            numbers.unwrap(),
            any::<char>().prop_map(String::from)
        ];
        let blanks = proptest::sample::select(vec!["", " ", " ", " "]);
        proptest::collection::vec((part, blanks), 0..24)
            .prop_map(|parts| parts.into_iter().map(|(part, blank)| part + blank).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn redacting_twice_changes_nothing_more(text in message()) {
            let once = redact(&text);
            prop_assert_eq!(redact(&once), once);
        }

        #[test]
        fn nothing_outside_of_the_codes_changes(text in message()) {
            let found = find(&text);
            prop_assert!(found.windows(2).all(|pair| pair[0].end <= pair[1].start));
            let mut kept = Vec::new();
            let mut at = 0;
            for range in &found {
                kept.push(&text[at..range.start]);
                at = range.end;
            }
            kept.push(&text[at..]);
            prop_assert_eq!(redact(&text), kept.join(REDACTED));
        }

        #[test]
        fn any_text_is_read(text in any::<String>()) {
            let once = redact(&text);
            prop_assert_eq!(redact(&once), once);
        }
    }
}
