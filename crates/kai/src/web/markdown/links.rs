//! Where the links of a text lead: which are shown as links, what is shown beside them, and which hosts imitate others.

use std::ops::Range;

use url::{Host, Url};

/// A link that can be followed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) href: String,
    /// Where it leads, unless its text says so already.
    pub(super) beside: Option<String>,
    /// It seems to lead somewhere else than it does.
    pub(super) imitates: bool,
}

/// Where a link leads; none if nobody should follow it, such as a `javascript:` link or one within this page.
pub(super) fn target(address: &str, text: &str) -> Option<Target> {
    let url = Url::parse(address.trim()).ok()?;
    match url.scheme() {
        "http" | "https" => web(&url, text.trim()),
        "mailto" => Some(mail(&url, text)),
        _ => None,
    }
}

/// How the address of the page begins that asks before a link is followed.
pub(super) const ASK: &str = "/leave?to=";

/// The address of that page for a link.
pub(super) fn ask_first(href: &str) -> String {
    let encoded: String = form_urlencoded::byte_serialize(href.as_bytes()).collect();
    format!("{ASK}{encoded}")
}

fn mail(url: &Url, text: &str) -> Target {
    let to = url.path();
    let beside = (!to.is_empty() && !text.contains(to)).then(|| to.to_owned());
    Target { href: url.to_string(), beside, imitates: false }
}

fn web(url: &Url, text: &str) -> Option<Target> {
    let host = shown_host(url)?;
    let said = said_host(text);
    let named = said.as_deref().is_some_and(|said| said == bare(&host));
    let other = said.is_some_and(|said| !same_owner(&said, bare(&host)));
    let imitates = other || !url.username().is_empty() || url.password().is_some() || is_disguised(&host);
    let beside = (!named || imitates).then_some(host);
    Some(Target { href: url.to_string(), beside, imitates })
}

/// The host of a web address as people write it: `münchen.de` and not its encoding, except where its letters imitate
/// others. Then the encoding shows that something is wrong.
pub(in super::super) fn shown_host(url: &Url) -> Option<String> {
    let Host::Domain(encoded) = url.host()? else { return url.host_str().map(str::to_owned) };
    let (decoded, valid) = idna::domain_to_unicode(encoded);
    let plain = valid.is_ok() && !decoded.split('.').any(has_lookalikes);
    Some(if plain { decoded } else { encoded.to_owned() })
}

fn bare(host: &str) -> &str {
    host.strip_prefix("www.").unwrap_or(host)
}

/// The host that a link's text names, if the text reads like an address.
fn said_host(text: &str) -> Option<String> {
    if text.is_empty() || text.contains(char::is_whitespace) {
        return None;
    }
    let with_scheme = text.starts_with("http://") || text.starts_with("https://");
    let url = if with_scheme { Url::parse(text) } else { Url::parse(&format!("https://{text}")) }.ok()?;
    let host = shown_host(&url)?;
    let reads_like_one = with_scheme || text.starts_with("www.") || has_known_ending(&host);
    reads_like_one.then(|| bare(&host).to_owned())
}

/// The endings that make a word with a dot read like an address. `README.md` and `Node.js` do not.
const ENDINGS: [&str; 22] = [
    "com", "org", "net", "edu", "gov", "info", "bank", "app", "dev", "io", "eu", "de", "at", "ch", "uk",
    "fr", "es", "it", "nl", "us", "ca", "au",
];

fn has_known_ending(host: &str) -> bool {
    host.rsplit_once('.').is_some_and(|(_, ending)| ENDINGS.contains(&ending))
}

