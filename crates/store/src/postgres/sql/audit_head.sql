SELECT organization, number, hash, seal FROM audit_heads WHERE organization_key = $1
