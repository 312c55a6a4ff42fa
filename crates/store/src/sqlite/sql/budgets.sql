-- Budgets of periods: accounts, leases and usage. Sums are added as floating-point numbers, which are exact up to 2^53:
-- a sum of integers that overflows is an error, and a provider may claim any number of tokens.

-- name: account_open
-- The account of a new budget contains what was used in its period before.
INSERT INTO budget_accounts (organization, workflow, period, tokens, cost, model_calls, tool_calls, time_ms)
SELECT ?1, ?2, ?3, CAST(min(total(tokens), 9e18) AS INTEGER), CAST(min(total(cost), 9e18) AS INTEGER),
    CAST(min(total(model_calls), 9e18) AS INTEGER), CAST(min(total(tool_calls), 9e18) AS INTEGER),
    CAST(min(total(time_ms), 9e18) AS INTEGER)
FROM usage_days WHERE organization = ?1 AND (?2 = '' OR workflow = ?2) AND day >= ?3 AND day < ?3 || '~'
    AND NOT EXISTS (SELECT 1 FROM budget_accounts WHERE organization = ?1 AND workflow = ?2 AND period = ?3)
ON CONFLICT DO NOTHING

-- name: account
SELECT tokens, cost, model_calls, tool_calls, time_ms,
    raised_tokens, raised_cost, raised_model_calls, raised_tool_calls, raised_time_ms, is_warned
FROM budget_accounts WHERE organization = ?1 AND workflow = ?2 AND period = ?3

-- name: account_set
UPDATE budget_accounts
SET tokens = ?4, cost = ?5, model_calls = ?6, tool_calls = ?7, time_ms = ?8, is_warned = ?9
WHERE organization = ?1 AND workflow = ?2 AND period = ?3

-- name: account_raise
UPDATE budget_accounts SET raised_tokens = max(raised_tokens, ?4), raised_cost = max(raised_cost, ?5),
    raised_model_calls = max(raised_model_calls, ?6), raised_tool_calls = max(raised_tool_calls, ?7),
    raised_time_ms = max(raised_time_ms, ?8), is_warned = 0
WHERE organization = ?1 AND workflow = ?2 AND period = ?3

-- name: has_ended
SELECT ended FROM heads WHERE execution = ?1

-- name: leases
SELECT number, workflow, period, tokens, cost, model_calls, tool_calls, time_ms, warns, is_returned, organization
FROM budget_leases WHERE execution = ?1 ORDER BY number, workflow, period

-- name: lease_insert
INSERT INTO budget_leases
    (execution, number, workflow, period, organization, tokens, cost, model_calls, tool_calls, time_ms, warns)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)

-- name: leases_forget
-- The last lease stays, so that a late request of an earlier one is known to be late.
DELETE FROM budget_leases WHERE execution = ?1 AND number < ?2 AND is_returned = 1

-- name: lease_return
UPDATE budget_leases SET is_returned = 1 WHERE execution = ?1 AND number = ?2

-- name: leases_remove
DELETE FROM budget_leases WHERE execution = ?1

-- name: usage_add
-- A cell ends at ?10, which no new amount exceeds either.
INSERT INTO usage_days (organization, day, workflow, shard, tokens, cost, model_calls, tool_calls, time_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT DO UPDATE SET tokens = min(tokens + excluded.tokens, ?10), cost = min(cost + excluded.cost, ?10),
    model_calls = min(model_calls + excluded.model_calls, ?10),
    tool_calls = min(tool_calls + excluded.tool_calls, ?10), time_ms = min(time_ms + excluded.time_ms, ?10)

-- name: usage
SELECT substr(day, 1, ?4) AS period, CASE WHEN ?5 THEN workflow ELSE '' END AS subject,
    CAST(min(total(tokens), 9e18) AS INTEGER), CAST(min(total(cost), 9e18) AS INTEGER),
    CAST(min(total(model_calls), 9e18) AS INTEGER), CAST(min(total(tool_calls), 9e18) AS INTEGER),
    CAST(min(total(time_ms), 9e18) AS INTEGER)
FROM usage_days WHERE organization = ?1 AND day >= ?2 AND day <= ?3
GROUP BY period, subject HAVING ?6 IS NULL OR period < ?6 OR period = ?6 AND subject > ?7
ORDER BY period DESC, subject LIMIT ?8
