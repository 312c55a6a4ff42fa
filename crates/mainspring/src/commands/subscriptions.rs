//! `mainspring subscriptions`: the event subscriptions of a server, which send events to webhooks.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use mainspring_kernel::{
    json::compact,
    value::{Map, Value},
};

use super::triggers::{print_table, request, secret_of};
use crate::{
    client::{Client, ClientError, Repeat, address::route, response::Response},
    context::Context,
    error::{CliError, Exit},
    output::{
        terminal::{bold, dim, print_out},
        text::{counted, shown},
    },
};

/// Items per page, and items listed at most: more than a server keeps.
const PAGE: &str = "200";
const ROWS_MAX: usize = 10_000;

/// Event subscriptions of a server: events of executions, sent to webhooks.
#[derive(Debug, Args)]
pub(crate) struct Subscriptions {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List subscriptions
    List,
    /// Show a subscription: its endpoint, the events that wait and the last failure
    Show {
        /// The id of the subscription
        id: String,
    },
    /// Subscribe an endpoint; prints the generated secret once
    Create(Create),
    /// Change a subscription
    Update(Update),
    /// Enable a subscription, and end its pause
    Enable {
        /// The id of the subscription
        id: String,
    },
    /// Disable a subscription: events that wait are not sent
    Disable {
        /// The id of the subscription
        id: String,
    },
    /// Delete a subscription with its failed deliveries
    Delete {
        /// The id of the subscription
        id: String,
    },
    /// Replace the secret; prints the new one once, and the old one is valid for 24 hours
    RotateSecret {
        /// The id of the subscription
        id: String,
        /// Replace the secret although the previous one is still valid, and end its validity
        #[arg(long)]
        force: bool,
    },
    /// Send a test event
    Test {
        /// The id of the subscription
        id: String,
    },
    /// List deliveries that failed in all retries
    Failed {
        /// The id of the subscription
        id: String,
    },
    /// Send a failed delivery once more
    Redeliver {
        /// The id of the subscription
        id: String,
        /// The id of the failed delivery, as `failed` lists it
        delivery: String,
    },
    /// Remove a failed delivery without sending it
    Dismiss {
        /// The id of the subscription
        id: String,
        /// The id of the failed delivery, as `failed` lists it
        delivery: String,
    },
}

/// Subscribe an endpoint.
#[derive(Debug, Args)]
struct Create {
    /// The address of the endpoint
    url: String,
    /// The name of the subscription
    #[arg(long, value_name = "NAME")]
    name: String,
    /// A type of event such as workflow.execution.finished, or a prefix such as 'workflow.step.*'; repeatable
    #[arg(long = "type", value_name = "TYPE", required = true)]
    types: Vec<String>,
    /// Only events of this workflow, by its slug or id; repeatable
    #[arg(long = "workflow", value_name = "WORKFLOW")]
    workflows: Vec<String>,
    /// The file with the secret of the signatures, `whsec_…`; `-` for standard input [default: a generated one]
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// Creates it disabled
    #[arg(long)]
    disabled: bool,
}

/// Change a subscription.
#[derive(Debug, Args)]
struct Update {
    /// The id of the subscription
    id: String,
    /// The address of the endpoint
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The name of the subscription
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The types of events; repeatable
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// The workflows, by slug or id; repeatable
    #[arg(long = "workflow", value_name = "WORKFLOW")]
    workflows: Vec<String>,
    /// Events of all workflows
    #[arg(long, conflicts_with = "workflows")]
    all_workflows: bool,
}

