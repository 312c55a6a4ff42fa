-- Letters come and go, and what SQLite moved meanwhile has left copies. Emptying the table as a whole clears its pages.
CREATE TEMP TABLE waiting AS SELECT * FROM inbox;
DELETE FROM inbox;
INSERT INTO inbox SELECT * FROM waiting ORDER BY number;
DROP TABLE waiting;