/// Does one of the hosts belong to the other, as `docs.example.com` does to `example.com`?
fn same_owner(one: &str, other: &str) -> bool {
    let within = |inner: &str, outer: &str| {
        outer.contains('.')
            && inner.strip_suffix(outer).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    within(one, other) || within(other, one)
}

/// Does the host itself imitate another, by its letters or by naming another host at its beginning?
fn is_disguised(host: &str) -> bool {
    host.split('.').any(|label| label.starts_with("xn--") && decodes_to_lookalikes(label))
        || names_another(host)
}

fn decodes_to_lookalikes(label: &str) -> bool {
    let (decoded, valid) = idna::domain_to_unicode(label);
    valid.is_err() || has_lookalikes(&decoded)
}

/// `paypal.com.evil.test` begins with another host's name. `example.com.au` does not.
fn names_another(host: &str) -> bool {
    let labels: Vec<&str> = host.split('.').collect();
    let last = labels.len().saturating_sub(1);
    labels.iter().enumerate().any(|(at, label)| {
        let of_a_country = at + 1 == last && labels[last].len() == 2;
        at > 0 && at < last && ["com", "net", "org", "gov"].contains(label) && !of_a_country
    })
}

/// Letters of other scripts that look like Latin ones.
const LOOKALIKES: &str = "аеорсухіјѕԁԛԝһкмтвнгпёєӏοαερτυνικχγωɡıɩɑʏᴏꓮꓳ";

/// Could the label be taken for one in plain Latin letters, or does it mix Latin letters with others?
fn has_lookalikes(label: &str) -> bool {
    let mut letters = label.chars().filter(|c| c.is_alphabetic());
    let foreign = |c: char| !c.is_ascii() && !is_latin(c);
    let plain = label.chars().any(|c| c.is_ascii_alphabetic());
    let strange = label.chars().any(|c| c.is_alphabetic() && foreign(c));
    let all_alike = letters.all(|c| c.is_ascii() || LOOKALIKES.contains(c));
    strange && (plain || all_alike) || label.chars().any(|c| LOOKALIKES.contains(c) && is_latin(c))
}

/// Latin letters with marks, as German or French names have them.
fn is_latin(c: char) -> bool {
    matches!(c, '\u{c0}'..='\u{24f}' | '\u{250}'..='\u{2af}' | '\u{1e00}'..='\u{1eff}')
}

/// An address that stands bare in a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bare {
    pub(super) at: Range<usize>,
    pub(super) address: String,
}

/// The web and mail addresses in a text, in order.
pub(super) fn bare_addresses(text: &str) -> Vec<Bare> {
    let mut found = vec![];
    let mut from = 0;
    for word in text.split_inclusive(is_edge) {
        let at = from;
        from += word.len();
        let word = word.trim_end_matches(is_edge);
        if let Some((within, address)) = address_in(word) {
            found.push(Bare { at: at + within.start..at + within.end, address });
        }
    }
    found
}

/// What ends an address: spaces and the signs that no address has.
fn is_edge(c: char) -> bool {
    c.is_whitespace() || matches!(c, '<' | '>' | '"' | '„' | '“' | '”' | '«' | '»' | '`')
}

fn address_in(word: &str) -> Option<(Range<usize>, String)> {
    let start = ["https://", "http://", "www."].iter().filter_map(|begin| word.find(begin)).min();
    let Some(start) = start else { return mail_in(word) };
    // `xhttps://` is no address, `(https://` and `see:https://` are.
    if word[..start].chars().next_back().is_some_and(char::is_alphanumeric) {
        return None;
    }
    let address = trim_end(&word[start..]);
    let whole = if address.starts_with("www.") { format!("https://{address}") } else { address.to_owned() };
    let url = Url::parse(&whole).ok()?;
    let dotted = url.host_str()?.contains('.') || url.host_str()? == "localhost";
    dotted.then(|| (start..start + address.len(), whole))
}

fn mail_in(word: &str) -> Option<(Range<usize>, String)> {
    let lead = word.len() - word.trim_start_matches(|c: char| !c.is_alphanumeric()).len();
    let address = trim_end(&word[lead..]);
    let (name, host) = address.split_once('@')?;
    let good_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "._%+-".contains(c));
    let good_host = host.split('.').count() > 1
        && host
            .split('.')
            .all(|label| !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-'));
    (good_name && good_host).then(|| (lead..lead + address.len(), format!("mailto:{address}")))
}

