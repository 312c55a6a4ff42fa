DELETE FROM remote_attempts
USING unnest(CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BIGINT[])) AS given (execution, step_key, number)
WHERE remote_attempts.execution = given.execution AND remote_attempts.step_key = given.step_key
    AND remote_attempts.number = given.number AND node = $4
