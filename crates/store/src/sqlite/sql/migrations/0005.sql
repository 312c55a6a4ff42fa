-- Format 5: an index to find organizations with pending executions without reading all pending rows.

CREATE INDEX executions_pending ON executions (organization) WHERE status = 'pending' AND organization IS NOT NULL;
