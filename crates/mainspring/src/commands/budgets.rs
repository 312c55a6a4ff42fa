//! `mainspring budgets`: sets, lists and removes the budgets of a server for a day or a month, and lists those of the
//! settings file.

use clap::{Args, Subcommand};
use mainspring_engine::{
    clock::now_ms,
    period_budgets::{EffectiveBudget, PeriodicBudget, merged},
};
use mainspring_kernel::{
    budget::Usage,
    json::compact,
    value::{Map, Number, Value},
};
use mainspring_store::Store;

use super::triggers::print_table;
use crate::{
    backend::read_store::open_read_only,
    client::{Client, ClientError, address::route, response::Response},
    context::{Context, block_on},
    error::{CliError, Exit},
    output::{
        terminal::{dim, print_out},
        text::shown,
    },
    period_budgets,
    server_settings::object_settings,
};

/// Budgets of the organization and its workflows for a day or a month
#[derive(Debug, Args)]
pub(crate) struct Budgets {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List budgets with what is left in the current period: those of the server, or of the settings file without one
    List,
    /// Set a budget of the server. It reaches running agents within five minutes
    Set(Box<Set>),
    /// Remove a budget of the server
    #[command(visible_alias = "rm")]
    Remove {
        /// The id, as `mainspring budgets list` shows it: `month`, or `WORKFLOW_ID.day`
        id: String,
    },
}

/// Set a budget.
#[derive(Debug, Args)]
struct Set {
    /// `day` or `month`, in UTC
    #[arg(value_parser = ["day", "month"])]
    period: String,
    /// A workflow, by its slug or id; the whole organization without it
    #[arg(long, value_name = "WORKFLOW")]
    workflow: Option<String>,
    /// Tokens of requests and answers
    #[arg(long, value_name = "N")]
    tokens: Option<u64>,
    /// Cost in the currency of `prices`
    #[arg(long, value_name = "AMOUNT")]
    cost: Option<f64>,
    /// Requests to models
    #[arg(long, value_name = "N")]
    model_calls: Option<u64>,
    /// Calls of tools by agents
    #[arg(long, value_name = "N")]
    tool_calls: Option<u64>,
    /// Milliseconds that these calls take, each counted by itself
    #[arg(long, value_name = "N")]
    time_ms: Option<u64>,
    /// `fail` the step that needs more, or `ask` the admins
    #[arg(long, value_name = "fail|ask", value_parser = ["fail", "ask"], default_value = "fail")]
    on_exceeded: String,
    /// The percentage of a limit at which watchers get a warning
    #[arg(long, value_name = "N", default_value_t = 80)]
    warn_percent: u32,
}

/// Runs the command.
pub(crate) fn budgets(budgets: &Budgets, context: &Context) -> Result<Exit, CliError> {
    match &budgets.action {
        Action::List if context.global.server()?.is_none() => list_settings(context),
        Action::List => list(&context.global.client_of("budgets list")?, context),
        Action::Set(new) => set(&context.global.client_of("budgets set")?, new, context),
        Action::Remove { id } => {
            let client = context.global.client_of("budgets remove")?;
            request(client.delete(&route(&["api", "budgets", id], &[])))?;
            match context.global.json {
                true => print_out!("{}", compact(&Value::map([("ok", Value::Bool(true))]))),
                false => context.terminal.note(&format!("{}: removed", shown(id))),
            }
            Ok(Exit::Fine)
        }
    }
}

fn request<T>(sent: impl Future<Output = Result<T, ClientError>>) -> Result<T, CliError> {
    block_on(async { Ok(sent.await?) })
}

fn set(client: &Client, new: &Set, context: &Context) -> Result<Exit, CliError> {
    let mut body = Map::from([
        ("period".into(), Value::from(new.period.as_str())),
        ("onExceeded".into(), new.on_exceeded.as_str().into()),
        ("warnPercent".into(), new.warn_percent.into()),
    ]);
    if let Some(workflow) = &new.workflow {
        body.insert("workflow".into(), workflow.as_str().into());
    }
    let limits = [
        ("tokens", new.tokens),
        ("modelCalls", new.model_calls),
        ("toolCalls", new.tool_calls),
        ("timeMs", new.time_ms),
    ];
    for (name, limit) in limits {
        body.extend(limit.map(|limit| (name.to_string(), limit.into())));
    }
    if let Some(cost) = new.cost {
        let refused = || CliError::bad_input("bad_input", format!("--cost: {cost} is not an amount of money"));
        body.insert("cost".into(), Value::Number(Number::double(cost).ok_or_else(refused)?));
    }
    let stored = request(client.put(&route(&["api", "budgets"], &[]), &Value::Map(body)))?;
    match context.global.json {
        true => print_out!("{}", compact(&stored)),
        false => {
            let id = Response::new(client, "a budget", &stored).text("id")?;
            context.terminal.note(&format!("{}: set; running agents have it within five minutes", shown(&id)));
        }
    }
    Ok(Exit::Fine)
}

