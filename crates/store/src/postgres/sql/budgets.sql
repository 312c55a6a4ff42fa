-- Budgets of periods: accounts, leases and usage. Sums are bounded, since a provider may claim any number of tokens.

-- name: accounts_open
INSERT INTO budget_accounts (organization, workflow, period, tokens, cost, model_calls, tool_calls, time_ms)
SELECT $1, asked.workflow, asked.period, 0, 0, 0, 0, 0
FROM unnest(CAST($2 AS BYTEA[]), CAST($3 AS TEXT[])) AS asked (workflow, period)
ORDER BY asked.workflow, asked.period COLLATE "C"
ON CONFLICT DO NOTHING

-- name: accounts_lock
SELECT workflow, period, tokens, cost, model_calls, tool_calls, time_ms,
    raised_tokens, raised_cost, raised_model_calls, raised_tool_calls, raised_time_ms, is_warned, edition
FROM budget_accounts
WHERE organization = $1 AND (workflow, period) IN (SELECT * FROM unnest(CAST($2 AS BYTEA[]), CAST($3 AS TEXT[])))
ORDER BY workflow, period FOR UPDATE

-- name: past
-- The usage of periods: it has a row for each month beside those of days.
SELECT asked.workflow, asked.period,
    CAST(least(coalesce(sum(past.tokens), 0), 9000000000000000000) AS BIGINT) AS tokens,
    CAST(least(coalesce(sum(past.cost), 0), 9000000000000000000) AS BIGINT) AS cost,
    CAST(least(coalesce(sum(past.model_calls), 0), 9000000000000000000) AS BIGINT) AS model_calls,
    CAST(least(coalesce(sum(past.tool_calls), 0), 9000000000000000000) AS BIGINT) AS tool_calls,
    CAST(least(coalesce(sum(past.time_ms), 0), 9000000000000000000) AS BIGINT) AS time_ms
FROM unnest(CAST($2 AS BYTEA[]), CAST($3 AS TEXT[])) AS asked (workflow, period)
LEFT JOIN usage_days AS past ON past.organization = $1 AND past.day = asked.period
    AND (asked.workflow = '' OR past.workflow = asked.workflow)
GROUP BY asked.workflow, asked.period

-- name: account
-- An account with the usage of its period.
SELECT CAST($2 AS BYTEA), CAST($3 AS TEXT), coalesce(account.tokens, 0), coalesce(account.cost, 0),
    coalesce(account.model_calls, 0), coalesce(account.tool_calls, 0), coalesce(account.time_ms, 0),
    coalesce(raised_tokens, 0), coalesce(raised_cost, 0), coalesce(raised_model_calls, 0),
    coalesce(raised_tool_calls, 0), coalesce(raised_time_ms, 0), coalesce(is_warned, FALSE), coalesce(edition, 0),
    past.tokens, past.cost, past.model_calls, past.tool_calls, past.time_ms
FROM (
    SELECT CAST(least(coalesce(sum(tokens), 0), 9000000000000000000) AS BIGINT) AS tokens,
        CAST(least(coalesce(sum(cost), 0), 9000000000000000000) AS BIGINT) AS cost,
        CAST(least(coalesce(sum(model_calls), 0), 9000000000000000000) AS BIGINT) AS model_calls,
        CAST(least(coalesce(sum(tool_calls), 0), 9000000000000000000) AS BIGINT) AS tool_calls,
        CAST(least(coalesce(sum(time_ms), 0), 9000000000000000000) AS BIGINT) AS time_ms
    FROM usage_days WHERE organization = $1 AND day = CAST($3 AS TEXT)
        AND (CAST($2 AS BYTEA) = '' OR workflow = CAST($2 AS BYTEA))
) AS past
LEFT JOIN budget_accounts AS account
    ON account.organization = $1 AND account.workflow = CAST($2 AS BYTEA) AND account.period = CAST($3 AS TEXT)

