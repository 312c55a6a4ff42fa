SELECT execution, step, gate, organization, opened_at, expires_at, on_timeout FROM pending_approvals
WHERE execution <= ?1 AND (execution < ?1 OR (step, gate) > (?2, ?3))
    AND organization = {organization}
ORDER BY execution DESC, step, gate LIMIT ?4
