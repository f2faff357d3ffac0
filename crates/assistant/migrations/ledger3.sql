-- A day of the ledger is found without reading all of it.
CREATE INDEX ledger_at ON ledger (at);
