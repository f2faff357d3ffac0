-- Conversations that the user has just deleted on the command line, until it is too late to take that back.
CREATE TABLE conversations_deleted (
    number     INTEGER PRIMARY KEY,
    deleted_at INTEGER NOT NULL,
    content    TEXT NOT NULL
) STRICT;
