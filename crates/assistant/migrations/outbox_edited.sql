-- The digest of what was staged, if the user has edited the draft since: a run that is repeated must not stage it again.
ALTER TABLE drafts ADD COLUMN staged TEXT;
-- When the user discarded it, epoch ms. They can take that back for a moment; then the row goes.
ALTER TABLE drafts ADD COLUMN discarded_at INTEGER;
