CREATE TABLE conversations (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    kind       TEXT NOT NULL CHECK (kind IN ('chat', 'heartbeat')),
    title      TEXT NOT NULL,
    created_at INTEGER NOT NULL, -- epoch ms
    updated_at INTEGER NOT NULL  -- epoch ms
) STRICT;

-- Everything that was said, whole: calls with ids, arguments and signatures, results, who answered, tokens.
CREATE TABLE entries (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    message      TEXT NOT NULL,    -- JSON, provider-neutral
    answered_by  TEXT,             -- the model's label, for what a model said
    tokens_in    INTEGER,
    tokens_out   INTEGER,
    at           INTEGER NOT NULL  -- epoch ms
) STRICT;
CREATE INDEX entries_by_conversation ON entries (conversation, id);

-- What people said and read, for search; its rowid is the entry's id.
CREATE VIRTUAL TABLE entries_text USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2');
CREATE TRIGGER entries_text_follows AFTER DELETE ON entries BEGIN
    DELETE FROM entries_text WHERE rowid = old.id;
END;
