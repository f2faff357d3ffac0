-- MCP servers that the user added. Secrets and tokens are as safe as everything else in this encrypted store.
CREATE TABLE mcp_servers (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    -- How it is reached, as JSON, and its headers or environment variables, as JSON.
    transport TEXT NOT NULL,
    secrets TEXT NOT NULL,
    tokens TEXT,
    enabled INTEGER NOT NULL DEFAULT 1,
    added INTEGER NOT NULL
) STRICT;

-- Their tools: as the user approved each, and as the server describes it now.
CREATE TABLE mcp_tools (
    server INTEGER NOT NULL REFERENCES mcp_servers (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    offered_as TEXT NOT NULL UNIQUE,
    approved TEXT,
    latest TEXT,
    enabled INTEGER NOT NULL DEFAULT 1,
    dont_ask INTEGER NOT NULL DEFAULT 0,
    in_tasks INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (server, name)
) STRICT, WITHOUT ROWID;
