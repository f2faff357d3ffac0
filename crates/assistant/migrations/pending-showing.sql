-- A heartbeat that is under way shows this entry.
ALTER TABLE pending ADD COLUMN showing INTEGER NOT NULL DEFAULT 0;

-- So many of these drops a heartbeat that is under way tells.
ALTER TABLE pending_dropped ADD COLUMN telling INTEGER NOT NULL DEFAULT 0;

-- Entries that made room while a heartbeat was showing them. They count as dropped until it is answered.
CREATE TABLE pending_pushed (
    seq    INTEGER PRIMARY KEY,
    queue  TEXT NOT NULL,
    source TEXT NOT NULL
) STRICT;
