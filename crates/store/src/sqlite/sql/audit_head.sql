SELECT number, hash, seal FROM audit_heads WHERE organization = ?1
