SELECT execution, id_key, start_key FROM executions WHERE id_key = ANY ($1)
UNION ALL
SELECT execution, id_key, start_key FROM executions WHERE start_key = ANY ($2)