-- name: accounts_set
-- Raises of another edition of the budget end.
UPDATE budget_accounts SET tokens = new.tokens, cost = new.cost, model_calls = new.model_calls,
    tool_calls = new.tool_calls, time_ms = new.time_ms, is_warned = new.is_warned, edition = new.edition,
    raised_tokens = CASE WHEN budget_accounts.edition = new.edition THEN raised_tokens ELSE 0 END,
    raised_cost = CASE WHEN budget_accounts.edition = new.edition THEN raised_cost ELSE 0 END,
    raised_model_calls = CASE WHEN budget_accounts.edition = new.edition THEN raised_model_calls ELSE 0 END,
    raised_tool_calls = CASE WHEN budget_accounts.edition = new.edition THEN raised_tool_calls ELSE 0 END,
    raised_time_ms = CASE WHEN budget_accounts.edition = new.edition THEN raised_time_ms ELSE 0 END
FROM unnest(
    CAST($2 AS BYTEA[]), CAST($3 AS TEXT[]), CAST($4 AS BIGINT[]), CAST($5 AS BIGINT[]), CAST($6 AS BIGINT[]),
    CAST($7 AS BIGINT[]), CAST($8 AS BIGINT[]), CAST($9 AS BOOLEAN[]), CAST($10 AS BIGINT[])
) AS new (workflow, period, tokens, cost, model_calls, tool_calls, time_ms, is_warned, edition)
WHERE budget_accounts.organization = $1 AND budget_accounts.workflow = new.workflow
    AND budget_accounts.period = new.period

-- name: accounts_raise
INSERT INTO budget_accounts (organization, workflow, period, tokens, cost, model_calls, tool_calls, time_ms,
    raised_tokens, raised_cost, raised_model_calls, raised_tool_calls, raised_time_ms, edition)
SELECT new.organization, new.workflow, new.period, 0, 0, 0, 0, 0,
    new.tokens, new.cost, new.model_calls, new.tool_calls, new.time_ms, new.edition
FROM unnest(
    CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS TEXT[]), CAST($4 AS BIGINT[]), CAST($5 AS BIGINT[]),
    CAST($6 AS BIGINT[]), CAST($7 AS BIGINT[]), CAST($8 AS BIGINT[]), CAST($9 AS BIGINT[])
) AS new (organization, workflow, period, tokens, cost, model_calls, tool_calls, time_ms, edition)
ON CONFLICT (organization, workflow, period) DO UPDATE SET is_warned = FALSE, edition = excluded.edition,
    raised_tokens = CASE WHEN budget_accounts.edition = excluded.edition
        THEN greatest(budget_accounts.raised_tokens, excluded.raised_tokens) ELSE excluded.raised_tokens END,
    raised_cost = CASE WHEN budget_accounts.edition = excluded.edition
        THEN greatest(budget_accounts.raised_cost, excluded.raised_cost) ELSE excluded.raised_cost END,
    raised_model_calls = CASE WHEN budget_accounts.edition = excluded.edition
        THEN greatest(budget_accounts.raised_model_calls, excluded.raised_model_calls) ELSE excluded.raised_model_calls END,
    raised_tool_calls = CASE WHEN budget_accounts.edition = excluded.edition
        THEN greatest(budget_accounts.raised_tool_calls, excluded.raised_tool_calls) ELSE excluded.raised_tool_calls END,
    raised_time_ms = CASE WHEN budget_accounts.edition = excluded.edition
        THEN greatest(budget_accounts.raised_time_ms, excluded.raised_time_ms) ELSE excluded.raised_time_ms END

-- name: head_share
-- An execution cannot end before the transaction does.
SELECT ended FROM heads WHERE execution = $1 FOR SHARE

-- name: leases
SELECT number, workflow, period, tokens, cost, model_calls, tool_calls, time_ms, warns, is_returned
FROM budget_leases WHERE execution = $1 ORDER BY number, workflow, period

-- name: leases_insert
INSERT INTO budget_leases
    (execution, number, organization, workflow, period, tokens, cost, model_calls, tool_calls, time_ms, warns)
