-- In order, so that no two wait for each other. Whoever appends to one of these logs waits until the transaction ends.
SELECT organization, number, hash, seal FROM audit_heads
WHERE organization_key = ANY ($1) ORDER BY organization_key FOR UPDATE
