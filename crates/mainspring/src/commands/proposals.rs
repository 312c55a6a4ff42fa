//! `mainspring proposals`: lists, shows, reviews and applies proposed changes of a workflow of a server.

use clap::{Args, Subcommand, ValueEnum};
use mainspring_kernel::{
    json::compact,
    value::{Number, Value},
};

use crate::{
    client::{Client, Repeat, address::route, response::Response},
    context::{Context, block_on},
    error::{CliError, Exit},
    output::{
        review::{print, rated},
        terminal::{bold, dim, print_out},
        text::{paragraph, shown},
    },
};

/// Proposed changes of a workflow.
#[derive(Debug, Args)]
pub(crate) struct Proposals {
    #[command(subcommand)]
    action: Action,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
enum Action {
    /// List the proposals of a workflow, the newest first
    List(List),
    /// Show a proposal with its difference, its findings and its risk
    Show(Which),
    /// Replay recorded executions with a pending proposal, without performing effects
    Shadow(Shadowed),
    /// Approve a proposal
    Approve(Reviewed),
    /// Reject a proposal
    Reject(Reviewed),
    /// Apply an approved proposal
    Apply(Application),
    /// Show which running executions continue with a proposal, and why others stay: before it is applied, and afterwards
    Migration(Migration),
    /// End the drain of a workflow: starts that wait begin beside executions of the older definition
    EndDrain(Drained),
}

/// Selects proposals.
#[derive(Debug, Args)]
struct List {
    /// The workflow: its slug or id
    workflow: String,
    /// Only proposals with this status
    #[arg(long, value_enum)]
    status: Option<Status>,
    /// The maximum number of proposals
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    limit: u32,
    /// Start after this cursor of the previous page
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

/// The status of a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Status {
    Pending,
    Approved,
    Rejected,
    Applied,
    Failed,
    Expired,
    Superseded,
}

/// A proposal.
#[derive(Debug, Args)]
struct Which {
    /// The workflow: its slug or id
    workflow: String,
    /// The proposal
    id: String,
}

/// A proposal to apply, with the condition for running executions.
#[derive(Debug, Args)]
struct Application {
    #[command(flatten)]
    which: Which,
    /// The treatment of executions that run
    #[arg(long, value_enum, default_value_t = WhileRunning::Pin)]
    while_running: WhileRunning,
    #[command(flatten)]
    rollout: RolloutOptions,
}

/// A rollout that the application begins.
#[derive(Debug, Args)]
struct RolloutOptions {
    /// Begin a rollout: this percentage of the new starts takes the change
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=99))]
    rollout: Option<u32>,
    /// The number of executions that must have ended before something is decided; default 20
    #[arg(long, value_name = "N", requires = "rollout", value_parser = clap::value_parser!(u32).range(1..=5000))]
    minimum: Option<u32>,
    /// Abort above this percentage of failed executions
    #[arg(long, value_name = "PERCENT", requires = "rollout", value_parser = finite)]
    max_failure_rate: Option<Number>,
    /// Abort above this many percentage points of failures more than the present version has
    #[arg(long, value_name = "POINTS", requires = "rollout", value_parser = finite)]
    max_failure_points_over: Option<Number>,
    /// Abort above this ratio of the median durations
    #[arg(long, value_name = "RATIO", requires = "rollout", value_parser = finite)]
    max_duration_p50_ratio: Option<Number>,
    /// Abort above this ratio of the 95th percentile durations
    #[arg(long, value_name = "RATIO", requires = "rollout", value_parser = finite)]
    max_duration_p95_ratio: Option<Number>,
    /// Abort above this ratio of the mean costs
    #[arg(long, value_name = "RATIO", requires = "rollout", value_parser = finite)]
    max_cost_ratio: Option<Number>,
    /// Promote by itself when all thresholds are kept
    #[arg(long, requires = "rollout")]
    promote: bool,
}

/// Reads a number that JSON can express.
fn finite(text: &str) -> Result<Number, String> {
    let number = text.parse::<f64>().ok().and_then(Number::double);
    number.ok_or_else(|| "it is not a decimal number".into())
}

