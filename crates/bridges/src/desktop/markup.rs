//! Removes the markup from a notification's body. Pure.
//!
//! Desktops allow a few tags and entities, and many apps do not escape their text. So only what is certainly markup
//! is treated as such; everything else is kept as written.

/// The tags that may occur in a body: those of the specification, and others that apps use.
const TAGS: &[&str] =
    &["a", "b", "big", "br", "em", "font", "i", "img", "p", "s", "small", "span", "strong", "tt", "u"];
/// Anything longer than this, in bytes, is not taken for a tag.
const TAG_LIMIT: usize = 2_000;

/// The text as it would be displayed.
pub(super) fn stripped(body: &str) -> String {
    let mut text = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = rest.find(['<', '&']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let (shown, length) = tag(rest).or_else(|| entity(rest)).unwrap_or_else(|| (rest[..1].to_owned(), 1));
        text.push_str(&shown);
        rest = &rest[length..];
    }
    text.push_str(rest);
    text
}

/// The replacement for a tag at the start of `text`, and the tag's length.
fn tag(text: &str) -> Option<(String, usize)> {
    let inner = text.strip_prefix('<')?;
    let end = inner.find('>').filter(|end| *end <= TAG_LIMIT)?;
    let inner = &inner[..end];
    let name: String =
        inner.trim_start_matches('/').chars().take_while(char::is_ascii_alphanumeric).collect();
    let name = name.to_ascii_lowercase();
    let shown = match name.as_str() {
        "br" | "p" => "\n".to_owned(),
        "img" => attribute(inner, "alt").map(decoded).unwrap_or_default(),
        known if TAGS.contains(&known) => String::new(),
        _ => return None,
    };
    Some((shown, end + 2))
}

/// The value of `name="…"` in a tag.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let (_, after) = tag.split_once(&format!(" {name}="))?;
    let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    after[1..].split(quote).next()
}

fn decoded(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        shown.push_str(&rest[..at]);
        rest = &rest[at..];
        let (character, length) = entity(rest).unwrap_or_else(|| ("&".to_owned(), 1));
        shown.push_str(&character);
        rest = &rest[length..];
    }
    shown + rest
}

/// The replacement for an entity at the start of `text`, and the entity's length.
fn entity(text: &str) -> Option<(String, usize)> {
    let inner = text.strip_prefix('&')?;
    let end = inner.find(';').filter(|end| (1..=8).contains(end))?;
    let name = &inner[..end];
    let number = |digits: &str, radix| u32::from_str_radix(digits, radix).ok().and_then(char::from_u32);
    let character = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        _ => match name.strip_prefix('#')? {
            hexadecimal if hexadecimal.starts_with(['x', 'X']) => number(&hexadecimal[1..], 16)?,
            decimal => number(decimal, 10)?,
        },
    };
    Some((character.to_string(), end + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_certainly_markup_goes() {
        for (body, expected) in [
            ("plain", "plain"),
            ("<b>bold</b> and <i>so <u>on</u></i>", "bold and so on"),
            ("<a href=\"https://x.test/?a=1&amp;b\">link</a>", "link"),
            ("see <img src=\"x.png\" alt=\"a &lt;cat&gt;\"/>!", "see a <cat>!"),
            ("one<br/>two<BR>three", "one\ntwo\nthree"),
            ("a &lt;b&gt; &amp;amp; &quot;c&quot; &#39;d&#x27; &apos;", "a <b> &amp; \"c\" 'd' '"),
            ("if a < b && b > c", "if a < b && b > c"),
            ("Vec<String> & <made-up>", "Vec<String> & <made-up>"),
            ("R&D; &nosuch; &#x110000; &", "R&D; &nosuch; &#x110000; &"),
            ("<b unclosed", "<b unclosed"),
            ("ä<b>ö</b>ü & 😀", "äöü & 😀"),
            ("", ""),
        ] {
            assert_eq!(stripped(body), expected, "{body}");
        }
    }

    #[test]
    fn anything_can_be_read() {
        for body in ["<", "&", "<>", "&;", "</", "<img alt=", "<img alt=\"", "&#;", "&#x;", "<é>", "&é;"] {
            assert!(stripped(body).len() <= body.len() + 1, "{body}");
        }
    }
}
