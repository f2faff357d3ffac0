-- What the result of a tool means besides its words, as the tool said: the level that it raises (as in conversations), and
-- the identities of the messages that it holds, as a JSON list. NULL for everything that is no result, and for results from
-- before there were these columns.
ALTER TABLE entries ADD COLUMN taint INTEGER;
ALTER TABLE entries ADD COLUMN mentions TEXT;
