-- By which phone an entry came: the one with most waiting gives way when the queue is full, and its drops are its own.
ALTER TABLE pending ADD COLUMN phone INTEGER NOT NULL DEFAULT 1;
ALTER TABLE pending_pushed ADD COLUMN phone INTEGER NOT NULL DEFAULT 1;
ALTER TABLE pending_dropped RENAME TO pending_dropped_before;
CREATE TABLE pending_dropped (
    queue   TEXT NOT NULL,
    phone   INTEGER NOT NULL,
    source  TEXT NOT NULL,
    count   INTEGER NOT NULL,
    telling INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (queue, phone, source)
) STRICT, WITHOUT ROWID;
INSERT INTO pending_dropped (queue, phone, source, count, telling)
    SELECT queue, 1, source, count, telling FROM pending_dropped_before;
DROP TABLE pending_dropped_before;
