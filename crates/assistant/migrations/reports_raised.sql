-- The entry of the report that raised the banner last, or 0, so that the banner can say what it is about.
ALTER TABLE conversations ADD COLUMN raised INTEGER NOT NULL DEFAULT 0;
