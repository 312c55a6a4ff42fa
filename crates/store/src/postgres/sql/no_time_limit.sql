-- Removes the time limits for one transaction.
SET LOCAL statement_timeout = 0
