-- Format 5: the organisations of which something is pending are found without reading all that is.

CREATE INDEX executions_pending ON executions (organization) WHERE status = 'pending' AND organization IS NOT NULL;
