-- Format 4: the organisations of which something is pending are found without reading all that is.

CREATE INDEX executions_pending ON executions (organization_key, execution)
    WHERE status = CAST('pending' AS BYTEA) AND organization_key IS NOT NULL;
