-- Messages of paired phones, kept here because such a phone cannot be searched from outside.
CREATE TABLE sms_archive (
    row       INTEGER PRIMARY KEY,          -- date << 20 | n: rows follow the date, so that newest first can stop early
    id        INTEGER NOT NULL UNIQUE,      -- the number by which tools and people name it
    source    INTEGER NOT NULL,
    kind      INTEGER NOT NULL,             -- 1 SMS, 2 MMS: each numbers its messages on its own
    native_id INTEGER NOT NULL,             -- the phone's number, which it uses again
    thread    INTEGER NOT NULL,
    folder    INTEGER NOT NULL,             -- 1 inbox, 2 sent
    date      INTEGER NOT NULL,             -- epoch ms
    address   TEXT NOT NULL,
    number    TEXT NOT NULL,                -- the digits of the address; empty if it is no phone number
    body      TEXT,                         -- NULL: only the identity is kept, so that it is not news again
    read      INTEGER NOT NULL,             -- on the phone, when it was heard of
    opened    INTEGER NOT NULL DEFAULT 0,   -- in Kai
    UNIQUE (source, kind, native_id, date, address)
) STRICT;
CREATE INDEX sms_archive_numbers ON sms_archive (number);
CREATE INDEX sms_archive_unread ON sms_archive (source)
    WHERE folder = 1 AND read = 0 AND opened = 0 AND body IS NOT NULL;

-- The words of each message, by its row: as a model may see it, and as it was written. The words are made by Kai, so
-- the tokenizer only has to split at blanks.
CREATE VIRTUAL TABLE sms_words USING fts5(
    redacted, whole, content = '', contentless_delete = 1, tokenize = 'ascii', prefix = '1 2'
);

-- The last id that a message got. It is never used again.
CREATE TABLE sms_ids (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    last INTEGER NOT NULL
) STRICT;
INSERT INTO sms_ids (one, last) VALUES (1, 10000000);

-- Everything on the phone between the two dates is archived.
CREATE TABLE sms_threads (
    source        INTEGER NOT NULL,
    thread        INTEGER NOT NULL,
    complete_from INTEGER NOT NULL, -- epoch ms
    complete_to   INTEGER NOT NULL,
    done          INTEGER NOT NULL, -- the phone has nothing older
    PRIMARY KEY (source, thread)
) STRICT, WITHOUT ROWID;

CREATE TABLE sms_phones (
    source     INTEGER PRIMARY KEY,
    messages   INTEGER NOT NULL DEFAULT 0, -- how many are archived
    last_sync  INTEGER,                    -- epoch ms
    last_error TEXT
) STRICT;

CREATE TRIGGER sms_archived AFTER INSERT ON sms_archive WHEN new.body IS NOT NULL BEGIN
    INSERT INTO sms_phones (source, messages) VALUES (new.source, 1)
        ON CONFLICT (source) DO UPDATE SET messages = messages + 1;
END;
CREATE TRIGGER sms_emptied AFTER UPDATE OF body ON sms_archive WHEN old.body IS NOT NULL AND new.body IS NULL BEGIN
    DELETE FROM sms_words WHERE rowid = old.row;
    UPDATE sms_phones SET messages = messages - 1 WHERE source = old.source;
END;
CREATE TRIGGER sms_deleted AFTER DELETE ON sms_archive WHEN old.body IS NOT NULL BEGIN
    DELETE FROM sms_words WHERE rowid = old.row;
    UPDATE sms_phones SET messages = messages - 1 WHERE source = old.source;
END;

-- With nothing to be archived, a message is kept for as long as it is queued, whoever takes it out of the queue.
CREATE TRIGGER sms_leaves_with_its_entry AFTER DELETE ON pending
WHEN old.queue = 'sms' AND old.phone <> 1 AND (SELECT value FROM settings WHERE key = 'sms_archive_days') = '0' BEGIN
    UPDATE sms_archive SET body = NULL WHERE id = json_extract(old.entry, '$.id');
END;

-- When messages are to be archived again, everything is asked for once more, because what was let go is missing.
CREATE TRIGGER sms_archived_again_by_update AFTER UPDATE ON settings
WHEN new.key = 'sms_archive_days' AND old.value = '0' AND new.value <> '0' BEGIN
    DELETE FROM sms_threads;
END;
CREATE TRIGGER sms_archived_again_by_delete AFTER DELETE ON settings
WHEN old.key = 'sms_archive_days' AND old.value = '0' BEGIN
    DELETE FROM sms_threads;
END;

-- The names of a phone's contacts.
CREATE TABLE contacts (
    source  INTEGER NOT NULL,
    uid     TEXT NOT NULL,    -- the phone's own id of the contact
    changed INTEGER NOT NULL, -- by the phone's clock; only good for comparing
    name    TEXT NOT NULL,    -- empty: nothing to show
    folded  TEXT NOT NULL,    -- the name as it is searched
    PRIMARY KEY (source, uid)
) STRICT, WITHOUT ROWID;
CREATE TABLE contact_numbers (
    source INTEGER NOT NULL,
    uid    TEXT NOT NULL,
    number TEXT NOT NULL,     -- as it can be dialled
    tail   TEXT NOT NULL,     -- its last digits, which are the same however the country is written
    PRIMARY KEY (source, uid, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX contact_numbers_tail ON contact_numbers (tail);

-- When a phone was last asked for its contacts. No row: it is asked as soon as possible.
CREATE TABLE contact_reads (
    source INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL, -- epoch ms
    error  TEXT              -- why it failed
) STRICT;

-- Whoever turns names off, and by whatever way: nothing of them stays.
CREATE TRIGGER contacts_off AFTER UPDATE OF names ON phones WHEN new.names = 0 BEGIN
    DELETE FROM contacts WHERE source = new.source;
    DELETE FROM contact_numbers WHERE source = new.source;
    DELETE FROM contact_reads WHERE source = new.source;
END;
CREATE TRIGGER contacts_gone AFTER DELETE ON phones BEGIN
    DELETE FROM contacts WHERE source = old.source;
    DELETE FROM contact_numbers WHERE source = old.source;
    DELETE FROM contact_reads WHERE source = old.source;
END;
CREATE TRIGGER contacts_off_by_update AFTER UPDATE ON settings
WHEN new.key = 'contact_names_enabled' AND new.value <> 'true' BEGIN
    DELETE FROM contacts;
    DELETE FROM contact_numbers;
    DELETE FROM contact_reads;
END;
CREATE TRIGGER contacts_off_by_insert AFTER INSERT ON settings
WHEN new.key = 'contact_names_enabled' AND new.value <> 'true' BEGIN
    DELETE FROM contacts;
    DELETE FROM contact_numbers;
    DELETE FROM contact_reads;
END;
CREATE TRIGGER contacts_off_by_delete AFTER DELETE ON settings WHEN old.key = 'contact_names_enabled' BEGIN
    DELETE FROM contacts;
    DELETE FROM contact_numbers;
    DELETE FROM contact_reads;
END;
