-- What the user called a chat, in place of its first words (title), which still tell chats apart when they are imported.
ALTER TABLE conversations ADD COLUMN name TEXT;
-- It stands before the others in the list.
ALTER TABLE conversations ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
-- It is one question of a command line, and the list keeps it apart until it is continued.
ALTER TABLE conversations ADD COLUMN asked INTEGER NOT NULL DEFAULT 0;

-- Names, for search; the rowid is the conversation's id.
CREATE VIRTUAL TABLE conversation_names USING fts5 (name, tokenize = 'unicode61 remove_diacritics 2');
CREATE TRIGGER conversation_names_given AFTER UPDATE OF name ON conversations BEGIN
    DELETE FROM conversation_names WHERE rowid = old.id;
    INSERT INTO conversation_names (rowid, name) SELECT new.id, new.name WHERE new.name IS NOT NULL;
END;
CREATE TRIGGER conversation_names_gone AFTER DELETE ON conversations BEGIN
    DELETE FROM conversation_names WHERE rowid = old.id;
END;
