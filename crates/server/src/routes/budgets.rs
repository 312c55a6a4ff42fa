//! Budgets of the organization and its workflows for a day or a month, and what was used.

use std::collections::{BTreeMap, BTreeSet};

use axum::{Json, extract::State, http::StatusCode};
use mainspring_engine::{
    clock::now_ms,
    period_budgets::{EffectiveBudget, Period, PeriodicBudget},
};
use mainspring_kernel::{
    budget::{NAMES, Usage, cost_of},
    limits::{BUDGET_MAX, BUDGET_WARN_PERCENT_DEFAULT},
    time::parse_rfc3339,
    value::{Number, Value},
};
use mainspring_store::{Change, PeriodAccount, USAGE_ROWS_MAX, UsageQuery};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::caller::Caller,
    http::{
        body::{Body, Data},
        extract::{PathParams, QueryParams},
        problem::{Code, Problem, ProblemBody, Result},
        timestamps,
    },
    resources::{
        Budget, Workflow,
        repository::{Repository, apply, entry},
    },
    services::workflow_names::resolve,
};

/// Budgets of an organization. Each lease reads all of them.
const BUDGETS_MAX: u32 = 200;

/// The name of the quantity that is no whole number.
const COST: &str = "cost";

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, put)).routes(routes!(delete)).routes(routes!(usage))
}

/// A budget with its account in the current period.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct BudgetBody {
    /// `day` or `month`, after the id of the workflow and a dot if it is of one.
    id: String,
    /// Id of the workflow; null for the whole organization.
    workflow: Option<String>,
    /// Name of the workflow; null for the whole organization, and for a deleted workflow.
    workflow_name: Option<String>,
    /// `day` or `month`, in UTC.
    period: String,
    /// The limits that count: `{tokens, cost, modelCalls, toolCalls, timeMs}`. If both the organization and the
    /// settings file of the server have one, the stricter counts.
    #[schema(value_type = Object)]
    limits: Data,
    /// The source of each limit: `settings` for the settings file of the server, else `stored`.
    #[schema(value_type = Object)]
    sources: Data,
    /// `fail`, or `ask` if admins are asked to raise a limit that is reached.
    on_exceeded: &'static str,
    /// The percentage of a limit at which watchers get the event `budget.warning`.
    warn_percent: u32,
    /// Id of the member who set it last; null for a budget of the settings file alone.
    set_by: Option<String>,
    /// Time of the last change, RFC 3339; null for a budget of the settings file alone.
    updated_at: Option<String>,
    /// The current day or month, as `2026-11-26` or `2026-11`.
    current: String,
    /// The amounts that were used in it, and those that executions have reserved.
    #[schema(value_type = Object)]
    used: Data,
    /// The amounts by which people have raised the limits in it.
    #[schema(value_type = Object)]
    raised: Data,
    /// The amounts that are left.
    #[schema(value_type = Object)]
    left: Data,
}

/// The budgets of an organization.
#[derive(Debug, Serialize, ToSchema)]
struct Budgets {
    /// Budgets in the order of their ids.
    budgets: Vec<BudgetBody>,
}

/// A budget to set. At least one quantity is limited.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SetBudget {
    /// Id or slug of the workflow; null for the whole organization.
    workflow: Option<String>,
    /// `day` or `month`, in UTC.
    period: String,
    /// Tokens of requests and answers.
    #[schema(minimum = 1)]
    tokens: Option<u64>,
    /// Cost in the currency of `prices`.
    cost: Option<f64>,
    /// Requests to models.
    #[schema(minimum = 1)]
    model_calls: Option<u64>,
    /// Calls of tools by agents.
    tool_calls: Option<u64>,
    /// Milliseconds that these calls take, each counted by itself.
    #[schema(minimum = 1)]
    time_ms: Option<u64>,
    /// `fail` (default) or `ask`.
    on_exceeded: Option<String>,
    /// The percentage of a limit at which watchers get the event `budget.warning`; default 80.
    #[schema(minimum = 1, maximum = 100)]
    warn_percent: Option<u32>,
}

/// Returns the budgets that apply, with their accounts.
fn bodies(app: &App, organization: &str, now: u64) -> Result<Vec<BudgetBody>> {
    let repository = Repository::of(app.catalogue(), organization);
    let effective = app.engine.period_budgets(organization).map_err(|why| Problem::new(Code::InternalError, why))?;
    let bodies = effective.iter().map(|budget| body_of(app, repository, budget, now));
    let mut bodies = bodies.collect::<Result<Vec<_>>>()?;
    bodies.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(bodies)
}

