-- A memory enters a prompt once the person has confirmed its words. One that was stored after reading what people wrote,
-- and so was called tainted, still waits for that.
ALTER TABLE memories ADD COLUMN confirmed INTEGER NOT NULL DEFAULT 1;
UPDATE memories SET confirmed = 0 WHERE tainted <> 0;
ALTER TABLE memories DROP COLUMN tainted;
