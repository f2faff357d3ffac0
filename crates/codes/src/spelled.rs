//! The names of digits, by which people read a code aloud.

/// The names of the digits from zero to nine, in the languages that are most likely to spell them out.
#[rustfmt::skip]
const NAMES: [&[&str]; 10] = [
    &["zero", "oh", "null", "zéro", "cero", "nul", "noll", "sıfır", "sifir", "ноль", "нуль", "kosong",
      "nol", "صفر", "शून्य", "ज़ीरो"],
    &["one", "eins", "un", "uno", "um", "een", "één", "ett", "jeden", "bir", "один", "satu", "واحد",
      "एक"],
    &["two", "zwei", "zwo", "deux", "dos", "due", "dois", "twee", "två", "dwa", "iki", "два", "dua",
      "اثنين", "اثنان", "दो"],
    &["three", "drei", "trois", "tres", "tre", "três", "drie", "trzy", "üç", "uc", "три", "tiga",
      "ثلاثة", "تلاتة", "तीन"],
    &["four", "vier", "quatre", "cuatro", "quattro", "quatro", "fyra", "cztery", "dört", "dort",
      "четыре", "чотири", "empat", "أربعة", "اربعة", "चार"],
    &["five", "fünf", "cinq", "cinco", "cinque", "vijf", "fem", "pięć", "beş", "bes", "пять", "п'ять",
      "lima", "خمسة", "पाँच", "पांच"],
    &["six", "sechs", "seis", "meia", "sei", "zes", "sex", "sześć", "altı", "alti", "шесть", "шість",
      "enam", "ستة", "छह", "छः"],
    &["seven", "sieben", "sept", "siete", "sette", "sete", "zeven", "sju", "siedem", "yedi", "семь",
      "сім", "tujuh", "سبعة", "सात"],
    &["eight", "acht", "huit", "ocho", "otto", "oito", "åtta", "osiem", "sekiz", "восемь", "вісім",
      "delapan", "lapan", "ثمانية", "تمانية", "आठ"],
    &["nine", "neun", "neuf", "nueve", "nove", "negen", "nio", "dziewięć", "dokuz", "девять", "дев'ять",
      "sembilan", "تسعة", "नौ"],
];

/// The digit that a word names.
pub(crate) fn digit_name(word: &str) -> Option<char> {
    // All names are within this range of bytes, so other words are skipped before they are lowercased.
    if !(2..=24).contains(&word.len()) {
        return None;
    }
    let word = word.to_lowercase();
    let value = NAMES.iter().position(|names| names.contains(&word.as_str()))?;
    char::from_digit(u32::try_from(value).ok()?, 10)
}

/// How many digits a word spells: one for a digit's name, or as many as it has Chinese numerals.
pub(crate) fn digits_spelled(word: &str) -> usize {
    const NUMERALS: &str = "零〇一二三四五六七八九壹贰貳叁參肆伍陆陸柒捌玖";
    let numerals = word.chars().take(9).count();
    if word.chars().take(9).all(|c| NUMERALS.contains(c)) {
        numerals
    } else {
        usize::from(digit_name(word).is_some())
    }
}