/// Cuts off what belongs to the sentence and not to the address: a full stop, or a bracket that the address does not
/// open.
fn trim_end(address: &str) -> &str {
    let mut rest = address;
    while let Some(last) = rest.chars().next_back() {
        let unopened = |open: char| rest.matches(open).count() < rest.matches(last).count();
        let belongs = match last {
            ')' => !unopened('('),
            ']' => !unopened('['),
            '}' => !unopened('{'),
            _ => !".,;:!?'*_~’…".contains(last),
        };
        if belongs {
            break;
        }
        rest = &rest[..rest.len() - last.len_utf8()];
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leads(address: &str, text: &str) -> (Option<String>, bool) {
        let target = target(address, text).unwrap();
        (target.beside, target.imitates)
    }

    #[test]
    fn a_link_shows_its_host_unless_its_text_does() {
        for (address, text, beside) in [
            ("https://example.com/a", "here", Some("example.com")),
            ("https://example.com/a", "https://example.com/a", None),
            ("https://www.example.com/a", "example.com", None),
            ("https://docs.example.com/a", "example.com", Some("docs.example.com")),
            ("https://m%C3%BCnchen.de/", "Rathaus", Some("münchen.de")),
            ("https://nodejs.org/", "Node.js", Some("nodejs.org")),
            ("https://git.example/x/README.md", "README.md", Some("git.example")),
            ("http://192.168.1.20:8080/", "the box", Some("192.168.1.20")),
            ("mailto:a@b.test", "write to us", Some("a@b.test")),
            ("mailto:a@b.test", "a@b.test", None),
        ] {
            assert_eq!(leads(address, text), (beside.map(str::to_owned), false), "{text} {address}");
        }
    }

    #[test]
    fn a_host_that_imitates_another_is_noticed() {
        for (address, text, beside) in [
            ("https://evil.test/", "https://bank.com/login", "evil.test"),
            ("https://evil.test/", "bank.com", "evil.test"),
            ("https://bank.com@evil.test/", "here", "evil.test"),
            ("https://bank.com.evil.test/", "here", "bank.com.evil.test"),
            ("https://pаypal.com/", "here", "xn--pypal-4ve.com"),
            ("https://pаypal.com/", "https://pаypal.com/", "xn--pypal-4ve.com"),
            ("https://notexample.com/", "example.com", "notexample.com"),
        ] {
            assert_eq!(leads(address, text), (Some(beside.to_owned()), true), "{text} {address}");
        }
        for honest in
            ["https://example.com.au/", "https://почта.рф/", "https://例え.jp/", "https://münchen.de/"]
        {
            assert!(!target(honest, "here").unwrap().imitates, "{honest}");
        }
    }

    #[test]
    fn dead_links_lead_nowhere() {
        for dead in [
            "javascript:alert(1)",
            "data:text/html,x",
            "/sign-out",
            "#top",
            "file:///etc/passwd",
            "",
            "https://",
        ] {
            assert_eq!(target(dead, "x"), None, "{dead}");
        }
    }

    #[test]
    fn bare_addresses_are_found_and_the_sentence_is_left_alone() {
        for (text, found) in [
            (
                "See https://a.test/x_(y)?z=1, or (www.b.test).",
                vec!["https://a.test/x_(y)?z=1", "https://www.b.test"],
            ),
            ("Write to lena@example.com.", vec!["mailto:lena@example.com"]),
            ("„https://a.test“", vec!["https://a.test"]),
            ("https://a.test/…", vec!["https://a.test/"]),
            ("xhttps://a.test http:// https://nohost @a.test a@b 5.30 a.b", vec![]),
            (
                "http://localhost:8787/ and http://127.0.0.1/",
                vec!["http://localhost:8787/", "http://127.0.0.1/"],
            ),
        ] {
            let addresses: Vec<String> = bare_addresses(text).into_iter().map(|bare| bare.address).collect();
            assert_eq!(addresses, found, "{text}");
        }
        let text = "(see www.b.test).";
        assert_eq!(&text[bare_addresses(text)[0].at.clone()], "www.b.test");
    }
}
