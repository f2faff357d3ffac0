-- What Kai is to do later. A task leaves this table by the person's hand, or, once it is finished, to make room.
CREATE TABLE tasks (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    description TEXT NOT NULL,
    prompt      TEXT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('TIME', 'CRON', 'HEARTBEAT')),
    execute_at  INTEGER,          -- epoch ms, of a TIME
    cron        TEXT,             -- of a CRON
    missed      TEXT NOT NULL CHECK (missed IN ('RUN_ONCE', 'SKIP')),
    tainted     INTEGER NOT NULL, -- made in a request that held strangers' text
    status      TEXT NOT NULL CHECK (status IN ('PENDING', 'RUNNING', 'COMPLETED', 'SKIPPED')),
    next_at     INTEGER,          -- epoch ms; NULL: does not come by itself
    reckoned_at INTEGER,          -- when, and in which zone, next_at was found
    zone        TEXT,
    failures    INTEGER NOT NULL DEFAULT 0, -- since it last worked
    created_at  INTEGER NOT NULL, -- epoch ms
    finished_at INTEGER           -- epoch ms; NULL: it will come
) STRICT;

-- The last runs of each task. A row is there before its run starts.
CREATE TABLE task_runs (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    task       INTEGER NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    due_at     INTEGER NOT NULL, -- epoch ms
    started_at INTEGER NOT NULL, -- epoch ms
    outcome    TEXT CHECK (outcome IN ('OK', 'FAILED', 'INTERRUPTED', 'SKIPPED')), -- NULL: under way, or died
    reason     TEXT NOT NULL DEFAULT '',
    tokens     INTEGER NOT NULL DEFAULT 0,
    ms         INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX task_runs_by_task ON task_runs (task, id);
