//! Looks into the inbox: what is new, a mail in full, a search. It is opened with EXAMINE and read with PEEK, so that
//! nothing on the server changes.

use std::collections::BTreeMap;

use kai_assistant::email::port::{Found, Header, Letter, Look, Mark, Why};
use kai_assistant::untrusted::Untrusted;

use super::super::headers::Headers;
use super::super::mime::first_text;
use super::super::text::{is_stub, text};
use super::command::{Command, set};
use super::listed::{BEGINS, ITEMS, LEAST, beginning, headers, listed};
use super::reply::{Fetched, Reply};
use super::search;
use super::session::Session;
use super::structure::{Contents, Part};

/// Where the inbox is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place {
    pub(super) validity: u32,
    /// The number that the next mail gets.
    next: Option<u32>,
    pub(super) exists: u32,
}

/// What is asked about a mail that is read.
const DETAILS: &str = "BODY.PEEK[HEADER.FIELDS (DATE MESSAGE-ID IN-REPLY-TO REFERENCES REPLY-TO)]<0.16384> \
    BODY.PEEK[HEADER.FIELDS (TO CC)]<0.32768>";
/// How many bytes of a text part are read, and of all of them.
const LONGEST_PART: u64 = 200 * 1024;
const LONGEST_TEXT: u64 = 400 * 1024;

impl Session {
    /// Opens a mailbox to read it.
    pub(super) async fn examine(&mut self, name: &[u8]) -> Result<Place, Why> {
        let mut place = Place::default();
        let command = Command::new("EXAMINE ").string(name);
        let opened = self.run(command, |reply| match reply {
            Reply::Exists(count) => place.exists = count,
            Reply::Told(state) => {
                place.validity = state.number("UIDVALIDITY").unwrap_or(place.validity);
                place.next = state.number("UIDNEXT").or(place.next);
            }
            _ => {}
        });
        opened.await?.agreed()?;
        Ok(place)
    }

    /// The highest number that a mail of the inbox has, or had.
    async fn highest(&mut self, place: Place) -> Result<u32, Why> {
        if let Some(next) = place.next {
            return Ok(next.saturating_sub(1));
        }
        let mut highest = 0;
        if place.exists > 0 {
            let last = Command::new("UID FETCH * (UID)");
            let told = self.run(last, |reply| {
                if let Reply::Fetched(Fetched { uid: Some(uid), .. }) = reply {
                    highest = highest.max(uid);
                }
            });
            told.await?.agreed()?;
        }
        Ok(highest)
    }

    /// What arrived after the mark, the oldest `most` of it.
    pub(in crate::mail) async fn newer(&mut self, mark: Option<Mark>, most: usize) -> Result<Look, Why> {
        let place = self.examine(b"INBOX").await?;
        let highest = self.highest(place).await?;
        let nothing =
            Look { mark: Mark { validity: place.validity, uid: highest }, mails: vec![], more: false };
        let Some(mark) = mark.filter(|mark| mark.validity == place.validity) else { return Ok(nothing) };
        if place.exists == 0 || highest <= mark.uid {
            return Ok(nothing);
        }
        let after = format!("UID SEARCH UID {}:*", mark.uid.saturating_add(1));
        let mut uids = self.found(Command::new(&after).searches()).await?.map_err(Why::Refused)?;
        // A server names its last mail even if its number is lower.
        uids.retain(|uid| *uid > mark.uid);
        let more = uids.len() > most;
        uids.truncate(most);
        let Some(last) = uids.last().copied() else { return Ok(nothing) };
        let mails = self.headers(&uids).await?;
        let mark = Mark { validity: place.validity, uid: last };
        Ok(Look { mark, mails, more })
    }

    /// The numbers that a search finds, in their order, or the words with which the server refuses it.
    async fn found(&mut self, command: Command) -> Result<Result<Vec<u32>, Untrusted>, Why> {
        let mut found = Vec::new();
        let answer = self.run(command, |reply| {
            if let Reply::Found(uids) = reply {
                found = uids;
            }
        });
        let answer = answer.await?;
        if !answer.is_ok() {
            return Ok(Err(Untrusted::new(answer.words)));
        }
        found.sort_unstable();
        found.dedup();
        Ok(Ok(found))
    }

    /// What a list shows of these mails, in their order. A mail that the server cannot read holds up no other.
    async fn headers(&mut self, uids: &[u32]) -> Result<Vec<Header>, Why> {
        if uids.is_empty() {
            return Ok(vec![]);
        }
        let mut known = BTreeMap::new();
        if !self.list(uids, &format!("{ITEMS} {BEGINS}"), &mut known).await? {
            let missing: Vec<u32> = uids.iter().copied().filter(|uid| !known.contains_key(uid)).collect();
            for uid in missing {
                if !self.list(&[uid], &format!("{ITEMS} {BEGINS}"), &mut known).await? {
                    self.list(&[uid], LEAST, &mut known).await?;
                }
            }
        }
        Ok(uids.iter().filter_map(|uid| known.remove(uid)).collect())
    }

    /// Asks about mails. Returns whether the server told everything.
    async fn list(
        &mut self,
        uids: &[u32],
        items: &str,
        known: &mut BTreeMap<u32, Header>,
    ) -> Result<bool, Why> {
        let answer = self.run(Command::new(&format!("UID FETCH {} ({items})", set(uids))), |reply| {
            // Besides, servers tell of flags that others change.
            if let Reply::Fetched(fetched) = reply
                && let Some(header) = listed(&fetched).filter(|header| uids.contains(&header.uid))
            {
                known.entry(header.uid).or_insert(header);
            }
        });
        Ok(answer.await?.is_ok())
    }

