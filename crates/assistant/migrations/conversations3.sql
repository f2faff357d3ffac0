-- May its model see one-time codes: 0 no, 1 the person said yes, 2 they said yes once and took it back.
ALTER TABLE conversations ADD COLUMN codes INTEGER NOT NULL DEFAULT 0;
-- The person stopped the model in the middle of this.
ALTER TABLE entries ADD COLUMN stopped INTEGER NOT NULL DEFAULT 0;