fn body_of(app: &App, repository: Repository<'_>, effective: &EffectiveBudget, now: u64) -> Result<BudgetBody> {
    let PeriodicBudget { workflow, period, budget, .. } = &effective.budget;
    let in_period = effective.in_period(now);
    let id = Budget::id_of(workflow.as_deref(), *period);
    let stored = repository.get::<Budget>(&id)?.map(|stored| stored.body);
    let of = &in_period.workflow;
    let account = app.catalogue().period_account(repository.organization(), of, &in_period.period)?;
    let mut account: PeriodAccount = account.unwrap_or_default();
    if account.edition != in_period.edition {
        // The raises were of limits that no longer count.
        account.raised = Usage::default();
    }
    let found = workflow.as_ref().map(|id| repository.get::<Workflow>(id)).transpose()?.flatten();
    let sources = NAMES.iter().enumerate().filter(|(place, _)| budget.limits.0[*place].is_some());
    let sources = sources.map(|(place, name)| (*name, effective.source(place).into()));
    Ok(BudgetBody {
        id,
        workflow: workflow.clone(),
        workflow_name: found.map(|workflow| workflow.body.name),
        period: period.name().into(),
        limits: Data(budget.limits.to_value()),
        sources: Data(Value::map(sources)),
        on_exceeded: if budget.asks { "ask" } else { "fail" },
        warn_percent: budget.warn_percent,
        set_by: stored.as_ref().map(|stored| stored.set_by.clone()),
        updated_at: stored.map(|stored| timestamps::text(stored.updated_at)),
        used: Data(account.used.to_value()),
        raised: Data(account.raised.to_value()),
        left: Data(account.left(&in_period).to_value()),
        current: in_period.period,
    })
}

/// List the budgets of the organization and its workflows, with what is left in the current period. Those of the settings
/// file of the server are among them.
#[utoipa::path(get, path = "/api/budgets", tag = "budgets",
    extensions(("x-permission" = json!("organization:read"))),
    responses((status = 200, body = Budgets)))]
async fn list(State(app): State<App>, caller: Caller) -> Result<Json<Budgets>> {
    app.run(move |app| Ok(Json(Budgets { budgets: bodies(app, &caller.organization, now_ms())? }))).await
}

/// Set the budget of the organization, or of a workflow, for each day or month. It reaches running agents within five
/// minutes, and counts what was used in the period before. Raises that people have approved end.
#[utoipa::path(put, path = "/api/budgets", tag = "budgets", request_body = SetBudget,
    extensions(("x-permission" = json!("organization:write"))),
    responses((status = 200, body = BudgetBody), (status = 201, body = BudgetBody),
        (status = 404, body = ProblemBody), (status = 409, body = ProblemBody)))]
async fn put(
    State(app): State<App>,
    caller: Caller,
    Body(body): Body<SetBudget>,
) -> Result<(StatusCode, Json<BudgetBody>)> {
    let period = Period::parse(&body.period).ok_or_else(|| Problem::field("period", "it must be `day` or `month`"))?;
    let limits = limits(&body)?;
    let asks = asks(body.on_exceeded.as_deref())?;
    let warn_percent = body.warn_percent.unwrap_or(BUDGET_WARN_PERCENT_DEFAULT);
    if !(1..=100).contains(&warn_percent) {
        return Err(Problem::field("warnPercent", "it must be from 1 to 100"));
    }
    app.run(move |app| {
        let repository = Repository::of(app.catalogue(), &caller.organization);
        let workflow = body.workflow.as_ref().map(|name| match resolve(repository, &caller.user, name)? {
            Some(workflow) => Ok(workflow.id),
            None => Err(Problem::field("workflow", format!("there is no workflow `{name}`"))),
        });
        let workflow = workflow.transpose()?;
        let id = Budget::id_of(workflow.as_deref(), period);
        let before = repository.get::<Budget>(&id)?;
        let slot = match &before {
            Some(before) => before.body.slot,
            None => free_slot(repository)?,
        };
        let (set_by, updated_at) = (caller.user.clone(), now_ms());
        let period = period.name().to_owned();
        let budget = Budget { workflow, period, limits, asks, warn_percent, set_by, updated_at, slot };
        let version = before.as_ref().map_or(0, |stored| stored.version);
        let shown = budget.periodic().map(|periodic| periodic.budget.limits.to_value()).unwrap_or_default();
        let detail = Value::map([("limits", shown), ("onExceeded", if asks { "ask" } else { "fail" }.into())]);
        let puts = vec![repository.put(&id, &budget, version)?];
        let audit = vec![entry(&caller, "budget.set", &id, detail)];
        let change = Change { puts, audit, sealing: *app.engine.key(), ..Change::default() };
        apply(app.catalogue(), &change)?.map_err(|_| Problem::concurrent_change())?;
        let status = if before.is_none() { StatusCode::CREATED } else { StatusCode::OK };
        let set = bodies(app, &caller.organization, updated_at)?.into_iter().find(|body| body.id == id);
        // It may have been removed since.
        Ok((status, Json(set.ok_or_else(Problem::concurrent_change)?)))
    })
    .await
}

