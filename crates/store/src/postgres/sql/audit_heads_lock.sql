-- Locked in key order against deadlocks. Other writers of these logs wait until the transaction ends.
SELECT organization, number, hash, seal FROM audit_heads
WHERE organization_key = ANY ($1) ORDER BY organization_key FOR UPDATE
