-- 1 where the server did not say what the run cost, so that the tokens are an estimate.
ALTER TABLE heartbeat_log ADD COLUMN estimated INTEGER NOT NULL DEFAULT 0;