/// Remove a budget. Running agents are no longer limited by it within five minutes.
#[utoipa::path(delete, path = "/api/budgets/{id}", tag = "budgets", params(("id" = String, Path)),
    extensions(("x-permission" = json!("organization:write"))),
    responses((status = 204), (status = 404, body = ProblemBody), (status = 409, body = ProblemBody)))]
async fn delete(State(app): State<App>, caller: Caller, PathParams(id): PathParams<String>) -> Result<StatusCode> {
    app.run(move |app| {
        let repository = Repository::of(app.catalogue(), &caller.organization);
        let stored = repository.require::<Budget>(&id)?;
        let audit = vec![entry(&caller, "budget.remove", &id, Value::Null)];
        let removals = vec![repository.removal(&stored)];
        let change = Change { removals, audit, sealing: *app.engine.key(), ..Change::default() };
        apply(app.catalogue(), &change)?.map_err(|_| Problem::concurrent_change())?;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

/// Returns the first number that no budget has. If two budgets are set at a time with the same number, the second is
/// refused.
fn free_slot(repository: Repository<'_>) -> Result<u32> {
    let taken = repository.all::<Budget>(None).map(|stored| Ok(stored?.body.slot)).collect::<Result<BTreeSet<_>>>()?;
    (0..BUDGETS_MAX).find(|slot| !taken.contains(slot)).ok_or_else(|| {
        let message = format!("The organization has {BUDGETS_MAX} budgets, which is the maximum; remove one.");
        Problem::new(Code::Conflict, message)
    })
}

fn limits(body: &SetBudget) -> Result<BTreeMap<String, u64>> {
    let mut limits = BTreeMap::new();
    for (name, limit, least) in [
        ("tokens", body.tokens, 1),
        ("modelCalls", body.model_calls, 1),
        ("toolCalls", body.tool_calls, 0),
        ("timeMs", body.time_ms, 1),
    ] {
        if limit.is_some_and(|limit| !(least..=BUDGET_MAX).contains(&limit)) {
            return Err(Problem::field(name, format!("it must be from {least} to {BUDGET_MAX}")));
        }
        limits.extend(limit.map(|limit| (name.to_owned(), limit)));
    }
    if let Some(cost) = body.cost {
        let cost = Number::double(cost).and_then(|number| cost_of(&Value::Number(number))).filter(|cost| *cost > 0);
        let cost = cost.ok_or_else(|| Problem::field(COST, "it must be more than 0 and at most 1,000,000"))?;
        limits.insert(COST.to_owned(), cost);
    }
    if limits.is_empty() {
        return Err(Problem::field("tokens", "limit at least one of tokens, cost, modelCalls, toolCalls and timeMs"));
    }
    Ok(limits)
}

fn asks(word: Option<&str>) -> Result<bool> {
    match word {
        None | Some("fail") => Ok(false),
        Some("ask") => Ok(true),
        Some(_) => Err(Problem::field("onExceeded", "it must be `fail` or `ask`")),
    }
}

/// Selects usage.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct UsageParams {
    /// `organization` (default) or `workflow`.
    by: Option<String>,
    /// `month` (default) or `day`, in UTC.
    period: Option<String>,
    /// The first day, as 2026-11-01; default the first of the current month.
    from: Option<String>,
    /// The last day, as 2026-11-30; default today.
    to: Option<String>,
    /// `nextCursor` of the previous page.
    cursor: Option<String>,
}

/// Usage in one period.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct UsageBody {
    /// The day or month, as `2026-11-26` or `2026-11`.
    period: String,
    /// Id of the workflow; null for the whole organization.
    workflow: Option<String>,
    /// Name of the workflow; null for the whole organization, and for a deleted workflow.
    workflow_name: Option<String>,
    /// The used amounts: `{tokens, cost, modelCalls, toolCalls, timeMs}`.
    #[schema(value_type = Object)]
    used: Data,
}

/// Usage of several periods or workflows.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct UsagePage {
    /// The newest period first, then by workflow.
    usage: Vec<UsageBody>,
    /// `cursor` of the next page; null for the last page.
    next_cursor: Option<String>,
}