impl RolloutOptions {
    /// The rollout of the request; `None` without one.
    fn to_value(&self) -> Option<Value> {
        let thresholds = [
            ("maxFailureRatePercent", self.max_failure_rate),
            ("maxFailureRatePointsOver", self.max_failure_points_over),
            ("maxDurationP50Ratio", self.max_duration_p50_ratio),
            ("maxDurationP95Ratio", self.max_duration_p95_ratio),
            ("maxCostRatio", self.max_cost_ratio),
        ];
        let given = thresholds.into_iter().filter_map(|(name, limit)| Some((name, Value::Number(limit?))));
        let given: Vec<_> = given.collect();
        let mut rollout = vec![("percent", Value::from(self.rollout?)), ("promote", self.promote.into())];
        rollout.extend(self.minimum.map(|minimum| ("minimum", minimum.into())));
        if !given.is_empty() {
            rollout.push(("compare", Value::map(given)));
        }
        Some(Value::map(rollout))
    }
}

/// A migration of running executions.
#[derive(Debug, Args)]
struct Migration {
    #[command(flatten)]
    which: Which,
    /// The maximum number of executions of a preview
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=50))]
    limit: u32,
    /// Start after this cursor of the previous page
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

/// A workflow that drains.
#[derive(Debug, Args)]
struct Drained {
    /// The workflow: its slug or id
    workflow: String,
}

/// The treatment of unfinished executions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WhileRunning {
    /// They end with the definition with which they started
    Pin,
    /// The application is refused while there are any
    Strict,
    /// Executions that start later wait until all of them have ended
    Drain,
    /// They continue with the new definition where every step that has begun has its counterpart; the others stay
    Migrate,
}

/// A shadow run.
#[derive(Debug, Args)]
struct Shadowed {
    #[command(flatten)]
    which: Which,
    /// The number of ended executions
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=50))]
    last: u32,
    /// Executions by id, instead of the last ones
    #[arg(long, value_name = "ID", num_args = 1.., conflicts_with = "last")]
    executions: Vec<String>,
    /// Show the report of the last run, and run nothing
    #[arg(long, conflicts_with_all = ["last", "executions"])]
    show: bool,
}

/// A review.
#[derive(Debug, Args)]
struct Reviewed {
    #[command(flatten)]
    which: Which,
    /// Notes for the author, recorded in the audit log
    #[arg(long, value_name = "TEXT")]
    notes: Option<String>,
    /// The `reviewHash` that `proposals show` has shown: the review is refused if something has changed since
    #[arg(long, value_name = "HASH")]
    review_hash: Option<String>,
}

pub(crate) fn proposals(proposals: &Proposals, context: &Context) -> Result<Exit, CliError> {
    let client = context.global.client_of("proposals")?;
    match &proposals.action {
        Action::List(query) => list(query, &client, context),
        Action::Show(which) => {
            let found = block_on(async { Ok(client.get(&path(which, None)).await?) })?;
            show(&client, &found, context)
        }
        Action::Shadow(shadowed) => shadow(shadowed, &client, context),
        Action::Approve(reviewed) => review(reviewed, true, &client, context),
        Action::Reject(reviewed) => review(reviewed, false, &client, context),
        Action::Apply(application) => apply(application, &client, context),
        Action::Migration(of) => migration(of, &client, context),
        Action::EndDrain(drained) => end_drain(drained, &client, context),
    }
}

fn path(which: &Which, verb: Option<&str>) -> String {
    let parts = ["api", "workflows", &which.workflow, "proposals", &which.id];
    route(&parts.into_iter().chain(verb).collect::<Vec<_>>(), &[])
}

fn list(query: &List, client: &Client, context: &Context) -> Result<Exit, CliError> {
    let (limit, status) = (query.limit.to_string(), query.status.and_then(|status| status.to_possible_value()));
    let mut parameters = vec![("limit", limit.as_str())];
    parameters.extend(status.iter().map(|status| ("status", status.get_name())));
    parameters.extend(query.cursor.iter().map(|cursor| ("cursor", cursor.as_str())));
    let route = route(&["api", "workflows", &query.workflow, "proposals"], &parameters);
    let page = block_on(async { Ok(client.get(&route).await?) })?;
    if context.global.json {
        print_out!("{}", compact(&page));
        return Ok(Exit::Fine);
    }
    let answer = Response::new(client, "a page of proposals", &page);
    let rows = answer.objects("proposals", "a proposal")?;
    for row in &rows {
        let summary = row.object("proposal", "a change")?.maybe_text("summary")?.unwrap_or_default();
        let by = dim(&shown(&format!("{} {}", author(row)?, row.text("createdAt")?)));
        print_out!("{} {} {by}", bold(&shown(&row.text("id")?)), shown(&row.text("status")?));
        if !summary.is_empty() {
            print_out!("  {}", paragraph(&summary));
        }
    }
    match answer.maybe_text("nextCursor")? {
        Some(cursor) => context.terminal.note(&format!("more with --cursor {}", shown(&cursor))),
        None if rows.is_empty() => print_out!("{}", dim("none")),
        None => {}
    }
    Ok(Exit::Fine)
}

