-- The model that another one answered for, and why, as JSON; NULL where the first model answered.
ALTER TABLE entries ADD COLUMN instead TEXT;
