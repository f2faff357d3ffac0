-- Only hashes: who reads the store learns nothing that opens the page.
CREATE TABLE signin_links (
    hash       BLOB PRIMARY KEY,
    expires_at INTEGER NOT NULL -- epoch ms
) STRICT, WITHOUT ROWID;
CREATE TABLE sessions (
    hash       BLOB PRIMARY KEY,
    expires_at INTEGER NOT NULL -- epoch ms
) STRICT, WITHOUT ROWID;
