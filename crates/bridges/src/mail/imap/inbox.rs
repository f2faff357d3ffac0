//! Looks into the inbox: what is new, a mail in full, a search. It is opened with EXAMINE and read with PEEK, so that
//! nothing on the server changes.

use kai_assistant::email::port::{Found, Header, Letter, Look, Mark, Why};
use kai_assistant::untrusted::Untrusted;
use tokio::time::{Instant, timeout_at};

use super::super::headers::Headers;
use super::super::mime::first_text;
use super::super::text::{is_stub, text};
use super::command::{Command, set};
use super::listed::{BEGINS, ITEMS, LEAST, Listing, beginning, headers, listed};
use super::reply::{Fetched, Reply};
use super::search::{self, Hits, Wanted};
use super::session::Session;
use super::structure::{Contents, Part};

/// Where the inbox is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place {
    pub(super) validity: u32,
    /// The number that the next mail gets, if the server says so.
    next: Option<u32>,
    pub(super) exists: u32,
}

/// What is asked about a mail that is read.
const DETAILS: &str = "BODY.PEEK[HEADER.FIELDS (DATE MESSAGE-ID IN-REPLY-TO REFERENCES REPLY-TO)]<0.16384> \
    BODY.PEEK[HEADER.FIELDS (TO CC)]<0.32768>";
/// How many bytes of a text part are read, and of all of them.
const LONGEST_PART: u64 = 200 * 1024;
const LONGEST_TEXT: u64 = 400 * 1024;
/// How many mails one command asks about. Each command has the whole time for an answer, so a slow link has to carry
/// no more than these in it.
const BATCH: usize = 10;

impl Session {
    /// Opens a mailbox to read it.
    pub(super) async fn examine(&mut self, name: &[u8]) -> Result<Place, Why> {
        let mut place = Place::default();
        let command = Command::new("EXAMINE ").string(name);
        let opened = self.run(command, |reply| match reply {
            Reply::Exists(count) => place.exists = count,
            Reply::Told(state) => {
                place.validity = state.number("UIDVALIDITY").unwrap_or(place.validity);
                // No mail has the number 0.
                place.next = state.number("UIDNEXT").filter(|next| *next > 0).or(place.next);
            }
            _ => {}
        });
        opened.await?.agreed()?;
        Ok(place)
    }

    /// The highest number that a mail of the inbox has, or had. A server that says that it did not come as far as the
    /// mark is asked for its last mail, too: its word alone must not bring everything again.
    async fn highest(&mut self, place: Place, mark: Option<Mark>) -> Result<u32, Why> {
        let said = place.next.map(|next| next.saturating_sub(1));
        match said {
            Some(said) if mark.is_none_or(|mark| mark.uid <= said) => Ok(said),
            said => Ok(self.last_mail(place).await?.max(said.unwrap_or_default())),
        }
    }

    /// The number of the last mail; 0 if there is none.
    async fn last_mail(&mut self, place: Place) -> Result<u32, Why> {
        let mut last = 0;
        if place.exists > 0 {
            let ask = Command::new("UID FETCH * (UID)");
            let told = self.run(ask, |reply| {
                if let Reply::Fetched(Fetched { uid: Some(uid), .. }) = reply {
                    last = last.max(uid);
                }
            });
            told.await?.agreed()?;
        }
        Ok(last)
    }

    /// What arrived after the mark, the oldest `most` of it, as far as it comes until then.
    pub(in crate::mail) async fn newer(
        &mut self,
        mark: Option<Mark>,
        most: usize,
        until: Instant,
    ) -> Result<Look, Why> {
        let place = self.examine(b"INBOX").await?;
        let nothing = |uid| Look { mark: Mark { validity: place.validity, uid }, mails: vec![], more: false };
        let mark = mark.filter(|mark| mark.validity == place.validity);
        let highest = self.highest(place, mark).await?;
        // A server that does not say which number comes next may only have lost its last mails. And one that shows no
        // mail at all for a moment must not bring everything again when it comes back.
        let is_beyond = |mark: &Mark| place.exists > 0 && place.next.is_some() && highest < mark.uid;
        let Some(mark) = mark.filter(|mark| !is_beyond(mark)) else { return Ok(nothing(highest)) };
        if place.exists == 0 || highest <= mark.uid {
            return Ok(nothing(mark.uid));
        }
        let after = format!("UID SEARCH UID {}:*", mark.uid.saturating_add(1));
        let search = self.found(Command::new(&after).searches(), Wanted::After(mark.uid));
        let mut uids = search.await?.map_err(Why::Refused)?;
        let more = uids.len() > most;
        uids.truncate(most);
        // A number that no mail was seen to have moves no mark: it would be beyond everything for good if it is wrong.
        let Some(last) = uids.last().copied() else { return Ok(nothing(mark.uid)) };
        let (mails, is_all) = self.arriving(&uids, until).await?;
        let uid = mails.last().filter(|_| !is_all).map_or(last, |mail| mail.uid);
        Ok(Look { mark: Mark { uid, ..mark }, mails, more: more || !is_all })
    }

