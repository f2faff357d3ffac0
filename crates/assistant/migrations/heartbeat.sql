-- One row: where the heartbeat stands.
CREATE TABLE heartbeat (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    last_done  INTEGER,                    -- epoch ms of the last run that was answered or found nothing new
    last_try   INTEGER,                    -- epoch ms of the last run of any kind
    failures   INTEGER NOT NULL DEFAULT 0, -- in a row
    answered   TEXT NOT NULL DEFAULT '',   -- digest of tasks and candidates at the last answered run
    secret     BLOB NOT NULL,              -- what the marks around strangers' text are made of
    runs       INTEGER NOT NULL DEFAULT 0, -- ever
    day        TEXT NOT NULL DEFAULT '',   -- the local day whose tokens are counted
    spent      INTEGER NOT NULL DEFAULT 0,
    report     INTEGER,                    -- conversation of a report that was not looked at
    unnotified INTEGER NOT NULL DEFAULT 0  -- the report has not been notified yet
) STRICT;
INSERT INTO heartbeat (one, secret) VALUES (1, randomblob(32));

-- What the last runs came to.
CREATE TABLE heartbeat_log (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL, -- epoch ms
    outcome TEXT NOT NULL CHECK (outcome IN ('report', 'ok', 'nothing_new', 'failed')),
    reason  TEXT NOT NULL DEFAULT '',
    report  TEXT NOT NULL DEFAULT '', -- what was said, for the next prompts
    tokens  INTEGER NOT NULL DEFAULT 0,
    ms      INTEGER NOT NULL DEFAULT 0
) STRICT;
