INSERT INTO pending_approvals (execution, step, gate, organization, opened_at, expires_at, on_timeout)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT DO NOTHING
