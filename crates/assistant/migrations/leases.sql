-- Who does something right now that only one may do at a time, in whatever process.
CREATE TABLE leases (
    name   TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    pid    INTEGER NOT NULL,
    until  INTEGER NOT NULL -- epoch ms
) STRICT, WITHOUT ROWID;