SELECT $1, $2, $3, * FROM unnest(
    CAST($4 AS BYTEA[]), CAST($5 AS TEXT[]), CAST($6 AS BIGINT[]), CAST($7 AS BIGINT[]), CAST($8 AS BIGINT[]),
    CAST($9 AS BIGINT[]), CAST($10 AS BIGINT[]), CAST($11 AS BOOLEAN[])
)

-- name: leases_forget
-- The last lease stays, so that a late request of an earlier one is known to be late.
DELETE FROM budget_leases WHERE execution = $1 AND number < $2 AND is_returned

-- name: leases_use
-- The usage of calls counts for the organization and its workflow, and replaces their blocks there. The budget of another
-- workflow keeps the amounts itself. Accounts are locked in key order against deadlocks.
WITH changed AS (
    UPDATE budget_leases SET is_returned = used.is_returned
    FROM unnest(
        CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BIGINT[]), CAST($4 AS BOOLEAN[]), CAST($5 AS BIGINT[]),
        CAST($6 AS BIGINT[]), CAST($7 AS BIGINT[]), CAST($8 AS BIGINT[]), CAST($9 AS BIGINT[]), CAST($10 AS BIGINT[]),
        CAST($11 AS BIGINT[]), CAST($12 AS BIGINT[]), CAST($13 AS BIGINT[]), CAST($14 AS BIGINT[])
    ) AS used (execution, own, number, is_returned, settled_tokens, settled_cost, settled_model_calls,
        settled_tool_calls, settled_time_ms, tokens, cost, model_calls, tool_calls, time_ms)
    WHERE budget_leases.execution = used.execution AND budget_leases.number = used.number
        AND NOT budget_leases.is_returned
    RETURNING budget_leases.organization, budget_leases.workflow, budget_leases.period,
        CASE WHEN used.is_returned THEN used.tokens - coalesce(budget_leases.tokens, 0) ELSE 0 END
            - CASE WHEN budget_leases.workflow IN ('', used.own) THEN used.settled_tokens ELSE 0 END AS tokens,
        CASE WHEN used.is_returned THEN used.cost - coalesce(budget_leases.cost, 0) ELSE 0 END
            - CASE WHEN budget_leases.workflow IN ('', used.own) THEN used.settled_cost ELSE 0 END AS cost,
        CASE WHEN used.is_returned THEN used.model_calls - coalesce(budget_leases.model_calls, 0) ELSE 0 END
            - CASE WHEN budget_leases.workflow IN ('', used.own) THEN used.settled_model_calls ELSE 0 END AS model_calls,
        CASE WHEN used.is_returned THEN used.tool_calls - coalesce(budget_leases.tool_calls, 0) ELSE 0 END
            - CASE WHEN budget_leases.workflow IN ('', used.own) THEN used.settled_tool_calls ELSE 0 END AS tool_calls,
        CASE WHEN used.is_returned THEN used.time_ms - coalesce(budget_leases.time_ms, 0) ELSE 0 END
            - CASE WHEN budget_leases.workflow IN ('', used.own) THEN used.settled_time_ms ELSE 0 END AS time_ms
), added AS (
    SELECT organization, workflow, period, sum(tokens) AS tokens, sum(cost) AS cost, sum(model_calls) AS model_calls,
        sum(tool_calls) AS tool_calls, sum(time_ms) AS time_ms
    FROM changed GROUP BY organization, workflow, period
), locked AS MATERIALIZED (
    SELECT organization, workflow, period FROM budget_accounts
    WHERE (organization, workflow, period) IN (SELECT organization, workflow, period FROM added)
    ORDER BY organization, workflow, period FOR UPDATE
)
UPDATE budget_accounts AS account
SET tokens = CAST(greatest(least(account.tokens + added.tokens, 9000000000000000000), -9000000000000000000) AS BIGINT),
    cost = CAST(greatest(least(account.cost + added.cost, 9000000000000000000), -9000000000000000000) AS BIGINT),
    model_calls = CAST(greatest(least(account.model_calls + added.model_calls, 9000000000000000000), -9000000000000000000) AS BIGINT),
    tool_calls = CAST(greatest(least(account.tool_calls + added.tool_calls, 9000000000000000000), -9000000000000000000) AS BIGINT),
    time_ms = CAST(greatest(least(account.time_ms + added.time_ms, 9000000000000000000), -9000000000000000000) AS BIGINT)
