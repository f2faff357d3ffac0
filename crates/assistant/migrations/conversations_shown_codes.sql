-- One-time codes that the model was shown in a conversation, as their letters and digits alone. They outlive the messages
-- that held them, and leave in no request once they are hidden again. What a conversation was shown before there was this
-- table is found in its messages.
CREATE TABLE shown_codes (
    conversation INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    code         TEXT NOT NULL,
    PRIMARY KEY (conversation, code)
) STRICT, WITHOUT ROWID;
