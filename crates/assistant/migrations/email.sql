-- The user's mail accounts. Their numbers are never used again: drafts, queues and mails name accounts by them.
CREATE TABLE email_accounts (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    address       TEXT NOT NULL,
    spelling      TEXT NOT NULL UNIQUE, -- the address as servers spell it, in lower case: one account per mailbox
    user          TEXT NOT NULL,
    imap          TEXT NOT NULL,        -- JSON, both
    smtp          TEXT NOT NULL,
    password      TEXT,                 -- one of the two
    token_command TEXT,
    added         INTEGER NOT NULL,     -- epoch ms, as all times here
    CHECK ((password IS NULL) <> (token_command IS NULL))
) STRICT;
-- Phones and accounts are both sources of messages, so accounts begin where no phone's number comes to.
INSERT INTO sqlite_sequence (name, seq) VALUES ('email_accounts', 1000000);

-- How far the inbox of each account was read, and how the last poll went.
CREATE TABLE email_sync (
    account       INTEGER PRIMARY KEY,
    seeded        INTEGER NOT NULL DEFAULT 0, -- whether validity and uid are a mark
    validity      INTEGER NOT NULL DEFAULT 0,
    uid           INTEGER NOT NULL DEFAULT 0,
    more          INTEGER NOT NULL DEFAULT 0, -- the last poll came back full
    last_sync     INTEGER,
    last_attempt  INTEGER,
    failing_since INTEGER,
    unread        INTEGER NOT NULL DEFAULT 0,
    last_error    TEXT
) STRICT;

-- Automatic mails that are counted instead of queued, until a heartbeat has told the number.
CREATE TABLE email_bulk (
    account INTEGER PRIMARY KEY,
    count   INTEGER NOT NULL,
    telling INTEGER NOT NULL DEFAULT 0 -- so many of them a heartbeat that is under way tells
) STRICT;

-- What is known of received mails. Their texts stay on the server.
CREATE TABLE email_kept (
    account      INTEGER NOT NULL,
    validity     INTEGER NOT NULL,
    uid          INTEGER NOT NULL,
    from_name    TEXT NOT NULL,
    from_address TEXT NOT NULL,
    spelling     TEXT NOT NULL, -- the address as servers spell it, in lower case
    subject      TEXT NOT NULL,
    beginning    TEXT NOT NULL,
    received     INTEGER NOT NULL,
    kept_at      INTEGER NOT NULL,
    bulk         INTEGER NOT NULL,
    seen         INTEGER NOT NULL,           -- the user had read it elsewhere
    opened       INTEGER NOT NULL DEFAULT 0, -- the user opened it in Kai
    away         INTEGER NOT NULL DEFAULT 0, -- the user dismissed it
    PRIMARY KEY (account, validity, uid)
) STRICT, WITHOUT ROWID;
CREATE INDEX email_kept_by_date ON email_kept (received);
CREATE INDEX email_kept_by_sender ON email_kept (spelling);

-- Whoever turns email off, and by whatever way (page, command, import): turning it on again seeds again, so that what
-- came meanwhile is not dumped in. It is on by default, so a deleted setting turns it on.
CREATE TRIGGER email_off_by_update AFTER UPDATE ON settings
WHEN new.key = 'email_enabled' AND new.value <> 'true' BEGIN
    UPDATE email_sync SET seeded = 0, more = 0, last_sync = NULL, last_attempt = NULL, failing_since = NULL,
                          last_error = NULL;
END;
CREATE TRIGGER email_off_by_insert AFTER INSERT ON settings
WHEN new.key = 'email_enabled' AND new.value <> 'true' BEGIN
    UPDATE email_sync SET seeded = 0, more = 0, last_sync = NULL, last_attempt = NULL, failing_since = NULL,
                          last_error = NULL;
END;
