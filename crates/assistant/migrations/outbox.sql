-- Everything that another person would receive. A row leaves this table only by a person's hand, or, once it is
-- finished, to make room.
CREATE TABLE drafts (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    channel       TEXT NOT NULL,
    recipient     TEXT NOT NULL,
    body          TEXT NOT NULL,
    in_reply_to   INTEGER,          -- the message that is answered
    first_contact INTEGER NOT NULL, -- nothing was ever exchanged with this number, as far as we know
    origin        TEXT NOT NULL CHECK (origin IN ('chat', 'heartbeat', 'task')),
    conversation  INTEGER NOT NULL, -- 0: none
    created_at    INTEGER NOT NULL, -- epoch ms
    status        TEXT NOT NULL CHECK (status IN ('PENDING', 'SENDING', 'SENT', 'FAILED', 'UNKNOWN')),
    reason        TEXT NOT NULL DEFAULT '',
    attempts      INTEGER NOT NULL DEFAULT 0
) STRICT;

-- One row per winning tap, written before the phone is called. They stay when the draft is gone.
CREATE TABLE attempts (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    draft     INTEGER NOT NULL,
    recipient TEXT NOT NULL,
    digest    TEXT NOT NULL,    -- of what was shown and approved
    at        INTEGER NOT NULL, -- epoch ms
    outcome   TEXT CHECK (outcome IN ('sent', 'not_sent', 'unknown')) -- NULL: under way, or died
) STRICT;
CREATE INDEX attempts_by_draft ON attempts (draft, id);
CREATE INDEX attempts_by_recipient ON attempts (recipient);
