DELETE FROM pending_approvals WHERE execution = $1
