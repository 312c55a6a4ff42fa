-- Format 11: an index of unfinished executions by definition.

CREATE INDEX executions_unfinished ON executions (organization, workflow_id, workflow_hash)
    WHERE completed_at IS NULL AND organization IS NOT NULL AND workflow_id IS NOT NULL;