fn list(client: &Client, context: &Context) -> Result<Exit, CliError> {
    let page = request(client.get(&route(&["api", "budgets"], &[])))?;
    let found = Response::new(client, "budgets", &page).list("budgets")?.to_vec();
    print(&found, context);
    Ok(Exit::Fine)
}

/// Lists the budgets of the settings file, with their accounts in the data folder or the shared store.
fn list_settings(context: &Context) -> Result<Exit, CliError> {
    let settings = object_settings()?;
    let budgets = period_budgets::of_settings(&settings)?;
    // Without executions, nothing was used.
    let store = open_read_only(&context.global).ok().map(|opened| opened.store);
    let now = now_ms();
    let budgets = merged(budgets.into_iter());
    let rows: Result<Vec<_>, CliError> = budgets.iter().map(|budget| row(budget, store.as_deref(), now)).collect();
    print(&rows?, context);
    Ok(Exit::Fine)
}

/// Returns a budget of the settings file as a server shows its own.
fn row(effective: &EffectiveBudget, store: Option<&dyn Store>, now: u64) -> Result<Value, CliError> {
    let PeriodicBudget { workflow, period, budget, .. } = &effective.budget;
    let in_period = effective.in_period(now);
    let (of, current) = (&in_period.workflow, &in_period.period);
    let account = store.map(|store| store.catalogue().period_account("", of, current)).transpose();
    let mut account = account.map_err(mainspring_engine::EngineError::from)?.flatten().unwrap_or_default();
    if account.edition != in_period.edition {
        // The raises were of limits that no longer count.
        account.raised = Usage::default();
    }
    let id = workflow.as_ref().map_or_else(|| period.name().into(), |of| format!("{of}.{}", period.name()));
    Ok(Value::map([
        ("id", id.as_str().into()),
        ("workflow", workflow.as_deref().into()),
        ("period", period.name().into()),
        ("limits", budget.limits.to_value()),
        ("onExceeded", if budget.asks { "ask" } else { "fail" }.into()),
        ("warnPercent", budget.warn_percent.into()),
        ("current", current.as_str().into()),
        ("used", account.used.to_value()),
        ("raised", account.raised.to_value()),
    ]))
}

fn print(budgets: &[Value], context: &Context) {
    if context.global.json {
        budgets.iter().for_each(|budget| print_out!("{}", compact(budget)));
        return;
    }
    if budgets.is_empty() {
        print_out!("{}", dim("none"));
    }
    let text = |budget: &Value, key: &str| shown(budget.get(key).and_then(Value::as_text).unwrap_or_default());
    let rows = budgets.iter().map(|budget| {
        let used = format!("in {}: {}", text(budget, "current"), amounts(budget));
        let name = budget.get("workflowName").and_then(Value::as_text).map(|name| format!("({})", shown(name)));
        [text(budget, "id"), name.unwrap_or_default(), used, text(budget, "onExceeded")]
    });
    print_table(&rows.collect::<Vec<_>>());
}

/// The used part of each limit, as `tokens 120 of 5000`.
fn amounts(budget: &Value) -> String {
    let part = |part: &str, name: &str| {
        let amount = budget.get(part).and_then(|part| part.get(name));
        amount.map_or_else(|| "0".into(), |amount| shown(&compact(amount)))
    };
    let limits = budget.get("limits").and_then(Value::as_map);
    let limited = limits.into_iter().flatten().map(|(name, limit)| {
        let raised = match budget.get("raised").and_then(|raised| raised.get(name)) {
            Some(raised) => format!(" + {}", shown(&compact(raised))),
            None => String::new(),
        };
        let source = budget.get("sources").and_then(|sources| sources.get(name)).and_then(Value::as_text);
        let source = if source == Some("settings") { " (settings file)" } else { "" };
        format!("{} {} of {}{raised}{source}", shown(name), part("used", name), shown(&compact(limit)))
    });
    limited.collect::<Vec<_>>().join(", ")
}
