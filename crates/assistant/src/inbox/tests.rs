use super::*;

fn item(kind: &str, id: i64, group: &str, date: i64) -> Item {
    Item {
        key: Key::new(kind, id),
        phone: SourceId::HERE,
        phone_name: None,
        group: group.to_owned(),
        from: Untrusted::new(group),
        name: None,
        title: None,
        preview: Untrusted::default(),
        date,
        unread: false,
        waiting: false,
        away: false,
    }
}

/// A source with a message per date, which answers as a store would.
struct Dated(&'static str, Vec<i64>);

impl MessageSource for Dated {
    fn kind(&self) -> &'static str {
        self.0
    }
    fn title(&self) -> Said {
        self.0.into()
    }
    fn phones(&self, _: &Transaction<'_>) -> Result<Phones, DbError> {
        Ok(Phones::new())
    }
    fn page(&self, _: &Transaction<'_>, wanted: &Wanted, most: usize) -> Result<Vec<Item>, DbError> {
        let all = (0_i64..).zip(&self.1).map(|(id, date)| item(self.0, id, "g", *date));
        let mut all: Vec<Item> = all.filter(|item| wanted.admits(item.date, &item.key)).collect();
        all.sort_by_key(|item| std::cmp::Reverse(item.cursor()));
        all.truncate(most);
        Ok(all)
    }
    fn unread(&self, _: &Transaction<'_>, _: Timestamp, most: usize) -> Result<usize, DbError> {
        Ok(self.1.len().min(most))
    }
    fn message(&self, _: &Transaction<'_>, _: &str, _: Timestamp) -> Result<Option<Message>, DbError> {
        Ok(None)
    }
    fn quote(
        &self,
        _: &Transaction<'_>,
        _: &str,
        _: Timestamp,
        _: &TimeZone,
    ) -> Result<Option<Quote>, DbError> {
        Ok(None)
    }
    fn mark(&self, _: &Transaction<'_>, _: &str, _: Mark) -> Result<(), DbError> {
        Ok(())
    }
    fn reply(&self, _: &Transaction<'_>, _: &str, _: String, _: Timestamp) -> Result<NewDraft, NoReply> {
        Err(NoReply::Gone)
    }
}

/// Whatever the size of a page, and however many messages share a moment: each is listed once, newest first.
#[test]
fn pages_of_several_sources_go_through_every_message_once() {
    let db = crate::db::Db::in_memory(&[]).unwrap();
    let sources = Sources::new(vec![
        Box::new(Dated("sms", vec![5, 1, 5, 5, 9, 2])),
        Box::new(Dated("notification", vec![5, 5, 3, 9, 9])),
        Box::new(Dated("mail", vec![7])),
    ]);
    let checked = db.read_now(|tx| {
        let whole = sources.page(tx, &Wanted::all(Timestamp::UNIX_EPOCH), 100)?;
        assert_eq!((whole.items.len(), whole.next()), (12, None));
        for most in 1..=12 {
            let (mut wanted, mut all) = (Wanted::all(Timestamp::UNIX_EPOCH), vec![]);
            loop {
                let page = sources.page(tx, &wanted, most)?;
                wanted.before = page.next();
                all.extend(page.items);
                if wanted.before.is_none() {
                    break;
                }
            }
            assert_eq!(all, whole.items, "{most} a page");
        }
        let only = Wanted { kind: Some("mail".to_owned()), ..Wanted::all(Timestamp::UNIX_EPOCH) };
        assert_eq!(sources.page(tx, &only, 5)?.items.len(), 1);
        for (most, expected) in [(0, 0), (3, 3), (7, 7), (99, 12)] {
            assert_eq!(sources.unread(tx, Timestamp::UNIX_EPOCH, most)?, expected, "no further than {most}");
        }
        Ok::<_, DbError>(())
    });
    checked.unwrap();
}

#[test]
fn a_conversation_stands_where_its_newest_message_does() {
    let items = [
        item("sms", 9, "lena", 9),
        item("notification", 8, "lena", 8),
        item("sms", 7, "tom", 7),
        item("sms", 6, "lena", 6),
        Item { phone: SourceId(2), ..item("sms", 5, "lena", 5) },
    ];
    let ids = |group: Vec<&Item>| group.iter().map(|item| item.key.id.clone()).collect::<Vec<_>>().join(" ");
    let grouped: Vec<String> = groups(&items).into_iter().map(ids).collect();
    assert_eq!(grouped, ["9 6", "8", "7", "5"], "an app and another phone are something else");
}
