//! `mainspring triggers`: the triggers of a server, which start executions or send prompts, from webhooks and by
//! schedules.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use mainspring_kernel::{
    json::{self, compact, pretty},
    value::{Map, Value},
};

use super::{repository_flags::TriggerRepository, run::variables};
use crate::{
    backend::contract::fresh_id,
    client::{Client, ClientError, Repeat, address::route, response::Response},
    context::{Context, block_on},
    error::{CliError, Exit},
    output::{
        terminal::{bold, dim, print_out},
        text::{columns, shown},
    },
    read_limited,
};

/// Triggers per page, and triggers listed at most.
const PAGE: &str = "200";
const ROWS_MAX: usize = 100_000;

/// Triggers of a server: webhooks and schedules.
#[derive(Debug, Args)]
pub(crate) struct Triggers {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List triggers
    List {
        /// Only those of this workflow, by its slug or id
        #[arg(long, value_name = "WORKFLOW")]
        workflow: Option<String>,
    },
    /// Show a trigger: its webhook address or its next runs
    Show {
        /// The id of the trigger
        id: String,
    },
    /// Create a trigger of a workflow
    Create(Box<Create>),
    /// Start the workflow of a trigger, with variables that its mapping takes from an event
    Run(Run),
    /// Enable a trigger
    Enable {
        /// The id of the trigger
        id: String,
    },
    /// Disable a trigger: its webhook refuses deliveries, and its ticks do not run
    Disable {
        /// The id of the trigger
        id: String,
    },
    /// Delete a trigger; its executions are kept
    Delete {
        /// The id of the trigger
        id: String,
    },
    /// List the newest deliveries, ticks and requests of a trigger with their outcomes
    Deliveries {
        /// The id of the trigger
        id: String,
    },
    /// Deliver an event again, through the present mapping
    Redeliver {
        /// The id of the trigger
        id: String,
        /// The id of the delivery, as `deliveries` lists it
        delivery: String,
    },
    /// Apply the mapping of a trigger to an event, without starting anything
    Test {
        /// The id of the trigger
        id: String,
        /// The file with the body of the event as JSON; `-` for standard input
        #[arg(long, value_name = "FILE")]
        event: PathBuf,
    },
}

/// Create a trigger of a workflow.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("source").required(true).args(["cron", "webhook", "manual"]))]
struct Create {
    /// The slug or id of the workflow; none with --prompt
    #[arg(required_unless_present = "prompt", conflicts_with = "prompt")]
    workflow: Option<String>,
    /// The name of the trigger
    #[arg(long, value_name = "NAME")]
    name: String,
    /// A schedule: five fields, or a name such as @daily (`mainspring schedule next` shows its ticks)
    #[arg(long, value_name = "EXPR")]
    cron: Option<String>,
    /// The time zone of the schedule by its IANA name [default: UTC]
    #[arg(long, value_name = "ZONE", requires = "cron")]
    timezone: Option<String>,
    /// Ticks that no node ran in time [default: skip]
    #[arg(long, value_enum, requires = "cron")]
    missed: Option<Missed>,
    /// A tick while an execution of the trigger is active [default: allow]
    #[arg(long, value_enum, requires = "cron")]
    overlap: Option<Overlap>,
    /// Milliseconds; the ticks start late by a part of it that is fixed for the trigger
    #[arg(long, value_name = "MS", requires = "cron")]
    jitter_ms: Option<u64>,
    /// A text that the ticks send to the orchestrator of the organization, instead of starting a workflow
    #[arg(long, value_name = "TEXT", requires = "cron", conflicts_with_all = ["overlap", "mapping"])]
    prompt: Option<String>,
    /// A webhook at /webhooks/PATH
    #[arg(long, value_name = "PATH")]
    webhook: Option<String>,
    /// The file with the secret of the webhook's signatures; `-` for standard input
    #[arg(long, value_name = "FILE", requires = "webhook")]
    secret_file: Option<PathBuf>,
    /// The scheme of the signatures [default: HMAC-SHA256 in X-Signature or X-Hub-Signature-256]
    #[arg(long, value_enum, requires = "secret_file")]
    scheme: Option<Scheme>,
    /// Responds with the output of the execution
    #[arg(long, requires = "webhook")]
    respond_wait: bool,
    /// Only requests of members start it
    #[arg(long)]
    manual: bool,
    #[command(flatten)]
    executions: OfExecutions,
    /// Creates it disabled
    #[arg(long)]
    disabled: bool,
}

