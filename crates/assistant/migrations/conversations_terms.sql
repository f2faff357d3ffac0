-- The index of what people said and read once more, now also by the first one and two characters of each word.
DROP TRIGGER entries_text_follows;
CREATE VIRTUAL TABLE entries_text_new USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2', prefix = '1 2');
INSERT INTO entries_text_new (rowid, text) SELECT rowid, text FROM entries_text;
DROP TABLE entries_text;
ALTER TABLE entries_text_new RENAME TO entries_text;
CREATE TRIGGER entries_text_follows AFTER DELETE ON entries BEGIN
    DELETE FROM entries_text WHERE rowid = old.id;
END;

-- Its words in order, each with its places. It holds nothing of its own.
CREATE VIRTUAL TABLE chat_terms USING fts5vocab(entries_text, instance);
