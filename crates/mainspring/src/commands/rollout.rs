//! `mainspring rollout`: shows the staged rollouts of a workflow of a server, promotes or aborts the one that runs.

use clap::{Args, Subcommand};
use mainspring_kernel::{json::compact, value::Value};

use crate::{
    client::{Client, Repeat, address::route, response::Response},
    context::{Context, block_on},
    error::{CliError, Exit},
    output::{
        terminal::{bold, dim, print_out},
        text::{paragraph, shown},
    },
};

/// Staged rollouts of a workflow.
#[derive(Debug, Args)]
pub(crate) struct Rollout {
    #[command(subcommand)]
    action: Action,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
enum Action {
    /// Show a rollout with the figures of both definitions
    Show(Which),
    /// Let all new starts take the candidate
    Promote(Decided),
    /// Let no new start take the candidate
    Abort(Decided),
}

/// A rollout.
#[derive(Debug, Args)]
struct Which {
    /// The workflow: its slug or id
    workflow: String,
    /// The rollout; default: the newest one of the workflow
    id: Option<String>,
}

/// A decision about a rollout.
#[derive(Debug, Args)]
struct Decided {
    #[command(flatten)]
    which: Which,
    /// The reason, recorded in the audit log
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// The figures that are printed: the key, its label and its unit.
const FIGURES: [(&str, &str, &str); 11] = [
    ("starts", "starts", ""),
    ("completed", "completed", ""),
    ("failed", "failed", ""),
    ("cancelled", "canceled", ""),
    ("refused", "refused starts", ""),
    ("overdue", "overdue", ""),
    ("failureRatePercent", "failure rate", "%"),
    ("durationP50Ms", "duration p50", "ms"),
    ("durationP95Ms", "duration p95", "ms"),
    ("costMean", "cost, mean", ""),
    ("tokensMean", "tokens, mean", ""),
];

pub(crate) fn rollout(rollout: &Rollout, context: &Context) -> Result<Exit, CliError> {
    let client = context.global.client_of("rollout")?;
    let found = match &rollout.action {
        Action::Show(which) => {
            block_on(async { Ok(client.get(&path(which, &id(&client, which).await?, None)).await?) })?
        }
        Action::Promote(decided) => decide(decided, "promote", &client)?,
        Action::Abort(decided) => decide(decided, "abort", &client)?,
    };
    show(&client, &found, context)
}

fn path(which: &Which, id: &str, verb: Option<&str>) -> String {
    let parts = ["api", "workflows", &which.workflow, "rollouts", id];
    route(&parts.into_iter().chain(verb).collect::<Vec<_>>(), &[])
}

/// The given rollout, or the newest one.
async fn id(client: &Client, which: &Which) -> Result<String, CliError> {
    if let Some(id) = &which.id {
        return Ok(id.clone());
    }
    let page = client.get(&route(&["api", "workflows", &which.workflow, "rollouts"], &[("limit", "1")])).await?;
    let newest = Response::new(client, "a page of rollouts", &page).objects("rollouts", "a rollout")?;
    match newest.first() {
        Some(newest) => Ok(newest.text("id")?),
        None => {
            Err(CliError::bad_input("bad_arguments", format!("The workflow `{}` has had no rollout.", which.workflow)))
        }
    }
}

fn decide(decided: &Decided, verb: &str, client: &Client) -> Result<Value, CliError> {
    let Decided { which, reason } = decided;
    block_on(async {
        let path = path(which, &id(client, which).await?, Some(verb));
        let body = Value::map([("reason", Value::from(reason.as_str()))]);
        Ok(client.post(&path, &body, Repeat::MustNot).await?)
    })
}

/// Prints a rollout with both sides beside each other.
fn show(client: &Client, found: &Value, context: &Context) -> Result<Exit, CliError> {
    if context.global.json {
        print_out!("{}", compact(found));
        return Ok(Exit::Fine);
    }
    let answer = Response::new(client, "a rollout", found);
    let (stable, candidate) = (answer.object("stable", "a side")?, answer.object("candidate", "a side")?);
    let (id, status, percent) = (answer.text("id")?, answer.text("status")?, answer.number("percent")?);
    print_out!(
        "{} {} {}",
        bold(&shown(&id)),
        shown(&status),
        dim(&format!("{percent}% since {}", shown(&answer.text("since")?)))
    );
    print_out!("{:16} {:>16} {:>16}", "", "stable", "candidate");
    print_out!("{:16} {:>16} {:>16}", "version", shown(&stable.text("version")?), shown(&candidate.text("version")?));
    for (key, label, unit) in FIGURES {
        let of = |side: &Response<'_>| figure(&side.any("figures"), key, unit);
        print_out!("{label:16} {:>16} {:>16}", of(&stable), of(&candidate));
    }
    let verdict = answer.any("verdict");
    if let Some(status) = verdict.get("status").and_then(Value::as_text) {
        print_out!("thresholds: {}", shown(status));
        for reason in verdict.get("reasons").and_then(Value::as_list).unwrap_or_default() {
            print_out!("  {}", paragraph(reason.as_text().unwrap_or_default()));
        }
    }
    let refusal = answer.any("lastRefusal");
    if let (Some(at), Some(message)) = (text(&refusal, "at"), text(&refusal, "message")) {
        print_out!("refused at {}: {}", shown(at), paragraph(message));
    }
    let ended = answer.any("ended");
    if let Some(reason) = ended.get("reason").and_then(Value::as_text) {
        let by = ended.get("by").and_then(Value::as_text).unwrap_or_default();
        let how = if ended.get("automatic") == Some(&Value::Bool(true)) { "at the thresholds, for" } else { "by" };
        print_out!("{} {how} {}: {}", shown(&status), shown(by), paragraph(reason));
    }
    Ok(Exit::Fine)
}

fn text<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_text)
}

/// A figure as it is printed; a dash for one that does not exist.
fn figure(figures: &Value, key: &str, unit: &str) -> String {
    let Some(number) = figures.get(key).and_then(Value::as_number) else { return "-".into() };
    let number = number.as_double();
    let more = if key == "starts" && figures.get("startsMore") == Some(&Value::Bool(true)) { "+" } else { "" };
    match number.fract() == 0.0 {
        true => format!("{number}{more}{unit}"),
        false => format!("{number:.2}{more}{unit}"),
    }
}
