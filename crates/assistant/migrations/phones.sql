-- Phones that are paired. Source 1 is not here: it is the phone that Kai runs on, or the simulated one.
CREATE TABLE phones (
    source        INTEGER PRIMARY KEY AUTOINCREMENT, -- never used twice: drafts and messages name it
    device        TEXT NOT NULL UNIQUE,              -- what the phone calls itself on the network
    name          TEXT NOT NULL,
    certificate   BLOB NOT NULL,                     -- the only one that is accepted
    protocol      INTEGER NOT NULL,                  -- an older one is refused
    paired_at     INTEGER NOT NULL,                  -- epoch ms, all of them
    last_seen     INTEGER,
    address       TEXT,                              -- where it was last seen, to be called there
    sends_by_default INTEGER NOT NULL DEFAULT 0,     -- new messages leave by this phone; at most one
    read_sms      INTEGER NOT NULL DEFAULT 0,
    send_sms      INTEGER NOT NULL DEFAULT 0,
    notifications INTEGER NOT NULL DEFAULT 0,
    names         INTEGER NOT NULL DEFAULT 0,
    composer      INTEGER NOT NULL DEFAULT 0,
    tell          INTEGER NOT NULL DEFAULT 0,
    read_since    INTEGER                            -- messages from then on are news; NULL: not begun
) STRICT;
INSERT INTO sqlite_sequence (name, seq) VALUES ('phones', 1);

-- This machine as the phones know it. One row, made when the first search begins.
CREATE TABLE phone_identity (
    one         INTEGER PRIMARY KEY CHECK (one = 1),
    device      TEXT NOT NULL,
    certificate BLOB NOT NULL,
    key         BLOB NOT NULL
) STRICT;

-- Whoever turns reading off, and by whatever way: turning it on again begins anew, so that what came meanwhile is not
-- dumped in.
CREATE TRIGGER phones_off_by_update AFTER UPDATE ON settings WHEN new.key = 'sms_enabled' AND new.value <> 'true' BEGIN
    UPDATE phones SET read_since = NULL;
END;
CREATE TRIGGER phones_off_by_insert AFTER INSERT ON settings WHEN new.key = 'sms_enabled' AND new.value <> 'true' BEGIN
    UPDATE phones SET read_since = NULL;
END;
CREATE TRIGGER phones_off_by_delete AFTER DELETE ON settings WHEN old.key = 'sms_enabled' BEGIN
    UPDATE phones SET read_since = NULL;
END;
CREATE TRIGGER phones_off_one AFTER UPDATE OF read_sms ON phones WHEN new.read_sms = 0 BEGIN
    UPDATE phones SET read_since = NULL WHERE source = new.source;
END;