/// The author of a proposal: a member, or the session of an execution that acts for the member.
fn author(proposal: &Response<'_>) -> Result<String, CliError> {
    let member = proposal.text("proposedBy")?;
    Ok(match proposal.maybe_text("proposedBySessionId")? {
        Some(session) => format!("the session {session} for {member}"),
        None => member,
    })
}

/// Prints a proposal with its review.
fn show(client: &Client, found: &Value, context: &Context) -> Result<Exit, CliError> {
    if context.global.json {
        print_out!("{}", compact(found));
        return Ok(Exit::Fine);
    }
    let answer = Response::new(client, "a proposal", found);
    let change = answer.object("proposal", "a change")?;
    print_out!("{} {}", bold(&shown(&answer.text("id")?)), shown(&answer.text("status")?));
    print_out!("by {} at {}", shown(&author(&answer)?), shown(&answer.text("createdAt")?));
    for key in ["summary", "rationale"] {
        if let Some(text) = change.maybe_text(key)? {
            print_out!("{}", paragraph(&text));
        }
    }
    if let Some(failure) = answer.maybe_text("failure")? {
        print_out!("failed: {}", paragraph(&failure));
    }
    print_out!("");
    print(&answer.any("report"));
    if let Some(hash) = answer.maybe_text("reviewHash")? {
        print_out!("{}", dim(&shown(&format!("review hash: {hash}"))));
    }
    Ok(Exit::Fine)
}

/// Reviews the state that is read here, or the state with the given hash.
fn review(reviewed: &Reviewed, approve: bool, client: &Client, context: &Context) -> Result<Exit, CliError> {
    let Reviewed { which, notes, review_hash } = reviewed;
    let done = block_on(async {
        let hash = match review_hash {
            Some(hash) => Some(hash.clone()),
            None => {
                let found = client.get(&path(which, None)).await?;
                Response::new(client, "a proposal", &found).maybe_text("reviewHash")?
            }
        };
        let optional = |text: Option<&str>| text.map_or(Value::Null, Value::from);
        let body = Value::map([
            ("approve", Value::from(approve)),
            ("notes", optional(notes.as_deref())),
            ("reviewHash", optional(hash.as_deref())),
        ]);
        Ok(client.post(&path(which, Some("review")), &body, Repeat::MustNot).await?)
    })?;
    if context.global.json {
        print_out!("{}", compact(&done));
        return Ok(Exit::Fine);
    }
    let answer = Response::new(client, "a proposal", &done);
    let risk = answer.object("report", "a report")?.text("risk")?;
    print_out!("{} {}, risk: {}", bold(&shown(&answer.text("id")?)), shown(&answer.text("status")?), rated(&risk));
    if approve {
        print_out!("{}", dim(&shown(&format!("mainspring proposals apply {} {}", which.workflow, which.id))));
    }
    Ok(Exit::Fine)
}

fn shadow(shadowed: &Shadowed, client: &Client, context: &Context) -> Result<Exit, CliError> {
    let path = path(&shadowed.which, Some("shadow"));
    let body = match shadowed.executions.as_slice() {
        [] => Value::map([("last", Value::from(shadowed.last))]),
        ids => {
            let ids: Vec<Value> = ids.iter().map(|id| id.as_str().into()).collect();
            Value::map([("executionIds", Value::from(ids))])
        }
    };
    let done = block_on(async {
        match shadowed.show {
            true => Ok(client.get(&path).await?),
            false => Ok(client.post(&path, &body, Repeat::May).await?),
        }
    })?;
    if context.global.json {
        print_out!("{}", compact(&done));
        return Ok(Exit::Fine);
    }
    let answer = Response::new(client, "a shadow run", &done);
    crate::output::shadow::print(&answer.any("report"));
    print_out!("{}", dim(&shown(&format!("shadow hash: {}", answer.text("hash")?))));
    Ok(Exit::Fine)
}

