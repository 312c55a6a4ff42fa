-- Format 4: an index to find organizations with pending executions without reading all pending rows.

CREATE INDEX executions_pending ON executions (organization_key, execution)
    WHERE status = CAST('pending' AS BYTEA) AND organization_key IS NOT NULL;
