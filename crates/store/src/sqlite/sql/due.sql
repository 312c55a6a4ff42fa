SELECT execution, wake_at FROM heads
WHERE partition = ?1 AND wake_at <= ?2 AND (wake_at, execution) > (?3, ?4)
    AND wake_at IS NOT NULL AND quarantined IS NULL
ORDER BY wake_at, execution LIMIT ?5
