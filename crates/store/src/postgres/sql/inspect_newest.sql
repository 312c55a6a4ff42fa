-- Keys start with the time of their creation; frames are only ordered within their execution.
SELECT heads.execution, heads.sequence
FROM (SELECT execution FROM executions ORDER BY execution DESC LIMIT $1) AS newest
JOIN heads ON heads.execution = newest.execution
