-- Drafts of mails: what they have besides recipients and text, as JSON.
ALTER TABLE drafts ADD COLUMN mail TEXT;
-- A mail can be answered too. A check cannot be changed, so the column is made anew.
ALTER TABLE drafts ADD COLUMN answers TEXT CHECK (answers IN ('sms', 'notification', 'email'));
UPDATE drafts SET answers = reply_kind;
ALTER TABLE drafts DROP COLUMN reply_kind;
ALTER TABLE drafts RENAME COLUMN answers TO reply_kind;

-- Copies of sent mails that are not in the Sent folder yet.
CREATE TABLE mail_copies (
    id      INTEGER PRIMARY KEY,
    account INTEGER NOT NULL,
    mail    TEXT NOT NULL,    -- JSON
    sent_at INTEGER NOT NULL, -- epoch ms
    due_at  INTEGER NOT NULL  -- when it is tried next, epoch ms
) STRICT;
