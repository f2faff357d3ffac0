-- Programs that asked Kai over MCP, each under the name by which it introduced itself.
CREATE TABLE guests (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT NOT NULL UNIQUE, -- as claimed, on one short line
    state      TEXT NOT NULL CHECK (state IN ('asked', 'allowed', 'blocked')),
    first_seen INTEGER NOT NULL,     -- epoch ms, both
    last_seen  INTEGER,              -- NULL: it was never here, the user made a token for it
    token      BLOB                  -- SHA-256 of the token with which it comes over HTTP
) STRICT;

-- What each of them did; only the newest are kept.
CREATE TABLE guest_deeds (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    guest  INTEGER NOT NULL,
    at     INTEGER NOT NULL, -- epoch ms
    tool   TEXT NOT NULL,
    kind   TEXT NOT NULL CHECK (kind IN ('read', 'drafted', 'failed')),
    number INTEGER NOT NULL  -- of messages that were read, or of the draft
) STRICT;
CREATE INDEX guest_deeds_by_guest ON guest_deeds (guest, id);