/// The variables and the repository of the executions.
#[derive(Debug, Args)]
struct OfExecutions {
    /// A variable and its path in the event: `number=$.pr.number`; repeatable
    #[arg(long = "map", value_name = "NAME=PATH")]
    mapping: Vec<String>,
    #[command(flatten)]
    repository: TriggerRepository,
}

/// Start the workflow of a trigger.
#[derive(Debug, Args)]
struct Run {
    /// The id of the trigger
    id: String,
    /// The file with the body of the event as JSON; `-` for standard input
    #[arg(long, value_name = "FILE")]
    event: Option<PathBuf>,
    /// A variable, which takes precedence over a mapped one: JSON, or else text; repeatable
    #[arg(long = "var", value_name = "NAME=VALUE")]
    variables: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Missed {
    /// They do not run
    Skip,
    /// Only the last one runs
    Once,
    /// All run, the oldest first
    All,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Overlap {
    /// It starts another execution
    Allow,
    /// It starts once the active execution has ended
    Queue,
    /// It does not run
    Skip,
    /// The active execution is canceled
    CancelPrevious,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Scheme {
    /// The webhook-signature header of Standard Webhooks
    StandardWebhooks,
    /// X-Hub-Signature-256
    Github,
    /// X-Gitlab-Token
    Gitlab,
    /// Stripe-Signature
    Stripe,
    /// X-Slack-Signature
    Slack,
}

pub(crate) fn triggers(triggers: &Triggers, context: &Context) -> Result<Exit, CliError> {
    let client = context.global.client_of("triggers")?;
    let at = |parts: &[&str]| route(&[&["api", "triggers"], parts].concat(), &[]);
    let nothing = Value::Map(Map::new());
    match &triggers.action {
        Action::List { workflow } => list(&client, workflow.as_deref(), context),
        Action::Show { id } => show(&client, &request(client.get(&at(&[id])))?, context),
        Action::Create(create) => {
            let body = body_of(create)?;
            show(&client, &request(client.post(&at(&[]), &body, Repeat::MustNot))?, context)
        }
        Action::Run(run) => {
            let started = request(client.post(&at(&[&run.id, "run"]), &run_body(run)?, Repeat::May))?;
            started_as(&client, &started, context)
        }
        Action::Enable { id } => {
            show(&client, &request(client.post(&at(&[id, "enable"]), &nothing, Repeat::May))?, context)
        }
        Action::Disable { id } => {
            show(&client, &request(client.post(&at(&[id, "disable"]), &nothing, Repeat::May))?, context)
        }
        Action::Delete { id } => {
            request(client.delete(&at(&[id])))?;
            match context.global.json {
                true => print_out!("{}", compact(&Value::map([("ok", Value::Bool(true))]))),
                false => context.terminal.note(&format!("{}: deleted; its executions remain", shown(id))),
            }
            Ok(Exit::Fine)
        }
        Action::Deliveries { id } => deliveries(&client, &request(client.get(&at(&[id, "deliveries"])))?, context),
        Action::Redeliver { id, delivery } => {
            let route = at(&[id, "deliveries", delivery, "redeliver"]);
            let started = request(client.post(&route, &nothing, Repeat::MustNot))?;
            started_as(&client, &started, context)
        }
        Action::Test { id, event } => {
            let body = Value::map([("body", read_event(event)?)]);
            let mapped = request(client.post(&at(&[id, "test"]), &body, Repeat::May))?;
            let print = if context.global.json { compact } else { pretty };
            print_out!("{}", print(&mapped));
            Ok(Exit::Fine)
        }
    }
}

pub(super) fn request<T>(sent: impl Future<Output = Result<T, ClientError>>) -> Result<T, CliError> {
    block_on(async { Ok(sent.await?) })
}

/// The body of a request that creates a trigger.
fn body_of(create: &Create) -> Result<Value, CliError> {
    let mut body = Map::from([
        ("name".to_string(), Value::from(create.name.as_str())),
        ("enabled".to_string(), (!create.disabled).into()),
        ("config".to_string(), config_of(create)?),
    ]);
    body.extend(create.workflow.as_deref().map(|workflow| ("workflowId".to_string(), workflow.into())));
    body.extend(create.executions.repository.value().map(|repository| ("repository".to_string(), repository)));
    if !create.executions.mapping.is_empty() {
        let mut mapping = Map::new();
        for pair in &create.executions.mapping {
            let refused = || CliError::bad_input("bad_variable", format!("--map {pair}: write NAME=PATH"));
            let (name, path) = pair.split_once('=').ok_or_else(refused)?;
            mapping.insert(name.into(), path.into());
        }
        body.insert("variableMapping".into(), mapping.into());
    }
    Ok(Value::Map(body))
}

fn config_of(create: &Create) -> Result<Value, CliError> {
    let word = |value: &dyn ToString| Value::from(value.to_string().replace('-', "_"));
    let named = |value: Option<String>| value.map(|value| word(&value));
    let mut config: Vec<(&str, Value)> = Vec::new();
    if let Some(cron) = &create.cron {
        config.extend([("type", "schedule".into()), ("cron", cron.as_str().into())]);
        config.extend(create.timezone.as_deref().map(|zone| ("timezone", zone.into())));
        config.extend(named(create.missed.as_ref().and_then(name_of)).map(|missed| ("missed", missed)));
        config.extend(named(create.overlap.as_ref().and_then(name_of)).map(|overlap| ("overlap", overlap)));
        config.extend(create.jitter_ms.map(|jitter_ms| ("jitterMs", jitter_ms.into())));
        let prompt = create.prompt.as_deref();
        config.extend(prompt.into_iter().flat_map(|text| [("target", "orchestrator".into()), ("prompt", text.into())]));
    } else if let Some(path) = &create.webhook {
        config.extend([("type", "webhook".into()), ("path", path.as_str().into())]);
        if let Some(file) = &create.secret_file {
            config.push(("secret", secret_of(file)?.into()));
        }
        let scheme = named(create.scheme.as_ref().and_then(name_of));
        config.extend(scheme.map(|scheme| ("signature", Value::map([("scheme", scheme)]))));
        config.extend(create.respond_wait.then(|| ("respond", "wait".into())));
    } else {
        config.push(("type", "manual".into()));
    }
    Ok(Value::map(config))
}

/// The word of a flag's value.
fn name_of(value: &impl ValueEnum) -> Option<String> {
    value.to_possible_value().map(|value| value.get_name().to_string())
}

fn read(file: &std::path::Path) -> Result<Vec<u8>, CliError> {
    let bytes = if file.as_os_str() == "-" { read_limited::stdin() } else { read_limited::file(file) };
    bytes.map_err(|why| CliError::bad_input("unreadable", why))
}

/// Reads a secret. A newline at its end is that of the file.
pub(super) fn secret_of(file: &std::path::Path) -> Result<String, CliError> {
    let text = String::from_utf8(read(file)?);
    let text = text.map_err(|_| CliError::bad_input("bad_input", format!("{}: it is not UTF-8", file.display())))?;
    Ok(text.strip_suffix('\n').map_or(text.as_str(), |text| text.strip_suffix('\r').unwrap_or(text)).to_string())
}

fn read_event(file: &std::path::Path) -> Result<Value, CliError> {
    json::data(&read(file)?).map_err(|error| CliError::bad_input("bad_input", format!("{}: {error}", file.display())))
}

/// The body of a run. Without variables it has none, since a prompt takes none.
fn run_body(run: &Run) -> Result<Value, CliError> {
    let mut body = Map::from([("clientRequestId".to_string(), Value::from(fresh_id()?))]);
    if let Some(file) = &run.event {
        body.insert("event".into(), Value::map([("body", read_event(file)?)]));
    }
    if !run.variables.is_empty() {
        body.insert("variables".into(), variables(&run.variables)?.into());
    }
    Ok(Value::Map(body))
}

/// Prints the execution or the prompt that a request has made.
fn started_as(client: &Client, started: &Value, context: &Context) -> Result<Exit, CliError> {
    let answer = Response::new(client, "a run of a trigger", started);
    let prompt = answer.maybe_text("promptId")?;
    let id = prompt.clone().map_or_else(|| answer.text("executionId"), Ok)?;
    match (context.global.json, prompt) {
        (true, _) => print_out!("{}", compact(started)),
        (false, None) => print_out!("{} started; `mainspring tail {id}` follows it", bold(&id)),
        (false, Some(_)) => print_out!(
            "{} accepted for the orchestrator; `mainspring triggers deliveries` shows its outcome",
            bold(&shown(&id))
        ),
    }
    Ok(Exit::Fine)
}

fn list(client: &Client, workflow: Option<&str>, context: &Context) -> Result<Exit, CliError> {
    let found = request(all(client, workflow))?;
    if context.global.json {
        found.iter().for_each(|trigger| print_out!("{}", compact(trigger)));
        return Ok(Exit::Fine);
    }
    if found.is_empty() {
        print_out!("{}", dim("none"));
    }
    let rows = found.iter().map(|trigger| row(client, trigger)).collect::<Result<Vec<_>, _>>()?;
    print_table(&rows);
    Ok(Exit::Fine)
}

/// Id, type, next run or address, name, and a note about a trigger that starts nothing.
fn row(client: &Client, trigger: &Value) -> Result<[String; 5], ClientError> {
    let answer = Response::new(client, "a trigger", trigger);
    let next = answer.texts("nextRuns")?.into_iter().next();
    let place = answer.maybe_text("webhookUrl")?.or(next).unwrap_or_else(|| "-".into());
    let is_stopped = trigger.get("stopped").is_some_and(|stopped| *stopped != Value::Null);
    let note = match (answer.flag("enabled")?, is_stopped) {
        (_, true) => "stopped",
        (false, false) => "disabled",
        (true, false) => "",
    };
    let cells = [answer.text("id")?, answer.text("type")?, place, answer.text("name")?, note.into()];
    Ok(cells.map(|cell| shown(&cell)))
}

/// Prints rows in aligned columns. The cells are escaped.
pub(super) fn print_table<const N: usize>(rows: &[[String; N]]) {
    let width = |column: usize| rows.iter().map(|row| columns(&row[column])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let text = if column == 0 { bold(cell).to_string() } else { cell.clone() };
            line.push_str(&format!("{text}{}  ", " ".repeat(widths[column] - columns(cell))));
        }
        print_out!("{}", line.trim_end());
    }
}

/// Fetches all triggers.
pub(super) async fn all(client: &Client, workflow: Option<&str>) -> Result<Vec<Value>, ClientError> {
    let (mut found, mut cursor) = (Vec::new(), None::<String>);
    while found.len() < ROWS_MAX {
        let mut query = vec![("limit", PAGE)];
        query.extend(workflow.map(|workflow| ("workflowId", workflow)));
        query.extend(cursor.iter().map(|cursor| ("cursor", cursor.as_str())));
        let page = client.get(&route(&["api", "triggers"], &query)).await?;
        let answer = Response::new(client, "a page of triggers", &page);
        let triggers = answer.list("triggers")?;
        found.extend(triggers.iter().cloned());
        let next = answer.maybe_text("nextCursor")?;
        // Ends the loop if a faulty server repeats a cursor.
        if next.is_none() || next == cursor || triggers.is_empty() {
            break;
        }
        cursor = next;
    }
    Ok(found)
}

fn show(client: &Client, trigger: &Value, context: &Context) -> Result<Exit, CliError> {
    if context.global.json {
        print_out!("{}", compact(trigger));
        return Ok(Exit::Fine);
    }
    let answer = Response::new(client, "a trigger", trigger);
    let state = if answer.flag("enabled")? { "enabled" } else { "disabled" };
    print_out!("{}  {} {state}", bold(&shown(&answer.text("id")?)), shown(&answer.text("type")?));
    let line = |name: &str, text: &str| print_out!("  {}  {}", dim(&format!("{name:9}")), shown(text));
    line("name", &answer.text("name")?);
    answer.maybe_text("workflowId")?.iter().for_each(|workflow| line("workflow", workflow));
    line("runs as", &answer.text("userId")?);
    answer.maybe_text("webhookUrl")?.iter().for_each(|url| line("address", url));
    answer.texts("nextRuns")?.iter().for_each(|next| line("next run", next));
    answer.maybe_text("lastRunAt")?.iter().for_each(|last| line("last run", last));
    if trigger.get("stopped").is_some_and(|stopped| *stopped != Value::Null) {
        line("stopped", &answer.object("stopped", "the reason of a stop")?.text("message")?);
    }
    show_prompts(&answer, trigger)?.iter().for_each(|(name, text)| line(name, text));
    // A server of an older release gives none.
    for warning in trigger.get("warnings").and_then(Value::as_list).unwrap_or_default() {
        context.terminal.note(&format!("warning: {}", shown(warning.as_text().unwrap_or_default())));
    }
    Ok(Exit::Fine)
}

/// The lines about the target `orchestrator`.
fn show_prompts(answer: &Response<'_>, trigger: &Value) -> Result<Vec<(&'static str, String)>, ClientError> {
    let Some(prompts) = trigger.get("prompts").filter(|prompts| **prompts != Value::Null) else {
        return Ok(Vec::new());
    };
    let of = answer.object("prompts", "the prompts of a trigger")?;
    let mut lines = Vec::new();
    if let Some(text) = trigger.get("config").and_then(|config| config.get("prompt")).and_then(Value::as_text) {
        lines.push(("prompt", text.to_string()));
    }
    lines.push(("waiting", of.number("waiting")?.to_string()));
    if prompts.get("lastFailure").is_some_and(|failure| *failure != Value::Null) {
        let failure = of.object("lastFailure", "a failed attempt")?;
        lines.push(("failure", format!("{} at {}", failure.text("error")?, failure.text("at")?)));
        lines.extend(failure.maybe_text("nextAttemptAt")?.map(|next| ("next try", next)));
    }
    Ok(lines)
}

fn deliveries(client: &Client, found: &Value, context: &Context) -> Result<Exit, CliError> {
    let runs = Response::new(client, "a run log", found).objects("deliveries", "a delivery")?;
    if context.global.json {
        runs.iter().for_each(|run| print_out!("{}", compact(run.value)));
        return Ok(Exit::Fine);
    }
    if runs.is_empty() {
        print_out!("{}", dim("none"));
    }
    let row = |run: &Response<'_>| {
        let text = |key: &str| Ok::<_, ClientError>(run.maybe_text(key)?.unwrap_or_default());
        let cells = [
            run.text("id")?,
            run.text("at")?,
            run.text("source")?,
            run.text("outcome")?,
            run.maybe_text("executionId")?.or(run.maybe_text("promptId")?).unwrap_or_default(),
            text("reason")?,
        ];
        Ok::<_, ClientError>(cells.map(|cell| shown(&cell)))
    };
    print_table(&runs.iter().map(row).collect::<Result<Vec<_>, _>>()?);
    Ok(Exit::Fine)
}
