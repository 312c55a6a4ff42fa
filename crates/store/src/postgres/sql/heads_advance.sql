-- The rows are locked, and the conditions were checked before.
UPDATE heads SET sequence = new.sequence, hash = new.hash, seal = new.seal, wake_at = new.wake_at, ended = new.ended
FROM unnest(
    CAST($1 AS BYTEA[]), CAST($2 AS BIGINT[]), CAST($3 AS BYTEA[]), CAST($4 AS BYTEA[]), CAST($5 AS BIGINT[]),
    CAST($6 AS BOOLEAN[])
) AS new (execution, sequence, hash, seal, wake_at, ended)
WHERE heads.execution = new.execution