FROM added JOIN locked USING (organization, workflow, period)
WHERE account.organization = added.organization AND account.workflow = added.workflow
    AND account.period = added.period

-- name: leases_end
-- Leases that the executions did not know of were not used. Accounts are locked in key order against deadlocks.
WITH ended AS (
    DELETE FROM budget_leases WHERE execution = ANY ($1)
    RETURNING organization, workflow, period, tokens, cost, model_calls, tool_calls, time_ms, is_returned
), unused AS (
    SELECT organization, workflow, period, sum(coalesce(tokens, 0)) AS tokens, sum(coalesce(cost, 0)) AS cost,
        sum(coalesce(model_calls, 0)) AS model_calls, sum(coalesce(tool_calls, 0)) AS tool_calls,
        sum(coalesce(time_ms, 0)) AS time_ms
    FROM ended WHERE NOT is_returned GROUP BY organization, workflow, period
), locked AS MATERIALIZED (
    SELECT organization, workflow, period FROM budget_accounts
    WHERE (organization, workflow, period) IN (SELECT organization, workflow, period FROM unused)
    ORDER BY organization, workflow, period FOR UPDATE
)
UPDATE budget_accounts AS account
SET tokens = CAST(greatest(account.tokens - unused.tokens, -9000000000000000000) AS BIGINT),
    cost = CAST(greatest(account.cost - unused.cost, -9000000000000000000) AS BIGINT),
    model_calls = CAST(greatest(account.model_calls - unused.model_calls, -9000000000000000000) AS BIGINT),
    tool_calls = CAST(greatest(account.tool_calls - unused.tool_calls, -9000000000000000000) AS BIGINT),
    time_ms = CAST(greatest(account.time_ms - unused.time_ms, -9000000000000000000) AS BIGINT)
FROM unused JOIN locked USING (organization, workflow, period)
WHERE account.organization = unused.organization AND account.workflow = unused.workflow
    AND account.period = unused.period

-- name: usage_add
INSERT INTO usage_days (organization, day, workflow, shard, tokens, cost, model_calls, tool_calls, time_ms)
SELECT * FROM unnest(
    CAST($1 AS BYTEA[]), CAST($2 AS TEXT[]), CAST($3 AS BYTEA[]), CAST($4 AS BIGINT[]), CAST($5 AS BIGINT[]),
    CAST($6 AS BIGINT[]), CAST($7 AS BIGINT[]), CAST($8 AS BIGINT[]), CAST($9 AS BIGINT[])
)
ON CONFLICT (organization, day, workflow, shard) DO UPDATE
SET tokens = least(usage_days.tokens + excluded.tokens, 1000000000000000),
    cost = least(usage_days.cost + excluded.cost, 1000000000000000),
    model_calls = least(usage_days.model_calls + excluded.model_calls, 1000000000000000),
    tool_calls = least(usage_days.tool_calls + excluded.tool_calls, 1000000000000000),
    time_ms = least(usage_days.time_ms + excluded.time_ms, 1000000000000000)

-- name: usage
SELECT * FROM (
    SELECT left(day, CAST(CAST($4 AS BIGINT) AS INTEGER)) COLLATE "C" AS period,
        CASE WHEN $5 THEN workflow ELSE '' END AS subject,
        CAST(least(sum(tokens), 9000000000000000000) AS BIGINT), CAST(least(sum(cost), 9000000000000000000) AS BIGINT),
        CAST(least(sum(model_calls), 9000000000000000000) AS BIGINT),
        CAST(least(sum(tool_calls), 9000000000000000000) AS BIGINT),
        CAST(least(sum(time_ms), 9000000000000000000) AS BIGINT)
    FROM usage_days WHERE organization = $1 AND day >= $2 AND day <= $3 AND length(day) = 10 GROUP BY 1, 2
) AS found
WHERE CAST($6 AS TEXT) IS NULL OR period < $6 OR period = $6 AND subject > $7
ORDER BY period DESC, subject LIMIT $8
