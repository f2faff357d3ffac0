-- The words of the index in order, each with its places. It holds nothing of its own.
CREATE VIRTUAL TABLE sms_terms USING fts5vocab(sms_words, instance);

-- Every number in the archive once: there are far fewer numbers than messages.
CREATE TABLE sms_numbers (
    number TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
INSERT INTO sms_numbers SELECT DISTINCT number FROM sms_archive WHERE number > '';
CREATE TRIGGER sms_number_known AFTER INSERT ON sms_archive WHEN new.number > '' BEGIN
    INSERT OR IGNORE INTO sms_numbers (number) VALUES (new.number);
END;
CREATE TRIGGER sms_number_gone AFTER DELETE ON sms_archive
WHEN NOT EXISTS (SELECT 1 FROM sms_archive WHERE number = old.number) BEGIN
    DELETE FROM sms_numbers WHERE number = old.number;
END;

-- A phone's messages whose texts are not kept: the newest of all that it received is found among these and the others.
CREATE INDEX sms_archive_without_text ON sms_archive (source) WHERE folder = 1 AND body IS NULL;
