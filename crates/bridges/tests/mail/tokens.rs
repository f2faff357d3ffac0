//! Signs in with a token that a command prints.

use kai_assistant::email::account::{Account, Credentials, Security};
use kai_assistant::email::port::{MailServers, Why};
use kai_bridges::mail::Limits;

use crate::desk::{server, strangers};
use crate::liar::Act::{Hear, Say};
use crate::liar::Liar;
use crate::trouble::at;

/// `user=alice`, `auth=Bearer tok` between control characters.
const PROOF: &str = "dXNlcj1hbGljZQFhdXRoPUJlYXJlciB0b2sBAQ==";

fn with(command: &str, account: Account) -> Account {
    Account { credentials: Credentials::TokenCommand(command.to_owned()), ..account }
}

#[tokio::test]
async fn a_token_signs_in_to_both_servers() {
    for at_once in [true, false] {
        let imap = if at_once {
            vec![
                Say("* OK [CAPABILITY SASL-IR AUTH=XOAUTH2] hi\r\n"),
                Hear,
                Say("k1 OK [CAPABILITY X] in\r\n"),
                Hear,
            ]
        } else {
            let asks = Say("* OK [CAPABILITY AUTH=XOAUTH2] hi\r\n");
            vec![asks, Hear, Say("+ \r\n"), Hear, Say("k1 OK [CAPABILITY X] in\r\n"), Hear]
        };
        let smtp = vec![
            Say("220 hi\r\n"),
            Hear,
            Say("250-hi\r\n250 AUTH XOAUTH2\r\n"),
            Hear,
            Say("235 in\r\n"),
            Hear,
        ];
        let (imap, smtp) = (Liar::playing(imap).await, Liar::playing(smtp).await);
        let account = Account { smtp: server(smtp.port, Security::Plain), ..at(imap.port, Security::Plain) };
        let account = with("echo tok; echo more", account);
        assert_eq!(strangers(Limits::default()).check(&account).await, Ok(()), "{:?}", imap.heard());
        assert!(imap.heard().join(" ").starts_with(&format!("k1 AUTHENTICATE XOAUTH2 {PROOF}")));
        assert_eq!(smtp.heard()[1], format!("AUTH XOAUTH2 {PROOF}"));
    }
}

#[tokio::test]
async fn a_token_may_be_refused_or_missing() {
    let explains = Say("+ eyJzdGF0dXMiOiI0MDEifQ==\r\n");
    let script = vec![
        Say("* OK [CAPABILITY SASL-IR] hi\r\n"),
        Hear,
        explains,
        Hear,
        Say("k1 NO [AUTHENTICATIONFAILED] no\r\n"),
    ];
    let liar = Liar::playing(script).await;
    let mail = strangers(Limits { token: std::time::Duration::from_millis(500), ..Limits::default() });
    let account = |command: &str| with(command, at(liar.port, Security::Plain));
    let why = mail.check(&account("echo tok")).await.unwrap_err().why;
    assert!(matches!(why, Why::WrongPassword(_)), "{why:?}");
    assert_eq!(liar.heard()[1], "", "an empty line asks for the refusal");
    for (command, words) in [
        ("echo no network >&2; exit 3", "no network"),
        ("true", "no token"),
        ("echo two words", "no token"),
        ("sleep 600", "did not answer"),
    ] {
        let trouble = mail.check(&account(command)).await.unwrap_err();
        assert!(matches!(trouble.why, Why::TokenCommand(_)), "{trouble:?}");
        assert!(trouble.to_string().contains(words), "{trouble}");
    }
}
