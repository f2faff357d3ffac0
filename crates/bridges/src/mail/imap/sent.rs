//! Keeps copies of sent mails in the folder for them.

use jiff::Timestamp;
use kai_assistant::email::port::Why;

use super::command::{Command, spelled};
use super::reply::{Mailbox, Reply};
use super::session::Session;

/// What folders for sent mails are called where none is marked as such. The likeliest come first.
const NAMES: [&str; 24] = [
    "Sent",
    "Sent Items",
    "Sent Messages",
    "Sent Mail",
    "Gesendet",
    "Gesendete Elemente",
    "Gesendete Objekte",
    "Gesendete Nachrichten",
    "Envoyés",
    "Éléments envoyés",
    "Messages envoyés",
    "Enviados",
    "Elementos enviados",
    "Mensajes enviados",
    "Itens enviados",
    "Posta inviata",
    "Inviata",
    "Verzonden",
    "Verzonden items",
    "Skickat",
    "Wysłane",
    "Отправленные",
    "送信済み",
    "已发送",
];

/// How many mails of the folder are searched for one that is there already.
const SEARCHED: u32 = 500;

/// What is kept.
pub(in crate::mail) struct Copy<'a> {
    /// Without angle brackets.
    pub(in crate::mail) message_id: &'a str,
    pub(in crate::mail) sent_at: Timestamp,
    pub(in crate::mail) bytes: &'a [u8],
}

impl Session {
    /// Puts a copy into the folder for sent mails, unless it is there already: some providers put it there themselves.
    pub(in crate::mail) async fn keep(&mut self, copy: &Copy<'_>) -> Result<(), Why> {
        let folder = match self.sent_folder().await? {
            Some(folder) => folder,
            None => self.make_sent_folder().await?,
        };
        if self.has(&folder, copy).await? {
            return Ok(());
        }
        let date = copy.sent_at.strftime("%d-%b-%Y %H:%M:%S +0000");
        let append = Command::new("APPEND ").string(&folder).text(&format!(" (\\Seen) \"{date}\" "));
        self.run(append.literal(copy.bytes), |_| {}).await?.agreed()?;
        Ok(())
    }

    /// The folder for sent mails, as the server spells its name.
    async fn sent_folder(&mut self) -> Result<Option<Vec<u8>>, Why> {
        let mut best = Best::default();
        self.list_into(Command::new("LIST \"\" \"*\""), &mut best).await?.agreed()?;
        if best.rank != Some(0) && self.can("SPECIAL-USE") {
            // A server that marks folders only when it is asked for that may not like the question.
            self.list_into(Command::new("LIST (SPECIAL-USE) \"\" \"*\""), &mut best).await?;
        }
        Ok(best.name)
    }

    async fn list_into(&mut self, list: Command, best: &mut Best) -> Result<super::session::Answer, Why> {
        let listed = self.run(list, |reply| {
            if let Reply::Mailbox(mailbox) = reply {
                best.consider(&mailbox);
            }
        });
        listed.await
    }

    async fn make_sent_folder(&mut self) -> Result<Vec<u8>, Why> {
        let mut name = Vec::new();
        if self.can("NAMESPACE") {
            let asked = self.run(Command::new("NAMESPACE"), |reply| {
                if let Reply::Namespace(prefix) = reply {
                    name = prefix;
                }
            });
            asked.await?;
        }
        name.extend_from_slice(b"Sent");
        self.run(Command::new("CREATE ").string(&name), |_| {}).await?.agreed()?;
        // Some programs show only folders that the user subscribed to.
        self.run(Command::new("SUBSCRIBE ").string(&name), |_| {}).await?;
        Ok(name)
    }

    /// Whether the folder has the mail. Only its end is searched: it may have a hundred thousand mails.
    async fn has(&mut self, folder: &[u8], copy: &Copy<'_>) -> Result<bool, Why> {
        let exists = self.examine(folder).await?.exists;
        if exists == 0 {
            return Ok(false);
        }
        let first = exists.saturating_sub(SEARCHED).max(1);
        let search = Command::new(&format!("UID SEARCH {first}:* HEADER Message-ID "));
        let mut has = false;
        let answer = self.run(search.string(copy.message_id.as_bytes()).searches(), |reply| {
            if let Reply::Found(uids) = reply {
                has |= !uids.is_empty();
            }
        });
        answer.await?;
        Ok(has)
    }
}

/// The likeliest folder for sent mails so far.
#[derive(Debug, Default)]
struct Best {
    name: Option<Vec<u8>>,
    /// The lower, the likelier; 0 is marked.
    rank: Option<usize>,
}

impl Best {
    fn consider(&mut self, mailbox: &Mailbox<'_>) {
        let Some(rank) = rank(mailbox) else { return };
        if self.rank.is_none_or(|best| rank < best) {
            (self.name, self.rank) = (Some(mailbox.name.clone()), Some(rank));
        }
    }
}

fn rank(mailbox: &Mailbox<'_>) -> Option<usize> {
    let has = |name: &str| mailbox.attributes.iter().any(|attribute| attribute.eq_ignore_ascii_case(name));
    if has("\\Noselect") || has("\\NonExistent") {
        return None;
    }
    if has("\\Sent") {
        return Some(0);
    }
    let name = below_inbox(mailbox).unwrap_or(&mailbox.name);
    let known = NAMES.iter().position(|known| name.eq_ignore_ascii_case(&spelled(known)));
    known.map(|place| place + 1)
}

/// The name of a folder that lies below the inbox.
fn below_inbox<'a>(mailbox: &'a Mailbox<'_>) -> Option<&'a [u8]> {
    let (inbox, rest) = mailbox.name.split_at_checked(b"INBOX".len())?;
    let delimiter = mailbox.delimiter.filter(|_| inbox.eq_ignore_ascii_case(b"INBOX"))?;
    rest.strip_prefix(&[delimiter])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(list: &[(&str, &str)]) -> Option<String> {
        let mut best = Best::default();
        for (attribute, name) in list {
            let attributes = vec![(*attribute).into()];
            best.consider(&Mailbox { attributes, delimiter: Some(b'.'), name: name.as_bytes().to_vec() });
        }
        best.name.map(|name| String::from_utf8(name).unwrap())
    }

    #[test]
    fn the_folder_for_sent_mails_is_found() {
        for (list, expected) in [
            (&[("", "INBOX"), ("\\Sent", "Elsewhere"), ("", "Sent")][..], Some("Elsewhere")),
            (&[("", "Gesendet"), ("", "sent items")], Some("sent items")),
            (&[("", "INBOX.Sent")], Some("INBOX.Sent")),
            (&[("", "inbox.Envoy&AOk-s")], Some("inbox.Envoy&AOk-s")),
            (&[("\\Noselect", "Sent"), ("", "Archive.Sent"), ("", "INBOXSent")], None),
            (&[], None),
        ] {
            assert_eq!(found(list).as_deref(), expected, "{list:?}");
        }
    }
}
