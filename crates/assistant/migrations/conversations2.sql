-- Something that strangers wrote was in a request of it. It never goes back: what was said since may tell of it.
ALTER TABLE conversations ADD COLUMN tainted INTEGER NOT NULL DEFAULT 0;
UPDATE conversations SET tainted = 1 WHERE kind = 'heartbeat';
