-- Whether there is an unseen report is a fact about its conversation, and goes with it.
UPDATE conversations SET unseen = 1, unnotified = (SELECT unnotified FROM heartbeat)
    WHERE id = (SELECT report FROM heartbeat);
ALTER TABLE heartbeat DROP COLUMN report;
ALTER TABLE heartbeat DROP COLUMN unnotified;
