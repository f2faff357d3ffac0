-- Where the chain ends, kept outside of it: a record cut off at the end is missed.
CREATE TABLE ledger_head (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    seq  INTEGER NOT NULL,
    hash BLOB NOT NULL
) STRICT;
INSERT INTO ledger_head (one, seq, hash) SELECT 1, seq, hash FROM ledger ORDER BY seq DESC LIMIT 1;

-- Where the chain begins since older records were let go.
CREATE TABLE ledger_checkpoint (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    seq  INTEGER NOT NULL,
    hash BLOB NOT NULL
) STRICT;
