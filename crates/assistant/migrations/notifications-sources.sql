-- Notifications of several sources: each has records, a state and gaps of its own. What was there is source 1's.
ALTER TABLE notifications ADD COLUMN source INTEGER NOT NULL DEFAULT 1;
DROP INDEX notifications_of_app;
CREATE INDEX notifications_of_app ON notifications (source, package_name, posted_at, seq);
CREATE INDEX notifications_of_source ON notifications (source, posted_at, seq);

ALTER TABLE notification_sync RENAME TO notification_sync_before;
CREATE TABLE notification_sync (
    source INTEGER PRIMARY KEY,
    state  TEXT NOT NULL -- JSON
) STRICT;
INSERT INTO notification_sync (source, state) SELECT 1, state FROM notification_sync_before;
DROP TABLE notification_sync_before;

ALTER TABLE notification_gaps ADD COLUMN source INTEGER NOT NULL DEFAULT 1;
