-- What waits for the next heartbeat, queue by queue, oldest first.
CREATE TABLE pending (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT, -- never used twice: what was shown is forgotten by it
    queue    TEXT NOT NULL,
    identity TEXT NOT NULL,
    source   TEXT NOT NULL, -- whom a drop is counted for
    entry    TEXT NOT NULL, -- JSON
    UNIQUE (queue, identity)
) STRICT;

-- What the queues had no room for.
CREATE TABLE pending_dropped (
    queue  TEXT NOT NULL,
    source TEXT NOT NULL,
    count  INTEGER NOT NULL,
    PRIMARY KEY (queue, source)
) STRICT, WITHOUT ROWID;
