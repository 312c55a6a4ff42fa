-- Format 7: by which name an execution was started, and by which execution.

ALTER TABLE executions ADD COLUMN parent_id BYTEA;
ALTER TABLE executions ADD COLUMN workflow_name BYTEA;