    /// A mail in full; `None` if it is gone, or numbered anew.
    pub(in crate::mail) async fn letter(&mut self, at: Mark) -> Result<Option<Letter>, Why> {
        let place = self.examine(b"INBOX").await?;
        if place.validity != at.validity {
            return Ok(None);
        }
        let described = format!("{ITEMS} {DETAILS} BODYSTRUCTURE");
        if let Some((mut letter, Some(contents))) = self.opened(at.uid, &described, true).await? {
            let (text, is_cut) = self.texts(at.uid, &contents).await?;
            letter.header.beginning = beginning(&text);
            letter.is_beginning = is_cut;
            letter.text = Untrusted::new(text);
            letter.attachments = contents.attachments;
            return Ok(Some(letter));
        }
        // Without a description that makes sense, its beginning has to do.
        let raw = format!("{ITEMS} {DETAILS} BODY.PEEK[TEXT]<0.{LONGEST_PART}>");
        Ok(self.opened(at.uid, &raw, false).await?.map(|(letter, _)| letter))
    }

    async fn opened(
        &mut self,
        uid: u32,
        items: &str,
        is_described: bool,
    ) -> Result<Option<(Letter, Option<Contents>)>, Why> {
        let mut found = None;
        let answer = self.run(Command::new(&format!("UID FETCH {uid} ({items})")), |reply| {
            if let Reply::Fetched(fetched) = reply
                && fetched.uid == Some(uid)
                && (fetched.structure.is_some() || !is_described)
                && found.is_none()
            {
                let contents = fetched.structure.as_ref().map(Contents::read);
                found = opened(&fetched).map(|letter| (letter, contents));
            }
        });
        let answer = answer.await?;
        match found {
            None if !answer.is_ok() && !is_described => Err(Why::Refused(Untrusted::new(answer.words))),
            found => Ok(found),
        }
    }

    /// The texts of a mail, one below the other, and whether something is missing.
    async fn texts(&mut self, uid: u32, contents: &Contents) -> Result<(String, bool), Why> {
        let mut texts: Vec<String> = vec![String::new(); contents.texts.len()];
        let mut is_cut = contents.more;
        let mut left = LONGEST_TEXT;
        let versions = contents.texts.iter().map(|text| text.versions.len()).max().unwrap_or_default();
        // Two rounds are enough for all who write a plain version and one in HTML.
        for version in 0..versions.min(3) {
            let mut wanted: Vec<(usize, &Part, u64)> = Vec::new();
            for (at, part) in contents.texts.iter().enumerate() {
                let Some(part) = part.versions.get(version).filter(|_| is_stub(&texts[at])) else { continue };
                let length = part.size.min(LONGEST_PART).min(left);
                left -= length;
                is_cut |= length < part.size && part.size != u64::MAX;
                wanted.push((at, part, length));
            }
            let read = self.parts(uid, &wanted).await?;
            for (at, text) in read {
                if !text.is_empty() {
                    texts[at] = text;
                }
            }
        }
        texts.retain(|text| !text.is_empty());
        Ok((texts.join("\n\n"), is_cut))
    }

    /// The texts of these parts, with their places.
    async fn parts(&mut self, uid: u32, wanted: &[(usize, &Part, u64)]) -> Result<Vec<(usize, String)>, Why> {
        let item = |(_, part, length): &(usize, &Part, u64)| {
            (*length > 0).then(|| format!("BODY.PEEK[{}]<0.{length}>", part.section))
        };
        let items: Vec<String> = wanted.iter().filter_map(item).collect();
        let mut read = Vec::new();
        if items.is_empty() {
            return Ok(read);
        }
        let command = Command::new(&format!("UID FETCH {uid} (UID {})", items.join(" ")));
        let answer = self.run(command, |reply| {
            if let Reply::Fetched(fetched) = reply {
                read.extend(wanted.iter().filter_map(|(at, part, _)| {
                    Some((*at, text(&part.shape, fetched.section(&part.section)?)))
                }));
            }
        });
        answer.await?;
        Ok(read)
    }

    /// The newest mails that contain all of these words.
    pub(in crate::mail) async fn search(&mut self, words: &str, most: usize) -> Result<Found, Why> {
        let place = self.examine(b"INBOX").await?;
        let words = search::words(words);
        let mut uids = Vec::new();
        if place.exists > 0 && !words.is_empty() {
            uids = self.searched(&words).await?;
        }
        let newest = uids.split_off(uids.len().saturating_sub(most));
        let mut mails = self.headers(&newest).await?;
        mails.reverse();
        Ok(Found { validity: place.validity, mails })
    }

    async fn searched(&mut self, words: &[String]) -> Result<Vec<u32>, Why> {
        let refused = match self.found(search::command(words)).await? {
            Ok(found) => return Ok(found),
            Err(refused) => Why::Refused(refused),
        };
        // An old server knows ASCII only: what is left of the words finds more than was asked for, but all of that.
        let plain = search::plain(words);
        if plain.is_empty() || plain == words {
            return Err(refused);
        }
        self.found(search::command(&plain)).await?.map_err(Why::Refused)
    }
}

/// The letter without its text and its attachments, or with the text that its beginning shows.
fn opened(fetched: &Fetched<'_>) -> Option<Letter> {
    let (header, block) = (listed(fetched)?, headers(fetched));
    let body = fetched.section("TEXT").unwrap_or_default();
    let text = first_text(&block, body);
    let headers = Headers::read(&block);
    Some(Letter {
        written: headers.written(),
        to: headers.to(),
        cc: headers.cc(),
        reply_to: headers.reply_to(),
        message_id: headers.message_id(),
        references: headers.references(),
        text: Untrusted::new(text),
        is_beginning: body.len() as u64 >= LONGEST_PART,
        attachments: vec![],
        header,
    })
}
