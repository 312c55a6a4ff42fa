-- Messages come and go, and rows that SQLite has moved have left copies. Deleting all rows of the table clears its
-- pages.
CREATE TEMP TABLE waiting AS SELECT * FROM inbox;
DELETE FROM inbox;
INSERT INTO inbox SELECT * FROM waiting ORDER BY number;
DROP TABLE waiting;
