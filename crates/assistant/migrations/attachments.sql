-- The files that people attach to their messages, once each, by what is in them.
CREATE TABLE attachments (
    hash  BLOB NOT NULL PRIMARY KEY, -- SHA-256 of the bytes
    bytes BLOB NOT NULL
) STRICT;

-- The files of each message, in order.
CREATE TABLE entry_attachments (
    entry INTEGER NOT NULL REFERENCES entries (id) ON DELETE CASCADE,
    place INTEGER NOT NULL,
    hash  BLOB NOT NULL REFERENCES attachments (hash),
    name  TEXT NOT NULL,
    kind  TEXT NOT NULL, -- JSON: text, or a picture with its format and size
    size  INTEGER NOT NULL,
    PRIMARY KEY (entry, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX entry_attachments_by_hash ON entry_attachments (hash);

-- Files whose message is not sent yet.
CREATE TABLE staged_attachments (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    hash BLOB NOT NULL REFERENCES attachments (hash),
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    size INTEGER NOT NULL,
    at   INTEGER NOT NULL -- epoch ms
) STRICT;
CREATE INDEX staged_attachments_by_hash ON staged_attachments (hash);

-- A file goes with the last that has it.
CREATE TRIGGER attachments_follow_entries AFTER DELETE ON entry_attachments BEGIN
    DELETE FROM attachments WHERE hash = old.hash
        AND NOT EXISTS (SELECT 1 FROM entry_attachments WHERE hash = old.hash)
        AND NOT EXISTS (SELECT 1 FROM staged_attachments WHERE hash = old.hash);
END;
CREATE TRIGGER attachments_follow_staged AFTER DELETE ON staged_attachments BEGIN
    DELETE FROM attachments WHERE hash = old.hash
        AND NOT EXISTS (SELECT 1 FROM entry_attachments WHERE hash = old.hash)
        AND NOT EXISTS (SELECT 1 FROM staged_attachments WHERE hash = old.hash);
END;
