UPDATE heads SET partition = new.partition
FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BIGINT[])) AS new (execution, partition)
WHERE heads.execution = new.execution AND heads.partition <> new.partition