    /// What a list shows of these mails, as far as it comes until then, and whether that is all. What came before a
    /// trouble counts, or a slow link would never get through. Whoever asks for the rest meets the trouble first.
    async fn arriving(&mut self, uids: &[u32], until: Instant) -> Result<(Vec<Header>, bool), Why> {
        let mut listing = Listing::default();
        let listed = timeout_at(until, self.gather(uids, &mut listing)).await.unwrap_or(Err(Why::Silent));
        let Err(why) = listed else { return Ok((listing.all(), true)) };
        let mails = listing.before(&why, uids);
        if mails.is_empty() {
            return Err(why);
        }
        tracing::debug!(?why, arrived = mails.len(), "a look for mail ended early");
        Ok((mails, false))
    }

    /// The numbers that a search finds, in their order, or the words with which the server refuses it.
    async fn found(&mut self, command: Command, wanted: Wanted) -> Result<Result<Vec<u32>, Untrusted>, Why> {
        let mut hits = Hits::of(wanted);
        let answer = self.run(command, |reply| {
            if let Reply::Found(uids) = reply {
                hits.add(&uids);
            }
        });
        let answer = answer.await?;
        if !answer.is_ok() {
            return Ok(Err(Untrusted::new(answer.words)));
        }
        Ok(Ok(hits.sorted()))
    }

    /// What a list shows of these mails, in their order.
    async fn headers(&mut self, uids: &[u32]) -> Result<Vec<Header>, Why> {
        let mut listing = Listing::default();
        self.gather(uids, &mut listing).await?;
        Ok(listing.all())
    }

    async fn gather(&mut self, uids: &[u32], listing: &mut Listing) -> Result<(), Why> {
        for batch in uids.chunks(BATCH) {
            self.gather_batch(batch, listing).await?;
            listing.told(batch.len());
        }
        Ok(())
    }

    /// Asks about a few mails. A mail that the server cannot read holds up no other.
    async fn gather_batch(&mut self, uids: &[u32], listing: &mut Listing) -> Result<(), Why> {
        let items = format!("{ITEMS} {BEGINS}");
        if self.list(uids, &items, listing).await? {
            return Ok(());
        }
        let missing: Vec<u32> = uids.iter().copied().filter(|uid| !listing.has(*uid)).collect();
        for uid in missing {
            if !self.list(&[uid], &items, listing).await? {
                self.list(&[uid], LEAST, listing).await?;
            }
        }
        Ok(())
    }

    /// Asks about mails. Returns whether the server told everything.
    async fn list(&mut self, uids: &[u32], items: &str, listing: &mut Listing) -> Result<bool, Why> {
        let answer = self.run(Command::new(&format!("UID FETCH {} ({items})", set(uids))), |reply| {
            // Besides, servers tell of flags that others change.
            if let Reply::Fetched(fetched) = reply
                && let Some(header) = listed(&fetched).filter(|header| uids.contains(&header.uid))
            {
                listing.add(header);
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
        let refused = match self.found(search::command(words), Wanted::Newest).await? {
            Ok(found) => return Ok(found),
            Err(refused) => Why::Refused(refused),
        };
        // An old server knows ASCII only: what is left of the words finds more than was asked for, but all of that.
        let plain = search::plain(words);
        if plain.is_empty() || plain == words {
            return Err(refused);
        }
        self.found(search::command(&plain), Wanted::Newest).await?.map_err(Why::Refused)
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
