-- What the user typed while an answer was being written. Each is sent once, after that answer, in this order.
CREATE TABLE queued (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    text         TEXT NOT NULL,
    files        TEXT NOT NULL DEFAULT '[]', -- the ids of its files in staged_attachments
    held         INTEGER NOT NULL DEFAULT 0 -- 1: the user is editing it; 2: and its turn came meanwhile
) STRICT;
-- A file goes with its message.
CREATE TRIGGER queued_files AFTER DELETE ON queued BEGIN
    DELETE FROM staged_attachments WHERE id IN (SELECT value FROM json_each(OLD.files));
END;
CREATE INDEX queued_by_conversation ON queued (conversation, id);
