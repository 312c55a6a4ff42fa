UPDATE inbox SET partition = new.partition
FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BIGINT[])) AS new (execution, partition)
WHERE inbox.execution = new.execution AND inbox.partition <> new.partition