pub(crate) fn subscriptions(subscriptions: &Subscriptions, context: &Context) -> Result<Exit, CliError> {
    let client = context.global.client_of("subscriptions")?;
    let at = |parts: &[&str]| route(&[&["api", "event-subscriptions"], parts].concat(), &[]);
    let nothing = Value::Map(Map::new());
    let post = |parts: &[&str], repeat: Repeat| request(client.post(&at(parts), &nothing, repeat));
    match &subscriptions.action {
        Action::List => list(&client, context),
        Action::Show { id } => show(&client, &request(client.get(&at(&[id])))?, context),
        Action::Create(create) => {
            show(&client, &request(client.post(&at(&[]), &body_of(create)?, Repeat::MustNot))?, context)
        }
        Action::Update(update) => {
            let changed = request(client.patch(&at(&[&update.id]), &draft_of(update)))?;
            show(&client, &changed, context)
        }
        Action::Enable { id } => show(&client, &post(&[id, "enable"], Repeat::May)?, context),
        Action::Disable { id } => show(&client, &post(&[id, "disable"], Repeat::May)?, context),
        Action::RotateSecret { id, force } => {
            let body = if *force { Value::map([("force", true.into())]) } else { nothing.clone() };
            show(&client, &request(client.post(&at(&[id, "rotate-secret"]), &body, Repeat::MustNot))?, context)
        }
        Action::Test { id } => delivered(&client, &post(&[id, "test"], Repeat::MustNot)?, context),
        Action::Failed { id } => failed(&client, id, context),
        Action::Redeliver { id, delivery } => {
            delivered(&client, &post(&[id, "failed", delivery, "redeliver"], Repeat::MustNot)?, context)
        }
        Action::Delete { id } => removed(&client, &at(&[id]), id, context),
        Action::Dismiss { id, delivery } => removed(&client, &at(&[id, "failed", delivery]), delivery, context),
    }
}

fn texts(texts: &[String]) -> Value {
    Value::List(texts.iter().map(|text| text.as_str().into()).collect())
}

/// The body of a request that creates a subscription.
fn body_of(create: &Create) -> Result<Value, CliError> {
    let mut body = Map::from([
        ("name".to_string(), Value::from(create.name.as_str())),
        ("url".to_string(), create.url.as_str().into()),
        ("types".to_string(), texts(&create.types)),
        ("enabled".to_string(), (!create.disabled).into()),
    ]);
    if !create.workflows.is_empty() {
        body.insert("workflows".into(), texts(&create.workflows));
    }
    if let Some(file) = &create.secret_file {
        body.insert("secret".into(), secret_of(file)?.as_str().into());
    }
    Ok(Value::Map(body))
}

fn draft_of(update: &Update) -> Value {
    let mut body = Map::new();
    let text = |text: &Option<String>| text.as_deref().map(Value::from);
    body.extend(text(&update.url).map(|url| ("url".to_string(), url)));
    body.extend(text(&update.name).map(|name| ("name".to_string(), name)));
    if !update.types.is_empty() {
        body.insert("types".into(), texts(&update.types));
    }
    if update.all_workflows {
        body.insert("workflows".into(), Value::Null);
    } else if !update.workflows.is_empty() {
        body.insert("workflows".into(), texts(&update.workflows));
    }
    Value::Map(body)
}

/// Fetches all items of a list.
fn all(client: &Client, parts: &[&str], key: &str) -> Result<Vec<Value>, CliError> {
    request(async {
        let (mut found, mut cursor) = (Vec::new(), None::<String>);
        while found.len() < ROWS_MAX {
            let mut query = vec![("limit", PAGE)];
            query.extend(cursor.iter().map(|cursor| ("cursor", cursor.as_str())));
            let page = client.get(&route(parts, &query)).await?;
            let answer = Response::new(client, "a page", &page);
            let items = answer.list(key)?;
            found.extend(items.iter().cloned());
            let next = answer.maybe_text("nextCursor")?;
            // Ends the loop if a faulty server repeats a cursor.
            if next.is_none() || next == cursor || items.is_empty() {
                break;
            }
            cursor = next;
        }
        Ok(found)
    })
}

fn list(client: &Client, context: &Context) -> Result<Exit, CliError> {
    let found = all(client, &["api", "event-subscriptions"], "subscriptions")?;
    let row = |subscription: &Value| {
        let answer = Response::new(client, "an event subscription", subscription);
        let cells = [
            answer.text("id")?,
            answer.text("url")?,
            answer.texts("types")?.join(","),
            answer.text("name")?,
            state_of(&answer, subscription)?.into(),
        ];
        Ok::<_, ClientError>(cells.map(|cell| shown(&cell)))
    };
    print_rows(&found, row, context)
}

