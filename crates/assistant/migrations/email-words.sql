-- The words of kept mails, so that a search does not have to read them all. The words are made by Kai, so the tokenizer
-- only has to split at blanks.
CREATE VIRTUAL TABLE email_words USING fts5(
    words, content = '', contentless_delete = 1, tokenize = 'ascii', prefix = '1 2'
);

-- Which mail has which row of the index. Rows follow the date, so that newest first can stop early.
CREATE TABLE email_rows (
    row      INTEGER PRIMARY KEY, -- received << 20 | n
    account  INTEGER NOT NULL,
    validity INTEGER NOT NULL,
    uid      INTEGER NOT NULL,
    UNIQUE (account, validity, uid)
) STRICT;
CREATE TRIGGER email_unindexed AFTER DELETE ON email_kept BEGIN
    DELETE FROM email_words WHERE rowid =
        (SELECT row FROM email_rows WHERE account = old.account AND validity = old.validity AND uid = old.uid);
    DELETE FROM email_rows WHERE account = old.account AND validity = old.validity AND uid = old.uid;
END;

-- Whether everything that is kept is indexed. What was kept before there was an index is indexed bit by bit.
CREATE TABLE email_indexed (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    complete INTEGER NOT NULL
) STRICT;
INSERT INTO email_indexed (one, complete) SELECT 1, NOT EXISTS (SELECT 1 FROM email_kept);