/// Show what the agents of the organization have used, by workflow or in total, for each day or month. A call counts for
/// the workflow of the execution that made it, on the day on which it began.
#[utoipa::path(get, path = "/api/usage", tag = "budgets", params(UsageParams),
    extensions(("x-permission" = json!("organization:read"))),
    responses((status = 200, body = UsagePage)))]
async fn usage(
    State(app): State<App>,
    caller: Caller,
    QueryParams(params): QueryParams<UsageParams>,
) -> Result<Json<UsagePage>> {
    let query = query(&caller, params, now_ms())?;
    app.run(move |app| {
        let repository = Repository::of(app.catalogue(), &caller.organization);
        let rows = app.catalogue().usage(&query)?;
        let last = rows.last().filter(|_| rows.len() >= query.limit);
        let next_cursor = last.map(|last| format!("{} {}", last.period, last.workflow));
        let mut names: BTreeMap<String, Option<String>> = BTreeMap::new();
        let mut usage = Vec::with_capacity(rows.len());
        for row in rows {
            if query.by_workflow && !names.contains_key(&row.workflow) {
                let found = repository.get::<Workflow>(&row.workflow)?;
                names.insert(row.workflow.clone(), found.map(|workflow| workflow.body.name));
            }
            usage.push(UsageBody {
                period: row.period,
                workflow_name: names.get(&row.workflow).cloned().flatten(),
                workflow: query.by_workflow.then_some(row.workflow),
                used: Data(shown(&row.used)),
            });
        }
        Ok(Json(UsagePage { usage, next_cursor }))
    })
    .await
}

/// All quantities, also those of which nothing was used.
fn shown(used: &Usage) -> Value {
    let used = used.to_value();
    Value::map(NAMES.map(|name| (name, used.get(name).cloned().unwrap_or_else(|| 0u64.into()))))
}

fn query(caller: &Caller, params: UsageParams, now: u64) -> Result<UsageQuery> {
    let UsageParams { by, period, from, to, cursor } = params;
    let by_workflow = match by.as_deref() {
        None | Some("organization") => false,
        Some("workflow") => true,
        Some(_) => return Err(Problem::field("by", "it must be `organization` or `workflow`")),
    };
    let by_month = match period.as_deref().map(Period::parse) {
        None | Some(Some(Period::Month)) => true,
        Some(Some(Period::Day)) => false,
        Some(None) => return Err(Problem::field("period", "it must be `day` or `month`")),
    };
    let is_day = |text: &String| text.len() == 10 && parse_rfc3339(&format!("{text}T00:00:00Z")).is_some();
    for (name, day) in [("from", &from), ("to", &to)] {
        if day.as_ref().is_some_and(|day| !is_day(day)) {
            return Err(Problem::field(name, "it must be a day like 2026-11-26"));
        }
    }
    let after = cursor.as_deref().map(|cursor| {
        let is_period = |text: &str| is_day(&text.to_owned()) || text.len() == 7 && is_day(&format!("{text}-01"));
        let parts = cursor.split_once(' ').filter(|(period, workflow)| is_period(period) && !workflow.contains('\0'));
        let (period, workflow) = parts.ok_or_else(|| Problem::field("cursor", "it is no cursor"))?;
        Ok::<_, Problem>((period.to_owned(), workflow.to_owned()))
    });
    Ok(UsageQuery {
        organization: caller.organization.clone(),
        from: from.unwrap_or_else(|| format!("{}-01", Period::Month.at(now))),
        to: to.unwrap_or_else(|| Period::Day.at(now)),
        by_month,
        by_workflow,
        after: after.transpose()?,
        limit: USAGE_ROWS_MAX,
    })
}
