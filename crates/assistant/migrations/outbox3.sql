-- Has the person been told of it? Those that were there before are not announced again.
ALTER TABLE drafts ADD COLUMN announced INTEGER NOT NULL DEFAULT 0;
UPDATE drafts SET announced = 1;
