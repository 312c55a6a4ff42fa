-- inspect_newest
SELECT execution, sequence FROM frames ORDER BY number DESC LIMIT 1
