-- The window that the person set for a model; null where it is for Kai to find out.
ALTER TABLE models ADD COLUMN context INTEGER;

-- What is known of a window by the model's address, so that it also holds for models that nobody added.
CREATE TABLE model_windows (
    base_url TEXT NOT NULL,
    model    TEXT NOT NULL,
    told     INTEGER, -- tokens, as the server says
    asked_at INTEGER, -- epoch ms: when the server was last asked, whether it answered or not
    learned  INTEGER, -- tokens, from a refusal
    PRIMARY KEY (base_url, model)
) STRICT, WITHOUT ROWID;
