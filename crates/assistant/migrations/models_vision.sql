-- Whether a model can see pictures, if the person said so.
ALTER TABLE models ADD COLUMN sees INTEGER;

-- Models whose server refused a picture.
CREATE TABLE blind_models (
    base_url TEXT NOT NULL,
    model    TEXT NOT NULL,
    PRIMARY KEY (base_url, model)
) STRICT, WITHOUT ROWID;
