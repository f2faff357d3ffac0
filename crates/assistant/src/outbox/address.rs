//! Parses mail addresses as people and models write them. Pure.
//!
//! Only bare addresses are kept: a name in front of one is chosen freely and could pass for another person.

/// The most addresses that a mail goes to.
pub const MOST: usize = 50;
/// The most characters of an address, and of the part before the `@`.
const LONGEST: usize = 254;
const LONGEST_LOCAL: usize = 64;

/// Why a text is not a list of addresses. `Display` says it to a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadAddress {
    #[error("An email address must not contain line breaks or control characters.")]
    Control,
    #[error("\"{0}\" is not an email address. An address looks like alice@example.org; ask the user for it.")]
    Malformed(String),
    #[error("\"{0}\" cannot be used: only Latin letters without accents can stand before the @.")]
    Unusual(String),
    #[error("There are more than {MOST} addresses.")]
    TooMany,
}

/// The addresses in a list that commas, semicolons or line breaks separate, each once, in their order. Names in front of
/// addresses are left out.
pub fn list(typed: &str) -> Result<Vec<String>, BadAddress> {
    let mut found: Vec<String> = vec![];
    for part in parts(typed) {
        let address = one(&part)?;
        if !found.iter().any(|known| same(known, &address)) {
            found.push(address);
        }
    }
    if found.len() > MOST { Err(BadAddress::TooMany) } else { Ok(found) }
}

/// Splits at separators outside of quotes and angle brackets.
fn parts(typed: &str) -> Vec<String> {
    let (mut parts, mut part, mut quoted, mut angle) = (vec![], String::new(), false, false);
    for c in typed.chars() {
        match c {
            '"' => quoted = !quoted,
            '<' if !quoted => angle = true,
            '>' if !quoted => angle = false,
            ',' | ';' | '\n' | '\r' if !quoted && !angle => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            _ => {}
        }
        part.push(c);
    }
    parts.push(part);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// The bare address in a text such as `Alice <alice@example.org>`. The domain is put into lower case.
pub fn one(typed: &str) -> Result<String, BadAddress> {
    if typed.trim().chars().any(char::is_control) {
        return Err(BadAddress::Control);
    }
    let typed = typed.trim();
    let malformed = || BadAddress::Malformed(typed.chars().take(80).collect());
    let bare = match (typed.rfind('<'), typed.strip_suffix('>')) {
        (Some(begin), Some(_)) => typed[begin + 1..typed.len() - 1].trim(),
        (None, None) => typed,
        _ => return Err(malformed()),
    };
    let (local, domain) = bare.rsplit_once('@').ok_or_else(malformed)?;
    if !local.is_ascii() {
        return Err(BadAddress::Unusual(bare.chars().take(80).collect()));
    }
    let fits = local.len() <= LONGEST_LOCAL && bare.chars().count() <= LONGEST;
    if !(fits && is_local(local) && ascii_domain(domain).is_some()) {
        return Err(malformed());
    }
    Ok(format!("{local}@{}", domain.to_lowercase()))
}

/// Whether this can stand before the `@` without quotes.
fn is_local(local: &str) -> bool {
    let atom = |atom: &str| {
        !atom.is_empty()
            && atom.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte))
    };
    local.split('.').all(atom)
}

/// The domain as servers spell it, which is different if it has letters beyond ASCII.
fn ascii_domain(domain: &str) -> Option<String> {
    let ascii = idna::domain_to_ascii_cow(domain.as_bytes(), idna::AsciiDenyList::URL).ok()?;
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    (ascii.len() <= 253 && ascii.split('.').all(label)).then(|| ascii.into_owned())
}

/// The address as servers spell it.
pub fn ascii(address: &str) -> String {
    match address.rsplit_once('@') {
        Some((local, domain)) => {
            let domain = ascii_domain(domain).unwrap_or_else(|| domain.to_owned());
            format!("{local}@{domain}")
        }
        None => address.to_owned(),
    }
}

/// The address as servers spell it, in lower case: the same for every way to write it.
pub fn spelling(written: &str) -> String {
    ascii(written.trim()).to_lowercase()
}

/// Whether both reach the same mailbox, as far as one can tell: nearly no server distinguishes capital letters.
pub fn same(one: &str, other: &str) -> bool {
    spelling(one) == spelling(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_however_they_are_written() {
        for (typed, expected) in [
            ("alice@example.org", vec!["alice@example.org"]),
            (" Alice@Example.ORG ", vec!["Alice@example.org"]),
            ("Alice Liddell <alice@example.org>", vec!["alice@example.org"]),
            ("\"Liddell, Alice\" <alice@example.org>, bob@x.test", vec!["alice@example.org", "bob@x.test"]),
            ("a@x.test; b@x.test\nc@x.test", vec!["a@x.test", "b@x.test", "c@x.test"]),
            ("a@x.test, A@X.test, ,", vec!["a@x.test"]),
            ("o'hara+tag@box", vec!["o'hara+tag@box"]),
            ("a@bücher.example", vec!["a@bücher.example"]),
            ("", vec![]),
        ] {
            assert_eq!(list(typed).unwrap(), expected, "{typed}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for typed in [
            "alice",
            "@example.org",
            "alice@",
            "alice@@example.org",
            "al ice@example.org",
            "alice@exa mple.org",
            "alice@example..org",
            "alice@-example.org",
            ".alice@example.org",
            "<alice@example.org",
            "alice@example.org>",
            "Alice <alice@example.org> x",
            "alice@example.org\0",
            "alice@[127.0.0.1]",
            "\"a b\"@example.org",
            "ålice@example.org",
        ] {
            assert!(one(typed).is_err(), "{typed}");
        }
        assert_eq!(list("a@x.test\r\nBcc: b@y.test"), Err(BadAddress::Malformed("Bcc: b@y.test".to_owned())));
        assert_eq!(one("a@x.test\nb"), Err(BadAddress::Control));
        assert!(one(&format!("{}@x.test", "a".repeat(65))).is_err());
        let many: Vec<String> = (0..51).map(|n| format!("a{n}@x.test")).collect();
        assert_eq!(list(&many.join(",")), Err(BadAddress::TooMany));
    }

    #[test]
    fn servers_spell_a_domain_in_ascii() {
        assert_eq!(ascii("a@bücher.example"), "a@xn--bcher-kva.example");
        assert_eq!(ascii("a@example.org"), "a@example.org");
        assert!(same("a@Bücher.example", "A@xn--bcher-kva.example"));
        assert!(!same("a@example.org", "b@example.org"));
    }
}
