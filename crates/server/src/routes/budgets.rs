//! Budgets of the organization and its workflows for a day or a month, and what was used.

use std::collections::BTreeMap;

use axum::{Json, extract::State, http::StatusCode};
use mainspring_engine::{
    clock::now_ms,
    period_budgets::{Period, PeriodicBudget},
};
use mainspring_kernel::{
    budget::{NAMES, Usage, cost_of},
    limits::{BUDGET_MAX, BUDGET_WARN_PERCENT_DEFAULT},
    time::parse_rfc3339,
    value::{Number, Value},
};
use mainspring_store::{Change, PeriodAccount, PeriodBudget, USAGE_ROWS_MAX, UsageQuery};
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
        repository::{Repository, Stored, apply, entry},
    },
    services::workflow_names::resolve,
};

/// Budgets of an organization. Each lease reads all of them.
const BUDGETS_MAX: usize = 200;

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
    /// The limits: `{tokens, cost, modelCalls, toolCalls, timeMs}`.
    #[schema(value_type = Object)]
    limits: Data,
    /// `fail`, or `ask` if admins are asked to raise a limit that is reached.
    on_exceeded: &'static str,
    /// The percentage of a limit at which watchers get the event `budget.warning`.
    warn_percent: u32,
    /// Id of the member who set it last.
    set_by: String,
    /// Time of the last change, RFC 3339.
    updated_at: String,
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

fn body_of(app: &App, repository: Repository<'_>, stored: &Stored<Budget>, now: u64) -> Result<BudgetBody> {
    let unknown =
        || Problem::new(Code::InternalError, format!("The stored budget `{}` has an unknown period.", stored.id));
    let PeriodicBudget { workflow, period, budget } = stored.body.periodic().ok_or_else(unknown)?;
    let current = period.at(now);
    let of = workflow.clone().unwrap_or_default();
    let account = app.catalogue().period_account(repository.organization(), &of, &current)?;
    let account: PeriodAccount = account.unwrap_or_default();
    let in_period = PeriodBudget { workflow: of, period: current.clone(), limits: budget.limits, warn_percent: 0 };
    let found = workflow.as_ref().map(|id| repository.get::<Workflow>(id)).transpose()?.flatten();
    Ok(BudgetBody {
        id: stored.id.clone(),
        workflow,
        workflow_name: found.map(|workflow| workflow.body.name),
        period: period.name().into(),
        limits: Data(budget.limits.to_value()),
        on_exceeded: if budget.asks { "ask" } else { "fail" },
        warn_percent: budget.warn_percent,
        set_by: stored.body.set_by.clone(),
        updated_at: timestamps::text(stored.body.updated_at),
        current,
        used: Data(account.used.to_value()),
        raised: Data(account.raised.to_value()),
        left: Data(account.left(&in_period).to_value()),
    })
}

/// List the budgets of the organization and its workflows, with what is left in the current period.
#[utoipa::path(get, path = "/api/budgets", tag = "budgets",
    extensions(("x-permission" = json!("organization:read"))),
    responses((status = 200, body = Budgets)))]
async fn list(State(app): State<App>, caller: Caller) -> Result<Json<Budgets>> {
    app.run(move |app| {
        let repository = Repository::of(app.catalogue(), &caller.organization);
        let now = now_ms();
        let budgets = repository.all::<Budget>(None).map(|stored| body_of(app, repository, &stored?, now));
        Ok(Json(Budgets { budgets: budgets.collect::<Result<_>>()? }))
    })
    .await
}

/// Set the budget of the organization, or of a workflow, for each day or month. It reaches running agents within five
/// minutes, and counts what was used in the period before.
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
        if before.is_none() && repository.all::<Budget>(None).count() >= BUDGETS_MAX {
            let message = format!("The organization has {BUDGETS_MAX} budgets, which is the maximum; remove one.");
            return Err(Problem::new(Code::Conflict, message));
        }
        let (set_by, updated_at) = (caller.user.clone(), now_ms());
        let period = period.name().to_owned();
        let budget = Budget { workflow, period, limits, asks, warn_percent, set_by, updated_at };
        let version = before.as_ref().map_or(0, |stored| stored.version);
        let shown = budget.periodic().map(|periodic| periodic.budget.limits.to_value()).unwrap_or_default();
        let detail = Value::map([("limits", shown), ("onExceeded", if asks { "ask" } else { "fail" }.into())]);
        let puts = vec![repository.put(&id, &budget, version)?];
        let audit = vec![entry(&caller, "budget.set", &id, detail)];
        let change = Change { puts, audit, sealing: *app.engine.key(), ..Change::default() };
        apply(app.catalogue(), &change)?.map_err(|_| Problem::concurrent_change())?;
        let stored = Stored { id, version: version + 1, body: budget };
        let status = if before.is_none() { StatusCode::CREATED } else { StatusCode::OK };
        Ok((status, Json(body_of(app, repository, &stored, updated_at)?)))
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
/// the workflow of the execution that made it, on the day on which its receipt was recorded.
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
        let (period, workflow) = cursor.split_once(' ').ok_or_else(|| Problem::field("cursor", "it is no cursor"))?;
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
