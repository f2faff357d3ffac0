-- The user wrote it themselves.
ALTER TABLE drafts ADD COLUMN own INTEGER NOT NULL DEFAULT 0;
