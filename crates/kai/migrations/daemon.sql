-- What the daemon leaves for its successor and for commands: when it last ticked, where its page was.
CREATE TABLE daemon (
    fact  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