fn migration(of: &Migration, client: &Client, context: &Context) -> Result<Exit, CliError> {
    let Migration { which, limit, cursor } = of;
    let limit = limit.to_string();
    let parts = ["api", "workflows", &which.workflow, "proposals", &which.id, "migration"];
    let parameters =
        [("limit", limit.as_str())].into_iter().chain(cursor.iter().map(|cursor| ("cursor", cursor.as_str())));
    let route = route(&parts, &parameters.collect::<Vec<_>>());
    let found = block_on(async { Ok(client.get(&route).await?) })?;
    if context.global.json {
        print_out!("{}", compact(&found));
        return Ok(Exit::Fine);
    }
    let answer = Response::new(client, "a migration", &found);
    let status = answer.text("status")?;
    if status != "preview" {
        let count = |key: &str| answer.any(key).as_u64().unwrap_or_default();
        print_out!("{}: {} continued, {} stayed", shown(&status), count("migrated"), count("stayed"));
    }
    if let Some(reason) = answer.maybe_text("endReason")? {
        print_out!("{}", paragraph(&reason));
    }
    for execution in answer.objects("executions", "an execution")? {
        let continues = execution.any("migrates").as_bool() == Some(true);
        print_out!(
            "{} {}",
            bold(&shown(&execution.text("executionId")?)),
            if continues { "continues" } else { "stays" }
        );
        for reason in execution.objects("reasons", "a reason")? {
            let step = reason.maybe_text("stepId")?.map(|step| format!("step `{step}`: ")).unwrap_or_default();
            print_out!("  {}{} {}", shown(&step), shown(&reason.text("message")?), dim(&shown(&reason.text("code")?)));
        }
    }
    if let Some(cursor) = answer.maybe_text("nextCursor")? {
        context.terminal.note(&format!("more with --cursor {}", shown(&cursor)));
    }
    Ok(Exit::Fine)
}

fn end_drain(drained: &Drained, client: &Client, context: &Context) -> Result<Exit, CliError> {
    let path = route(&["api", "workflows", &drained.workflow, "drain"], &[]);
    block_on(async { Ok(client.delete(&path).await?) })?;
    if !context.global.json {
        print_out!("{} no longer drains", bold(&shown(&drained.workflow)));
    }
    Ok(Exit::Fine)
}

fn apply(application: &Application, client: &Client, context: &Context) -> Result<Exit, CliError> {
    let Application { which, while_running, rollout } = application;
    let treatment = match while_running {
        WhileRunning::Pin => "pin",
        WhileRunning::Strict => "strict",
        WhileRunning::Drain => "drain",
        WhileRunning::Migrate => "migrate",
    };
    let rollout = rollout.to_value().map(|rollout| ("rollout", rollout));
    let body = Value::map([("whileRunning", Value::from(treatment))].into_iter().chain(rollout));
    let done = block_on(async { Ok(client.post(&path(which, Some("apply")), &body, Repeat::MustNot).await?) })?;
    if context.global.json {
        print_out!("{}", compact(&done));
        return Ok(Exit::Fine);
    }
    let answer = Response::new(client, "an applied proposal", &done);
    let workflow = answer.object("workflow", "a workflow")?;
    let (version, hash) = (workflow.text("version")?, workflow.text("workflowHash")?);
    print_out!("{} {} {}", bold(&shown(&which.workflow)), shown(&version), dim(&shown(&hash)));
    let active = workflow.any("rollout");
    if let Some(version) = active.get("candidateVersion").and_then(Value::as_text) {
        let percent = active.get("percent").and_then(Value::as_u64).unwrap_or_default();
        print_out!("{percent}% of the starts use {}", shown(version));
        print_out!("{}", dim(&shown(&format!("mainspring rollout show {}", which.workflow))));
        return Ok(Exit::Fine);
    }
    match while_running {
        WhileRunning::Drain => {
            print_out!("{}", dim("starts wait until the executions of older definitions have ended"))
        }
        WhileRunning::Migrate => {
            print_out!("{}", dim(&shown(&format!("mainspring proposals migration {} {}", which.workflow, which.id))));
        }
        WhileRunning::Pin | WhileRunning::Strict => {}
    }
    Ok(Exit::Fine)
}
