-- Format 12: an index of unfinished executions by definition.

CREATE INDEX executions_unfinished ON executions (organization_key, workflow_id_key, workflow_hash)
    WHERE completed_at IS NULL AND organization_key IS NOT NULL AND workflow_id_key IS NOT NULL;
