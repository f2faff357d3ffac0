-- The words of the index in order, each with its places. It holds nothing of its own.
CREATE VIRTUAL TABLE email_terms USING fts5vocab(email_words, instance);

-- So that unread mails are counted without looking at all others.
CREATE INDEX email_kept_unread ON email_kept (received) WHERE seen = 0 AND opened = 0 AND away = 0;
