-- Alarms that have not rung. One that rings is deleted first.
CREATE TABLE alarms (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    due_at INTEGER NOT NULL, -- epoch ms
    label  TEXT NOT NULL     -- empty: none was given
) STRICT;
