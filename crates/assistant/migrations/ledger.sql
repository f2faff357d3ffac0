-- Append-only: what left this machine, what was done, what was clicked. Each record's hash covers the one before.
CREATE TABLE ledger (
    seq    INTEGER PRIMARY KEY AUTOINCREMENT,
    at     INTEGER NOT NULL, -- epoch ms
    record TEXT NOT NULL,    -- JSON
    hash   BLOB NOT NULL
) STRICT;

-- The bytes of requests, cut where their content says so and kept once: a long conversation repeats itself.
CREATE TABLE ledger_chunks (
    hash  BLOB PRIMARY KEY,
    bytes BLOB NOT NULL
) STRICT, WITHOUT ROWID;
