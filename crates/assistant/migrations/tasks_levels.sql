-- The level of the request in which a task was made: 0 nothing, 1 web, 2 people. What was called tainted came from people.
ALTER TABLE tasks ADD COLUMN level INTEGER NOT NULL DEFAULT 0;
UPDATE tasks SET level = 2 WHERE tainted <> 0;
ALTER TABLE tasks DROP COLUMN tainted;
