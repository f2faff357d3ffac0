-- Whether there is an unseen report is a fact about its conversation, and goes with it.
UPDATE conversations SET unseen = 1, unnotified =
        (SELECT CASE WHEN unnotified = 1 THEN coalesce((SELECT max(entries.id) FROM entries WHERE entries.conversation = heartbeat.report), 0) ELSE 0 END
         FROM heartbeat)
    WHERE id = (SELECT report FROM heartbeat);
ALTER TABLE heartbeat DROP COLUMN report;
ALTER TABLE heartbeat DROP COLUMN unnotified;
