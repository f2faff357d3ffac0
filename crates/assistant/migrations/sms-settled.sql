-- Whether the phone was asked after the last second of the range was over, so that nothing of that second is missing.
ALTER TABLE sms_threads ADD COLUMN settled INTEGER NOT NULL DEFAULT 0;
