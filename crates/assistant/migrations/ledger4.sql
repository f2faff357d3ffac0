-- Chunks lie in the order in which they came: a new one is written at the end, and not between others, which would have to
-- move. Only its hash has a place among the others.
CREATE TABLE ledger_chunks_new (
    id    INTEGER PRIMARY KEY,
    hash  BLOB NOT NULL UNIQUE,
    bytes BLOB NOT NULL
) STRICT;
INSERT INTO ledger_chunks_new (hash, bytes) SELECT hash, bytes FROM ledger_chunks;
DROP TABLE ledger_chunks;
ALTER TABLE ledger_chunks_new RENAME TO ledger_chunks;

-- A day of the ledger is found without reading all of it, by the records with which another hour begins. An index of all
-- times would cost a page more for every record.
CREATE TABLE ledger_hours (
    seq  INTEGER PRIMARY KEY,
    hour INTEGER NOT NULL -- since the epoch
) STRICT;
INSERT INTO ledger_hours (seq, hour)
SELECT seq, hour
FROM (SELECT seq, at / 3600000 AS hour, lag(at / 3600000) OVER (ORDER BY seq) AS before FROM ledger)
WHERE before IS NULL OR before <> hour;
DROP INDEX ledger_at;
