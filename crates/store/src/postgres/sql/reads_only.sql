-- For connections of an inspection, after session.sql: the server itself rejects writes.
SET default_transaction_read_only = on;
