-- The models to ask, in the order of `position`. The store is encrypted, so the keys may lie here.
CREATE TABLE models (
    name     TEXT PRIMARY KEY,
    position INTEGER NOT NULL,
    preset   TEXT NOT NULL,
    base_url TEXT NOT NULL,
    model    TEXT NOT NULL,
    key      TEXT
) STRICT, WITHOUT ROWID;
