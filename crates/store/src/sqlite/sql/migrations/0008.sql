-- Format 8: the workflow's name at the start of an execution, and the external name of the execution that started it.

ALTER TABLE executions ADD COLUMN parent_id TEXT;
ALTER TABLE executions ADD COLUMN workflow_name TEXT;
