-- However long it takes, for the whole of one transaction.
SET LOCAL statement_timeout = 0
