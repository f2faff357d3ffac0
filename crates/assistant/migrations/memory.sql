CREATE TABLE memories (
    key        TEXT PRIMARY KEY,
    content    TEXT NOT NULL,
    category   TEXT NOT NULL CHECK (category IN ('GENERAL', 'LEARNING', 'ERROR', 'PREFERENCE')),
    hits       INTEGER NOT NULL DEFAULT 0,
    source     TEXT NOT NULL,
    created_at INTEGER NOT NULL, -- epoch ms
    updated_at INTEGER NOT NULL  -- epoch ms
) STRICT, WITHOUT ROWID;
