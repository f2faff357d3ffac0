-- What a run that nobody watched had to say. Answering again leaves it alone, and only these are trimmed.
ALTER TABLE entries ADD COLUMN report INTEGER NOT NULL DEFAULT 0;

-- A report landed that the person has not looked at; and the entry of which they have not been notified, or 0.
ALTER TABLE conversations ADD COLUMN unseen INTEGER NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN unnotified INTEGER NOT NULL DEFAULT 0;

-- Reports that wait until nobody answers in the heartbeat's conversation, oldest first.
CREATE TABLE reports_waiting (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    said        TEXT NOT NULL,
    answered_by TEXT,
    tokens_in   INTEGER NOT NULL,
    tokens_out  INTEGER NOT NULL,
    at          INTEGER NOT NULL, -- epoch ms
    raises      INTEGER NOT NULL  -- the person is told of it
) STRICT;

-- Of what older versions kept, an answer with no question or call right before it is a report.
UPDATE entries SET report = 1 WHERE id IN (
    SELECT id FROM (
        SELECT e.id, e.message, lag(e.message) OVER (PARTITION BY e.conversation ORDER BY e.id) AS before
        FROM entries e JOIN conversations c ON c.id = e.conversation WHERE c.kind = 'heartbeat'
    )
    WHERE json_extract(message, '$.role') = 'assistant' AND json_extract(message, '$.calls') IS NULL
      AND (before IS NULL
           OR (json_extract(before, '$.role') = 'assistant' AND json_extract(before, '$.calls') IS NULL))
);
