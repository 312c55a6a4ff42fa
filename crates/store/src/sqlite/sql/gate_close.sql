DELETE FROM pending_approvals WHERE execution = ?1 AND step = ?2 AND gate = ?3
