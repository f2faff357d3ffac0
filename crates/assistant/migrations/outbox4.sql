-- Drafts of several kinds, by any phone. What was there before is an SMS by source 1 and keeps its digest.
ALTER TABLE drafts ADD COLUMN phone INTEGER NOT NULL DEFAULT 1; -- the source that it leaves by
ALTER TABLE drafts ADD COLUMN app TEXT;                         -- whose notification is answered
ALTER TABLE drafts ADD COLUMN reply_kind TEXT CHECK (reply_kind IN ('sms', 'notification'));
ALTER TABLE drafts ADD COLUMN reply_to TEXT;                    -- the message that is answered
UPDATE drafts SET reply_kind = 'sms', reply_to = CAST(in_reply_to AS TEXT) WHERE in_reply_to IS NOT NULL;
ALTER TABLE drafts DROP COLUMN in_reply_to;
ALTER TABLE drafts ADD COLUMN composed_at INTEGER;              -- when it was opened on the phone, epoch ms

ALTER TABLE attempts ADD COLUMN phone INTEGER NOT NULL DEFAULT 1;
ALTER TABLE attempts ADD COLUMN way TEXT NOT NULL DEFAULT 'send' CHECK (way IN ('send', 'compose', 'reply'));
ALTER TABLE attempts ADD COLUMN handle TEXT;                    -- the reply id that was used
-- How many such messages the phone listed before it was asked, besides those of earlier attempts. NULL: nobody looked.
ALTER TABLE attempts ADD COLUMN foreign_before INTEGER;
CREATE INDEX attempts_by_handle ON attempts (handle) WHERE handle IS NOT NULL;
