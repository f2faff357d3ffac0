-- A link that is handed to another program, whose arguments everybody on the machine can read, is only for browsers of
-- our own user.
ALTER TABLE signin_links ADD COLUMN own_user INTEGER NOT NULL DEFAULT 0;
-- The path of the page to which it leads.
ALTER TABLE signin_links ADD COLUMN leads_to TEXT NOT NULL DEFAULT '/';
