//! `mainspring usage`: shows what the agents of an execution have used and what its budget leaves, or what those of the
//! organization have used in each day or month.

use clap::Args;
use mainspring_engine::{EngineError, clock::now_ms, period_budgets::Period};
use mainspring_kernel::{budget::NAMES, json::compact, time::parse_rfc3339, value::Value};
use mainspring_store::{UsageQuery, UsageRow};

use super::triggers::print_table;
use crate::{
    backend::read_store::open_read_only,
    client::{Client, address::route, response::Response},
    context::{Context, block_on},
    error::{CliError, Exit},
    output::{
        execution_view::AttemptPage,
        terminal::{bold, dim, print_out},
        text::shown,
    },
};

/// Lines that are listed at most.
const ROWS_MAX: usize = 10_000;

/// Show what the agents of an execution have used and what its budget leaves; without one, what those of the organization
/// have used in each month
#[derive(Debug, Args)]
pub(crate) struct Usage {
    /// The execution: its id, the beginning of it, or `last`
    id: Option<String>,
    /// Without an execution: a line for each `workflow`, or for the `organization`
    #[arg(long, value_parser = ["organization", "workflow"], default_value = "workflow", conflicts_with = "id")]
    by: String,
    /// Without an execution: a line for each `day` or `month`, in UTC
    #[arg(long, value_parser = ["day", "month"], default_value = "month", conflicts_with = "id")]
    period: String,
    /// Without an execution: the first day, as 2026-11-01 [default: the first of this month]
    #[arg(long, value_name = "DAY", conflicts_with = "id")]
    from: Option<String>,
    /// Without an execution: the last day, as 2026-11-30 [default: today]
    #[arg(long, value_name = "DAY", conflicts_with = "id")]
    to: Option<String>,
}

/// Runs the command.
pub(crate) fn usage(usage: &Usage, context: &Context) -> Result<Exit, CliError> {
    match &usage.id {
        Some(id) => of_execution(id, context),
        None => of_periods(usage, context),
    }
}

/// Shows the usage of the organization at a server, or of all executions of a data folder or a shared store.
fn of_periods(usage: &Usage, context: &Context) -> Result<Exit, CliError> {
    let rows = match context.global.server()?.is_some() {
        true => of_server(usage, &context.global.client_of("usage")?)?,
        false => of_store(usage, context)?,
    };
    if context.global.json {
        rows.iter().for_each(|row| print_out!("{}", compact(row)));
        return Ok(Exit::Fine);
    }
    if rows.is_empty() {
        print_out!("{}", dim("no agent has called a model or a tool in this time"));
    }
    let text = |row: &Value, key: &str| row.get(key).and_then(Value::as_text).map(shown);
    let lines = rows.iter().map(|row| {
        let name = text(row, "workflowName").or_else(|| text(row, "workflow")).unwrap_or_default();
        [text(row, "period").unwrap_or_default(), name, row.get("used").map(amounts).unwrap_or_default()]
    });
    print_table(&lines.collect::<Vec<_>>());
    Ok(Exit::Fine)
}

fn of_server(usage: &Usage, client: &Client) -> Result<Vec<Value>, CliError> {
    let (mut found, mut cursor) = (Vec::new(), None::<String>);
    while found.len() < ROWS_MAX {
        let mut query = vec![("by", usage.by.as_str()), ("period", usage.period.as_str())];
        query.extend(usage.from.as_deref().map(|from| ("from", from)));
        query.extend(usage.to.as_deref().map(|to| ("to", to)));
        query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let page = block_on(async { Ok(client.get(&route(&["api", "usage"], &query)).await?) })?;
        let answer = Response::new(client, "a page of usage", &page);
        let rows = answer.list("usage")?;
        found.extend(rows.iter().cloned());
        let next = answer.maybe_text("nextCursor")?;
        // Ends the loop if a faulty server repeats a cursor.
        if next.is_none() || next == cursor || rows.is_empty() {
            break;
        }
        cursor = next;
    }
    Ok(found)
}

fn of_store(usage: &Usage, context: &Context) -> Result<Vec<Value>, CliError> {
    let now = now_ms();
    for (flag, day) in [("--from", &usage.from), ("--to", &usage.to)] {
        let is_day = |day: &String| day.len() == 10 && parse_rfc3339(&format!("{day}T00:00:00Z")).is_some();
        if let Some(day) = day.as_ref().filter(|day| !is_day(day)) {
            let message = format!("{flag}: `{}` is not a day like 2026-11-26", shown(day));
            return Err(CliError::bad_input("bad_input", message));
        }
    }
    let query = UsageQuery {
        organization: String::new(),
        from: usage.from.clone().unwrap_or_else(|| format!("{}-01", Period::Month.at(now))),
        to: usage.to.clone().unwrap_or_else(|| Period::Day.at(now)),
        by_month: usage.period == "month",
        by_workflow: usage.by == "workflow",
        after: None,
        limit: ROWS_MAX,
    };
    let rows = open_read_only(&context.global)?.store.catalogue().usage(&query).map_err(EngineError::from)?;
    let row = |row: UsageRow| {
        let workflow = query.by_workflow.then_some(row.workflow.as_str());
        let (period, used) = (row.period.as_str().into(), row.used.to_value());
        Value::map([("period", period), ("workflow", workflow.into()), ("used", used)])
    };
    Ok(rows.into_iter().map(row).collect())
}

fn of_execution(id: &str, context: &Context) -> Result<Exit, CliError> {
    let details = context.backend()?.show(id, AttemptPage { skip: 0, limit: Some(0) })?;
    let value = details.envelope.get("usage").cloned().unwrap_or_default();
    if context.global.json {
        print_out!("{}", compact(&Value::map([("usage", value)])));
        return Ok(Exit::Fine);
    }
    if value == Value::Null {
        print_out!("{}", dim("no agent of this execution has called a model or a tool"));
        return Ok(Exit::Fine);
    }
    print(&value);
    Ok(Exit::Fine)
}

/// Prints a usage: a line for each quantity, with its limit.
pub(super) fn print(usage: &Value) {
    for name in NAMES {
        let of = |part: &str| usage.get(part).and_then(|part| part.get(name)).map(|amount| shown(&compact(amount)));
        let (used, limit) = (of("used"), of("limits"));
        if used.is_none() && limit.is_none() {
            continue;
        }
        let mut line = format!("{} {}", bold(&format!("{name:<11}")), used.unwrap_or_else(|| "0".into()));
        if let Some(limit) = limit {
            line.push_str(&dim(&format!(" of {limit}, {} left", of("left").unwrap_or_else(|| "0".into()))));
        }
        if let Some(reserved) = of("reserved") {
            line.push_str(&dim(&format!(", {reserved} reserved by calls in progress")));
        }
        print_out!("{line}");
    }
    for (step, used) in usage.get("steps").and_then(Value::as_map).into_iter().flatten() {
        print_out!("{} {}", bold(&format!("step {}", shown(step))), dim(&amounts(used)));
    }
}

/// The amounts that are not 0, as `tokens 120, modelCalls 2`.
fn amounts(used: &Value) -> String {
    let amounts = NAMES.iter().filter_map(|name| {
        let amount = used.get(name).filter(|amount| **amount != Value::from(0u64))?;
        Some(format!("{name} {}", shown(&compact(amount))))
    });
    amounts.collect::<Vec<_>>().join(", ")
}
