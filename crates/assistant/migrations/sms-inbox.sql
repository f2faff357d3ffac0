-- The inbox page: what is listed, newest first, phone by phone.
ALTER TABLE sms_archive ADD COLUMN put_away INTEGER NOT NULL DEFAULT 0; -- the user dismissed it
CREATE INDEX sms_archive_received ON sms_archive (source) WHERE folder = 1 AND body IS NOT NULL;
CREATE INDEX sms_archive_put_away ON sms_archive (source) WHERE put_away = 1;

-- What the user did in Kai with messages of the phone that Kai runs on. The messages themselves are not kept.
CREATE TABLE sms_handled (
    id      INTEGER NOT NULL,
    date    INTEGER NOT NULL,
    address TEXT NOT NULL,    -- phones use ids again, so all three name a message
    away    INTEGER NOT NULL, -- 0: opened, 1: dismissed
    PRIMARY KEY (id, date, address)
) STRICT, WITHOUT ROWID;
CREATE INDEX sms_handled_by_date ON sms_handled (date);
