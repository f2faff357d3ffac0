//! How Kai signs in, and what a refusal means. Pure.

use kai_assistant::email::port::Why;
use kai_assistant::untrusted::Untrusted;
use kai_llm::Encoded;

/// What proves who the user is.
pub(super) enum Proof {
    Password(String),
    /// A token for `XOAUTH2`.
    Token(String),
}

/// The first message of `PLAIN`.
pub(super) fn plain(user: &str, password: &str) -> String {
    Encoded::of(format!("\0{user}\0{password}").as_bytes()).as_str().to_owned()
}

/// An answer of `LOGIN`, which asks for the name and then for the password.
pub(super) fn encoded(text: &str) -> String {
    Encoded::of(text.as_bytes()).as_str().to_owned()
}

/// The first message of `XOAUTH2`.
pub(super) fn xoauth2(user: &str, token: &str) -> String {
    encoded(&format!("user={user}\u{1}auth=Bearer {token}\u{1}\u{1}"))
}

/// The token that a command printed: its first line that is not empty.
pub(super) fn token(printed: &str) -> Option<String> {
    let line = printed.lines().map(str::trim).find(|line| !line.is_empty())?;
    let is_token = line.bytes().all(|byte| byte.is_ascii_graphic());
    is_token.then(|| line.to_owned())
}

/// Where the user's own password never works.
const APP_PASSWORD_HOSTS: [&str; 9] = [
    "gmail.com",
    "googlemail.com",
    "mail.yahoo.com",
    "mail.yahoo.co.jp",
    "mail.me.com",
    "aol.com",
    "fastmail.com",
    "messagingengine.com",
    "zoho.com",
];

/// What providers say when they want a password that is made for one program.
const APP_PASSWORD_WORDS: [&str; 9] = [
    "application-specific password",
    "application specific password",
    "app-specific password",
    "app password",
    "app-password",
    "anwendungsspezifisches passwort",
    "app-passwort",
    "two-factor",
    "2-step verification",
];

const IMAP_OFF_WORDS: [&str; 9] = [
    "not enabled for imap",
    "imap access is disabled",
    "imap access disabled",
    "imap is disabled",
    "imap disabled",
    "imap service is disabled",
    "imap is not enabled",
    "enable imap",
    "imap deaktiviert",
];

/// What a refusal of IMAP to sign in means. `code` is what stood in square brackets.
pub(super) fn refused_by_imap(host: &str, code: &str, words: &str) -> Why {
    let said = Untrusted::new(words);
    let has = |list: &[&str]| contains(code, list) || contains(words, list);
    let later = ["UNAVAILABLE", "INUSE", "LIMIT", "SERVERBUG", "CONTACTADMIN", "PRIVACYREQUIRED"];
    if has(&IMAP_OFF_WORDS) {
        Why::ImapOff(said)
    } else if has(&APP_PASSWORD_WORDS) {
        Why::AppPassword(said)
    } else if later.iter().any(|word| code.eq_ignore_ascii_case(word)) || is_later(words) {
        Why::Refused(said)
    } else {
        password(host, said)
    }
}

/// What a refusal of SMTP to sign in means.
pub(super) fn refused_by_smtp(host: &str, code: u16, words: &str) -> Why {
    let said = Untrusted::new(words);
    if contains(words, &APP_PASSWORD_WORDS) {
        Why::AppPassword(said)
    } else if matches!(code, 530 | 534 | 535) && !is_later(words) {
        password(host, said)
    } else {
        Why::Refused(said)
    }
}

fn password(host: &str, said: Untrusted) -> Why {
    let host = host.to_ascii_lowercase();
    let is_of = |domain: &str| host == domain || host.ends_with(&format!(".{domain}"));
    if APP_PASSWORD_HOSTS.iter().any(|domain| is_of(domain)) {
        Why::AppPassword(said)
    } else {
        Why::WrongPassword(said)
    }
}

fn is_later(words: &str) -> bool {
    contains(words, &["too many", "temporar", "try again later", "rate limit", "unavailable", "is disabled"])
}

