DELETE FROM pending_approvals WHERE execution = ANY ($1)
