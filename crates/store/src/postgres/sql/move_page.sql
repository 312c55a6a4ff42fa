(SELECT execution FROM heads WHERE execution > $1 ORDER BY execution LIMIT $2)
UNION
(SELECT execution FROM inbox WHERE execution > $1 ORDER BY execution LIMIT $2)
ORDER BY execution LIMIT $2
