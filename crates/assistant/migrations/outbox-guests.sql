-- Guests stage drafts too. A check cannot be changed, so the column is made anew; no id is used twice that way.
ALTER TABLE drafts ADD COLUMN run TEXT NOT NULL DEFAULT 'chat' CHECK (run IN ('chat', 'heartbeat', 'task', 'guest'));
UPDATE drafts SET run = origin;
ALTER TABLE drafts DROP COLUMN origin;
ALTER TABLE drafts RENAME COLUMN run TO origin;
ALTER TABLE drafts ADD COLUMN guest TEXT; -- the name of the program that staged it, as claimed
