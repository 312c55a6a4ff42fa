-- Keys begin with the time at which they were made; frames have no order beyond that of their execution.
SELECT heads.execution, heads.sequence
FROM (SELECT execution FROM executions ORDER BY execution DESC LIMIT $1) AS newest
JOIN heads ON heads.execution = newest.execution
