-- One row once the ledger's end was noted outside the store, beside the key: from then on a missing note is missed.
CREATE TABLE ledger_noted (
    one INTEGER PRIMARY KEY CHECK (one = 1)
) STRICT;
