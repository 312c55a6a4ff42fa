//! `mainspring sessions`: the sessions of executions at a server.

use clap::{Args, Subcommand, ValueEnum};
use mainspring_kernel::{
    json::{compact, pretty},
    value::{Map, Value},
};

use super::triggers::print_table;
use crate::{
    client::{Client, ClientError, Repeat, address::route, response::Response},
    context::{Context, block_on},
    error::{CliError, Exit},
    output::{
        terminal::{dim, print_out},
        text::shown,
    },
};

/// Sessions per page, and sessions listed at most.
const PAGE: &str = "200";
const PAGE_ROWS: u64 = 200;
const ROWS_MAX: usize = 100_000;

/// The pattern that matches all sessions of executions.
const ALL: &str = "agent:*:workflow:*:run:*";

/// Sessions of the executions of a server.
#[derive(Debug, Args)]
pub(crate) struct Sessions {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the sessions of executions
    List {
        /// A pattern of session keys, such as 'agent:*:workflow:nightly-*:run:*'
        #[arg(default_value = ALL)]
        pattern: String,
        /// Only those with this status
        #[arg(long, value_enum)]
        status: Option<Status>,
    },
    /// Show a session
    Show {
        /// The id or the key of the session
        id: String,
    },
    /// Revoke the credentials of ended sessions and remove their workspaces. Executions are kept
    Reap {
        /// A pattern of session keys, such as 'agent:*:workflow:nightly-*:run:*'
        pattern: String,
        /// Only those that ended before this time, such as 2026-02-07T12:00:00Z
        #[arg(long, value_name = "TIME")]
        ended_before: Option<String>,
        /// Only list them
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Status {
    /// The execution has not started, or waits for approvals only
    Hibernated,
    /// The execution runs
    Running,
    /// The execution has ended
    Terminated,
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Self::Hibernated => "hibernated",
            Self::Running => "running",
            Self::Terminated => "terminated",
        }
    }
}

pub(crate) fn sessions(sessions: &Sessions, context: &Context) -> Result<Exit, CliError> {
    let client = context.global.client_of("sessions")?;
    match &sessions.action {
        Action::List { pattern, status } => list(&client, pattern, *status, context),
        Action::Show { id } => {
            let found = block_on(async { Ok(client.get(&route(&["api", "sessions", id], &[])).await?) })?;
            print_out!("{}", if context.global.json { compact(&found) } else { pretty(&found) });
            Ok(Exit::Fine)
        }
        Action::Reap { pattern, ended_before, dry_run } => {
            reap(&client, &order(pattern, ended_before.as_deref(), *dry_run), context)
        }
    }
}

/// Fetches all pages of sessions. `page_of` requests the page at a cursor.
async fn pages(
    client: &Client,
    page_of: impl AsyncFn(Option<&str>) -> Result<Value, ClientError>,
) -> Result<Vec<Value>, ClientError> {
    let (mut found, mut cursor) = (Vec::new(), None::<String>);
    while found.len() < ROWS_MAX {
        let page = page_of(cursor.as_deref()).await?;
        let answer = Response::new(client, "a page of sessions", &page);
        found.extend(answer.list("sessions")?.iter().cloned());
        let next = answer.maybe_text("nextCursor")?;
        // Ends the loop if a faulty server repeats a cursor. A page with a pattern may be empty.
        if next.is_none() || next == cursor {
            break;
        }
        cursor = next;
    }
    Ok(found)
}

fn list(client: &Client, pattern: &str, status: Option<Status>, context: &Context) -> Result<Exit, CliError> {
    let page_of = async |cursor: Option<&str>| {
        let mut query = vec![("purpose", "workflow"), ("key", pattern), ("limit", PAGE)];
        query.extend(status.map(|status| ("status", status.name())));
        query.extend(cursor.map(|cursor| ("cursor", cursor)));
        client.get(&route(&["api", "sessions"], &query)).await
    };
    let found = block_on(async { Ok(pages(client, page_of).await?) })?;
    if context.global.json {
        found.iter().for_each(|session| print_out!("{}", compact(session)));
        return Ok(Exit::Fine);
    }
    let mut rows = Vec::new();
    for session in &found {
        let answer = Response::new(client, "a session", session);
        rows.push([shown(&answer.text("key")?), answer.text("status")?, answer.text("createdAt")?]);
    }
    print_rows(&rows);
    Ok(Exit::Fine)
}

/// The request to reap sessions, without a position.
fn order(pattern: &str, ended_before: Option<&str>, dry_run: bool) -> Map {
    let fields = [("key", Value::from(pattern)), ("dryRun", dry_run.into()), ("limit", PAGE_ROWS.into())];
    let before = ended_before.map(|time| ("endedBefore", Value::from(time)));
    fields.into_iter().chain(before).map(|(key, value)| (key.into(), value)).collect()
}

fn reap(client: &Client, order: &Map, context: &Context) -> Result<Exit, CliError> {
    let page_of = async |cursor: Option<&str>| {
        let mut body = order.clone();
        body.extend(cursor.map(|cursor| ("cursor".into(), Value::from(cursor))));
        // A repeated request finds nothing more to revoke or remove.
        client.post(&route(&["api", "sessions", "reap"], &[]), &Value::Map(body), Repeat::May).await
    };
    let found = block_on(async { Ok(pages(client, page_of).await?) })?;
    if context.global.json {
        found.iter().for_each(|session| print_out!("{}", compact(session)));
        return Ok(Exit::Fine);
    }
    let mut rows = Vec::new();
    for session in &found {
        let answer = Response::new(client, "a reaped session", session);
        let workspace = if answer.flag("workspaceRemoved")? { "workspace" } else { "no workspace" };
        let tokens = format!("{} credentials", answer.number("tokensRevoked")?);
        rows.push([shown(&answer.text("key")?), workspace.into(), tokens]);
    }
    print_rows(&rows);
    Ok(Exit::Fine)
}

fn print_rows(rows: &[[String; 3]]) {
    if rows.is_empty() {
        print_out!("{}", dim("none"));
    }
    print_table(rows);
}
