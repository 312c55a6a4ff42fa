-- Stops at the row that reaches $4 bytes.
SELECT number, organization, at, actor, action, target, detail, hash FROM (
    SELECT *, octet_length(target) + octet_length(detail) AS own,
        sum(octet_length(target) + octet_length(detail)) OVER (ORDER BY number) AS bytes
    FROM audit WHERE organization_key = $1 AND number > $2
    ORDER BY number LIMIT $3
) AS counted
WHERE bytes - own < $4 ORDER BY number
