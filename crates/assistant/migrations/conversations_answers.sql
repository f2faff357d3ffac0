-- The model that the user chose for a conversation; NULL for the usual order.
ALTER TABLE conversations ADD COLUMN model TEXT;
-- How long a model took to say this, in ms; NULL where nobody measured it.
ALTER TABLE entries ADD COLUMN took INTEGER;
