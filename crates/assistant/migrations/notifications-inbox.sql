-- The inbox page: what the user did with a notification in Kai. A changed one counts as new.
ALTER TABLE notifications ADD COLUMN opened INTEGER NOT NULL DEFAULT 0;
ALTER TABLE notifications ADD COLUMN put_away INTEGER NOT NULL DEFAULT 0; -- dismissed, or only the repetition of an SMS
