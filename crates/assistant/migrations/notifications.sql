-- What other apps showed the person within the last day.
CREATE TABLE notifications (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT NOT NULL UNIQUE, -- the platform's key: the same again is an update
    package_name TEXT NOT NULL,
    posted_at    INTEGER NOT NULL,     -- epoch milliseconds
    closed       INTEGER NOT NULL,     -- it is no longer shown
    record       TEXT NOT NULL         -- JSON
) STRICT;
CREATE INDEX notifications_of_app ON notifications (package_name, posted_at, seq);
CREATE INDEX notifications_by_age ON notifications (posted_at, seq);

-- How the listening goes: one row of JSON.
CREATE TABLE notification_sync (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    state TEXT NOT NULL
) STRICT;

-- When nothing could be heard, though it should have been.
CREATE TABLE notification_gaps (
    began INTEGER NOT NULL,
    ended INTEGER, -- NULL: it lasts
    why   TEXT NOT NULL
) STRICT;