fn contains(text: &str, words: &[&str]) -> bool {
    let text = text.to_lowercase();
    words.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_spelled_as_the_rules_say() {
        assert_eq!(plain("tim", "tanstaaftanstaaf"), "AHRpbQB0YW5zdGFhZnRhbnN0YWFm");
        let expected = "dXNlcj1zb21ldXNlckBleGFtcGxlLmNvbQFhdXRoPUJlYXJlciB5YTI5LnZGOWRmdDRxbVRjMk52YjNSbGNrQmhkSFJoZG1semRHRXVZMjl0Q2cBAQ==";
        let token = "ya29.vF9dft4qmTc2Nvb3RlckBhdHRhdmlzdGEuY29tCg";
        assert_eq!(xoauth2("someuser@example.com", token), expected);
    }

    #[test]
    fn a_token_is_the_first_line() {
        for (printed, expected) in [
            ("ya29.a\n", Some("ya29.a")),
            ("\n  ya29.a \nmore\n", Some("ya29.a")),
            ("", None),
            ("\n\n", None),
            ("two words\n", None),
            ("a\u{1}b\n", None),
            ("tökén\n", None),
        ] {
            assert_eq!(token(printed).as_deref(), expected, "{printed:?}");
        }
    }

    #[test]
    fn refusals_of_imap_are_told_apart() {
        let (wrong, app, off, other) = ("wrong", "app", "off", "other");
        for (host, code, words, expected) in [
            ("mail.example.org", "AUTHENTICATIONFAILED", "Authentication failed.", wrong),
            ("mail.example.org", "", "LOGIN failed.", wrong),
            ("imap.gmail.com", "AUTHENTICATIONFAILED", "Invalid credentials (Failure)", app),
            ("imap.gmail.com", "ALERT", "Application-specific password required: https://…", app),
            ("imap.gmail.com", "ALERT", "Your account is not enabled for IMAP use. Please visit …", off),
            ("imap.gmail.com", "ALERT", "Too many simultaneous connections. (Failure)", other),
            ("imap.mail.yahoo.com", "AUTHENTICATIONFAILED", "LOGIN Invalid credentials", app),
            ("imap.mail.me.com", "AUTHENTICATIONFAILED", "Authentication Failed", app),
            (
                "imap.fastmail.com",
                "AUTHENTICATIONFAILED",
                "Incorrect username, password or access token",
                app,
            ),
            ("notgmail.com", "AUTHENTICATIONFAILED", "Invalid credentials", wrong),
            ("imap.gmx.net", "", "Error in IMAP command received by server: IMAP access disabled", off),
            ("mail.example.org", "UNAVAILABLE", "Temporary authentication failure.", other),
        ] {
            let found = match refused_by_imap(host, code, words) {
                Why::WrongPassword(_) => wrong,
                Why::AppPassword(_) => app,
                Why::ImapOff(_) => off,
                Why::Refused(_) => other,
                why => panic!("{why:?}"),
            };
            assert_eq!(found, expected, "{host} {words}");
        }
    }

    #[test]
    fn refusals_of_smtp_are_told_apart() {
        for (host, code, words, expected) in [
            ("mail.example.org", 535, "5.7.8 Error: authentication failed", "wrong"),
            ("smtp.gmail.com", 535, "5.7.8 Username and Password not accepted.", "app"),
            ("smtp.gmail.com", 534, "5.7.9 Application-specific password required.", "app"),
            ("mail.example.org", 454, "4.7.0 Temporary authentication failure", "other"),
            (
                "smtp.office365.com",
                535,
                "5.7.139 Authentication unsuccessful, basic authentication is disabled.",
                "other",
            ),
            ("mail.example.org", 503, "AUTH command used when not advertised", "other"),
        ] {
            let found = match refused_by_smtp(host, code, words) {
                Why::WrongPassword(_) => "wrong",
                Why::AppPassword(_) => "app",
                Why::Refused(_) => "other",
                why => panic!("{why:?}"),
            };
            assert_eq!(found, expected, "{host} {words}");
        }
    }
}
