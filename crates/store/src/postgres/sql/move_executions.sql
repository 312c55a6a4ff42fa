UPDATE executions SET partition = new.partition
FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BIGINT[])) AS new (execution, partition)
WHERE executions.execution = new.execution AND executions.partition <> new.partition
