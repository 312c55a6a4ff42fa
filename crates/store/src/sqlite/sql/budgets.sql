-- Budgets of periods: accounts, leases and usage. Sums are added as floating-point numbers, which are exact up to 2^53:
-- a sum of integers that overflows is an error, and a provider may claim any number of tokens.

-- name: account
-- The stored amounts of an account, and what was used in its period. Usage has a row for each month beside those of days.
SELECT coalesce(account.tokens, 0), coalesce(account.cost, 0), coalesce(account.model_calls, 0),
    coalesce(account.tool_calls, 0), coalesce(account.time_ms, 0), coalesce(raised_tokens, 0),
    coalesce(raised_cost, 0), coalesce(raised_model_calls, 0), coalesce(raised_tool_calls, 0),
    coalesce(raised_time_ms, 0), coalesce(is_warned, 0), coalesce(edition, 0),
    past.tokens, past.cost, past.model_calls, past.tool_calls, past.time_ms
FROM (
    SELECT CAST(min(total(tokens), 9e18) AS INTEGER) AS tokens, CAST(min(total(cost), 9e18) AS INTEGER) AS cost,
        CAST(min(total(model_calls), 9e18) AS INTEGER) AS model_calls,
        CAST(min(total(tool_calls), 9e18) AS INTEGER) AS tool_calls,
        CAST(min(total(time_ms), 9e18) AS INTEGER) AS time_ms
    FROM usage_days WHERE organization = ?1 AND day = ?3 AND (?2 = '' OR workflow = ?2)
) AS past
LEFT JOIN budget_accounts AS account
    ON account.organization = ?1 AND account.workflow = ?2 AND account.period = ?3

-- name: account_set
-- Raises of another edition of the budget end.
INSERT INTO budget_accounts
    (organization, workflow, period, tokens, cost, model_calls, tool_calls, time_ms, is_warned, edition)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
ON CONFLICT DO UPDATE SET tokens = ?4, cost = ?5, model_calls = ?6, tool_calls = ?7, time_ms = ?8, is_warned = ?9,
    raised_tokens = CASE WHEN edition = ?10 THEN raised_tokens ELSE 0 END,
    raised_cost = CASE WHEN edition = ?10 THEN raised_cost ELSE 0 END,
    raised_model_calls = CASE WHEN edition = ?10 THEN raised_model_calls ELSE 0 END,
    raised_tool_calls = CASE WHEN edition = ?10 THEN raised_tool_calls ELSE 0 END,
    raised_time_ms = CASE WHEN edition = ?10 THEN raised_time_ms ELSE 0 END, edition = ?10

-- name: account_add
UPDATE budget_accounts SET tokens = max(min(tokens + ?4, 9e18), -9e18), cost = max(min(cost + ?5, 9e18), -9e18),
    model_calls = max(min(model_calls + ?6, 9e18), -9e18), tool_calls = max(min(tool_calls + ?7, 9e18), -9e18),
    time_ms = max(min(time_ms + ?8, 9e18), -9e18)
WHERE organization = ?1 AND workflow = ?2 AND period = ?3

-- name: account_raise
INSERT INTO budget_accounts (organization, workflow, period, tokens, cost, model_calls, tool_calls, time_ms,
    raised_tokens, raised_cost, raised_model_calls, raised_tool_calls, raised_time_ms, edition)
VALUES (?1, ?2, ?3, 0, 0, 0, 0, 0, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT DO UPDATE SET
    raised_tokens = CASE WHEN edition = ?9 THEN max(raised_tokens, ?4) ELSE ?4 END,
    raised_cost = CASE WHEN edition = ?9 THEN max(raised_cost, ?5) ELSE ?5 END,
    raised_model_calls = CASE WHEN edition = ?9 THEN max(raised_model_calls, ?6) ELSE ?6 END,
    raised_tool_calls = CASE WHEN edition = ?9 THEN max(raised_tool_calls, ?7) ELSE ?7 END,
    raised_time_ms = CASE WHEN edition = ?9 THEN max(raised_time_ms, ?8) ELSE ?8 END, is_warned = 0, edition = ?9

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
FROM usage_days WHERE organization = ?1 AND day >= ?2 AND day <= ?3 AND length(day) = 10
GROUP BY period, subject HAVING ?6 IS NULL OR period < ?6 OR period = ?6 AND subject > ?7
ORDER BY period DESC, subject LIMIT ?8
