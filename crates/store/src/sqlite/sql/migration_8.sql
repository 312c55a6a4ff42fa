-- Format 8: by which name an execution was started, and by which execution.

ALTER TABLE executions ADD COLUMN parent_id TEXT;
ALTER TABLE executions ADD COLUMN workflow_name TEXT;
