-- Stored in a request that held strangers' text: whoever reads it is tainted by it.
ALTER TABLE memories ADD COLUMN tainted INTEGER NOT NULL DEFAULT 0;

-- What was proposed to become part of who Kai is, and what the person said to it.
CREATE TABLE promotions (
    key   TEXT PRIMARY KEY,
    text  TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('proposed', 'accepted', 'declined')),
    hits  INTEGER NOT NULL, -- the memory's, when it was proposed
    at    INTEGER NOT NULL  -- epoch ms
) STRICT, WITHOUT ROWID;
