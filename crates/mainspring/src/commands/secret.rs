//! `mainspring secret`: sets, lists and removes the secrets of a server, and lists those of the settings file.

use std::io::{IsTerminal, Read};

use clap::{ArgGroup, Args, Subcommand};
use mainspring_effects::secrets::{SECRET_BYTES_MAX, SecretValue};
use mainspring_kernel::{
    json::compact,
    secret::is_secret_name,
    value::{Map, Value},
};

use super::triggers::print_table;
use crate::{
    client::{Client, ClientError, address::route, response::Response},
    context::{Context, block_on},
    error::{CliError, Exit},
    output::{
        prompt::hidden,
        terminal::{dim, print_out},
        text::shown,
    },
    secrets,
    server_settings::object_settings,
};

/// Secrets per page, and secrets listed at most.
const PAGE: &str = "200";
const ROWS_MAX: usize = 10_000;

/// Secrets that steps use as `{secret: NAME}`
#[derive(Debug, Args)]
pub(crate) struct Secret {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Set a secret of the server. Its value comes from standard input or a hidden prompt, never from a flag
    Set(Set),
    /// List secrets without their values: those of the server, or of the settings file without a server
    List,
    /// Remove a secret of the server. Steps that use it fail from then on
    Rm {
        /// The name of the secret
        name: String,
    },
}

/// Set a secret.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("users").required(true).args(["workflows", "all_workflows"]))]
struct Set {
    /// The name: letters, digits, `-`, `_` and `.`
    name: String,
    /// A workflow that may use it, by its slug or id; repeatable
    #[arg(long = "workflow", value_name = "WORKFLOW")]
    workflows: Vec<String>,
    /// All workflows of the organization may use it
    #[arg(long)]
    all_workflows: bool,
}

pub(crate) fn secret(secret: &Secret, context: &Context) -> Result<Exit, CliError> {
    match &secret.action {
        Action::List if context.global.server()?.is_none() => list_settings(context),
        Action::List => list(&context.global.client_of("secret list")?, context),
        Action::Set(new) => set(&context.global.client_of("secret set")?, new, context),
        Action::Rm { name } => {
            let client = context.global.client_of("secret rm")?;
            request(client.delete(&route(&["api", "secrets", name], &[])))?;
            match context.global.json {
                true => print_out!("{}", compact(&Value::map([("ok", Value::Bool(true))]))),
                false => context.terminal.note(&format!("{}: removed", shown(name))),
            }
            Ok(Exit::Fine)
        }
    }
}

fn request<T>(sent: impl Future<Output = Result<T, ClientError>>) -> Result<T, CliError> {
    block_on(async { Ok(sent.await?) })
}

fn set(client: &Client, new: &Set, context: &Context) -> Result<Exit, CliError> {
    let refused = |why: String| CliError::bad_input("bad_input", format!("the secret `{}`: {why}", shown(&new.name)));
    if !is_secret_name(&new.name) {
        return Err(refused("a name has 1 to 64 letters, digits, `-`, `_` and `.`".into()));
    }
    let value = value(&new.name, context)?;
    SecretValue::new(&value).map_err(refused)?;
    let workflows = new.workflows.iter().map(|workflow| Value::from(workflow.as_str())).collect::<Vec<_>>();
    let workflows = if new.all_workflows { Value::Null } else { workflows.into() };
    let body = Value::map([("value", value.into()), ("workflows", workflows)]);
    let stored = request(client.put(&route(&["api", "secrets", &new.name], &[]), &body))?;
    match context.global.json {
        true => print_out!("{}", compact(&stored)),
        false => context.terminal.note(&format!("{}: set; write {{secret: {}}} in a step", new.name, new.name)),
    }
    Ok(Exit::Fine)
}

/// Reads a value from standard input, or from a hidden prompt of a terminal. A newline at its end is left out.
fn value(name: &str, context: &Context) -> Result<String, CliError> {
    if std::io::stdin().is_terminal() {
        return hidden(&format!("value of {name}: "), context);
    }
    let mut text = String::new();
    let read = std::io::stdin().lock().take(SECRET_BYTES_MAX as u64 + 2).read_to_string(&mut text);
    read.map_err(|error| CliError::bad_input("unreadable", format!("standard input: {error}")))?;
    let text = text.strip_suffix('\n').map_or(text.as_str(), |text| text.strip_suffix('\r').unwrap_or(text));
    Ok(text.to_owned())
}

fn list(client: &Client, context: &Context) -> Result<Exit, CliError> {
    let found = request(all(client))?;
    if context.global.json {
        found.iter().for_each(|secret| print_out!("{}", compact(secret)));
        return Ok(Exit::Fine);
    }
    let mut rows = Vec::new();
    for secret in &found {
        let answer = Response::new(client, "a secret", secret);
        let workflows = match secret.get("workflows").and_then(Value::as_list) {
            None => "all workflows".to_owned(),
            Some(ids) => ids.iter().filter_map(Value::as_text).collect::<Vec<_>>().join(", "),
        };
        let set = format!("set by {} at {}", answer.text("setBy")?, answer.text("updatedAt")?);
        rows.push([shown(&answer.text("name")?), shown(&workflows), shown(&set)]);
    }
    print_rows(&rows);
    Ok(Exit::Fine)
}

async fn all(client: &Client) -> Result<Vec<Value>, ClientError> {
    let (mut found, mut cursor) = (Vec::new(), None::<String>);
    while found.len() < ROWS_MAX {
        let mut query = vec![("limit", PAGE)];
        query.extend(cursor.iter().map(|cursor| ("cursor", cursor.as_str())));
        let page = client.get(&route(&["api", "secrets"], &query)).await?;
        let answer = Response::new(client, "a page of secrets", &page);
        let secrets = answer.list("secrets")?;
        found.extend(secrets.iter().cloned());
        let next = answer.maybe_text("nextCursor")?;
        // Ends the loop if a faulty server repeats a cursor.
        if next.is_none() || next == cursor || secrets.is_empty() {
            break;
        }
        cursor = next;
    }
    Ok(found)
}

/// Lists the secrets of the settings file with their sources.
fn list_settings(context: &Context) -> Result<Exit, CliError> {
    let settings = object_settings()?;
    let configured = secrets::read(&settings.secrets).map_err(|errors| {
        let message = format!("the settings in {}: {}", settings.path.display(), errors.join("\n"));
        CliError::bad_input("bad_settings", message)
    })?;
    if context.global.json {
        for secret in &configured {
            let workflows = secret.workflows.iter().flatten().map(|name| Value::from(name.as_str()));
            let workflows = workflows.collect::<Vec<_>>();
            let line = Map::from([
                ("name".into(), Value::from(secret.name.as_str())),
                ("source".into(), secret.source.shown().into()),
                ("workflows".into(), if secret.workflows.is_some() { workflows.into() } else { Value::Null }),
            ]);
            print_out!("{}", compact(&Value::Map(line)));
        }
        return Ok(Exit::Fine);
    }
    let rows = configured.iter().map(|secret| {
        let workflows = secret.workflows.as_ref().map_or("all workflows".into(), |names| names.join(", "));
        [secret.name.clone(), shown(&workflows), shown(&secret.source.shown())]
    });
    print_rows(&rows.collect::<Vec<_>>());
    Ok(Exit::Fine)
}

fn print_rows(rows: &[[String; 3]]) {
    if rows.is_empty() {
        print_out!("{}", dim("none"));
    }
    print_table(rows);
}
