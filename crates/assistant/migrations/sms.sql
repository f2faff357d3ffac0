-- One row: what is known about the phone's inbox.
CREATE TABLE sms_sync (
    one          INTEGER PRIMARY KEY CHECK (one = 1),
    seeded       INTEGER NOT NULL DEFAULT 0, -- what lay in the inbox at the opt-in counts as seen
    mark_id      INTEGER,                    -- the message with the highest id that was seen …
    mark_date    INTEGER,                    -- … and its date and sender, because ids are re-used
    mark_address TEXT,
    newest       INTEGER,                    -- the latest date seen, for when the marked message is gone
    more         INTEGER NOT NULL DEFAULT 0, -- the last poll came back full
    last_sync    INTEGER,                    -- epoch ms, all of them
    last_attempt INTEGER,
    unread       INTEGER NOT NULL DEFAULT 0,
    last_error   TEXT
) STRICT;
INSERT INTO sms_sync (one) VALUES (1);

-- Messages of the newest moment that were seen, because dates are no finer than a second.
CREATE TABLE sms_seen (
    id      INTEGER NOT NULL,
    date    INTEGER NOT NULL,
    address TEXT NOT NULL,
    PRIMARY KEY (id, date, address)
) STRICT, WITHOUT ROWID;

-- Whoever turns reading off, and by whatever way (page, command, import): turning it on again seeds again, so that what
-- came meanwhile is not dumped in.
CREATE TRIGGER sms_off_by_update AFTER UPDATE ON settings WHEN new.key = 'sms_enabled' AND new.value <> 'true' BEGIN
    UPDATE sms_sync SET seeded = 0;
END;
CREATE TRIGGER sms_off_by_insert AFTER INSERT ON settings WHEN new.key = 'sms_enabled' AND new.value <> 'true' BEGIN
    UPDATE sms_sync SET seeded = 0;
END;
CREATE TRIGGER sms_off_by_delete AFTER DELETE ON settings WHEN old.key = 'sms_enabled' BEGIN
    UPDATE sms_sync SET seeded = 0;
END;
