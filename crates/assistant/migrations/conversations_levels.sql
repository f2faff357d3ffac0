-- The level of a conversation: 0 nothing, 1 web (pages, attachments), 2 people (SMS, notifications). It never goes
-- down: what was said since may tell of it. What was called tainted came from people.
ALTER TABLE conversations ADD COLUMN level INTEGER NOT NULL DEFAULT 0;
UPDATE conversations SET level = 2 WHERE tainted <> 0 OR kind = 'heartbeat';
ALTER TABLE conversations DROP COLUMN tainted;