fn failed(client: &Client, id: &str, context: &Context) -> Result<Exit, CliError> {
    let found = all(client, &["api", "event-subscriptions", id, "failed"], "failed")?;
    let row = |failed: &Value| {
        let answer = Response::new(client, "a failed delivery", failed);
        let keys = ["id", "failedAt", "eventType", "executionId", "error"];
        let mut cells: [String; 5] = Default::default();
        for (cell, key) in cells.iter_mut().zip(keys) {
            *cell = shown(&answer.text(key)?);
        }
        Ok::<_, ClientError>(cells)
    };
    print_rows(&found, row, context)
}

fn print_rows<const N: usize>(
    found: &[Value],
    row: impl Fn(&Value) -> Result<[String; N], ClientError>,
    context: &Context,
) -> Result<Exit, CliError> {
    if context.global.json {
        found.iter().for_each(|item| print_out!("{}", compact(item)));
        return Ok(Exit::Fine);
    }
    if found.is_empty() {
        print_out!("{}", dim("none"));
    }
    print_table(&found.iter().map(row).collect::<Result<Vec<_>, _>>()?);
    Ok(Exit::Fine)
}

fn state_of(answer: &Response<'_>, subscription: &Value) -> Result<&'static str, ClientError> {
    let is_paused = subscription.get("paused").is_some_and(|paused| *paused != Value::Null);
    Ok(match (answer.flag("enabled")?, is_paused) {
        (false, _) => "disabled",
        (true, true) => "paused",
        (true, false) => "enabled",
    })
}

fn show(client: &Client, subscription: &Value, context: &Context) -> Result<Exit, CliError> {
    if context.global.json {
        print_out!("{}", compact(subscription));
        return Ok(Exit::Fine);
    }
    let answer = Response::new(client, "an event subscription", subscription);
    print_out!("{}  {}", bold(&shown(&answer.text("id")?)), state_of(&answer, subscription)?);
    let line = |name: &str, text: &str| print_out!("  {}  {}", dim(&format!("{name:9}")), shown(text));
    line("name", &answer.text("name")?);
    line("endpoint", &answer.text("url")?);
    answer.texts("types")?.iter().for_each(|event_type| line("events", event_type));
    if subscription.get("workflows").is_some_and(|workflows| *workflows != Value::Null) {
        answer.texts("workflows")?.iter().for_each(|workflow| line("workflow", workflow));
    }
    line("waiting", &counted(answer.number("waitingExecutions")?, "execution", "executions"));
    let of = |key: &str| subscription.get(key).filter(|value| **value != Value::Null);
    if of("lastFailure").is_some() {
        let failure = answer.object("lastFailure", "a failed attempt")?;
        line("failure", &format!("{} {}", failure.text("at")?, failure.text("error")?));
    }
    if of("paused").is_some() {
        line("paused", &answer.object("paused", "the reason of a pause")?.text("message")?);
    }
    if let Some(since) = answer.maybe_text("overflowedAt")? {
        line("full", &format!("events since {since} are not recorded; `enable` continues"));
    }
    if let Some(secret) = answer.maybe_text("secret")? {
        line("secret", &secret);
        context.terminal.note("save the secret now: it is not shown again");
    }
    Ok(Exit::Fine)
}

/// Prints the result of a delivery. One that has failed is an error of the command.
fn delivered(client: &Client, result: &Value, context: &Context) -> Result<Exit, CliError> {
    let answer = Response::new(client, "a delivery", result);
    let is_delivered = answer.flag("delivered")?;
    if context.global.json {
        print_out!("{}", compact(result));
    } else if is_delivered {
        print_out!("{} delivered with status {}", bold(&shown(&answer.text("eventId")?)), answer.number("status")?);
    } else {
        let error = answer.maybe_text("error")?.unwrap_or_default();
        print_out!("{} not delivered: {}", bold(&shown(&answer.text("eventId")?)), shown(&error));
    }
    Ok(if is_delivered { Exit::Fine } else { Exit::Failed })
}

fn removed(client: &Client, path: &str, id: &str, context: &Context) -> Result<Exit, CliError> {
    request(client.delete(path))?;
    match context.global.json {
        true => print_out!("{}", compact(&Value::map([("ok", Value::Bool(true))]))),
        false => context.terminal.note(&format!("{}: deleted", shown(id))),
    }
    Ok(Exit::Fine)
}
