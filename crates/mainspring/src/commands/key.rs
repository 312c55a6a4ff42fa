//! `mainspring key`: changes the key that encrypts secrets in the store, while servers and nodes run.

use clap::{Args, Subcommand};
use mainspring_engine::keys::{self, encryption_keys};
use mainspring_kernel::{json::compact, time::parse_rfc3339, value::Value};
use mainspring_server::services::encryption_keys::key_id;

use super::triggers::print_table;
use crate::{
    client::{Client, Repeat, address::route, response::Response},
    context::{Context, block_on},
    error::{CliError, Exit},
    output::{
        terminal::print_out,
        text::{counted, shown},
    },
    store_location::StoreLocation,
};

/// Milliseconds for which the former key stays. A request that had begun before the change may still store a value under it.
const FORMER_KEY_MS: u64 = 60_000;

/// Steps of a rotation at most, so that a faulty server ends it.
const STEPS_MAX: usize = 10_000;

/// The keys that encrypt secrets in the store
#[derive(Debug, Args)]
pub(crate) struct Key {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the encryption keys of the server, with the number of values under each
    List,
    /// Add a new encryption key to the key file of this machine. Copy the file to all nodes, then `key rotate`
    Add,
    /// Encrypt with the newest key of the server's key file, and encrypt all stored values again
    Rotate {
        /// Rows of one request [default: 1000]
        #[arg(long, value_name = "N")]
        rows: Option<u64>,
    },
    /// Remove an encryption key that no stored value uses from the key file of this machine
    Remove {
        /// The id of the key, as `key list` shows it
        id: String,
    },
}

pub(crate) fn key(key: &Key, context: &Context) -> Result<Exit, CliError> {
    match &key.action {
        Action::List => list(&context.global.client_of("key list")?, context),
        Action::Add => add(context),
        Action::Rotate { rows } => rotate(&context.global.client_of("key rotate")?, *rows, context),
        Action::Remove { id } => remove(&context.global.client_of("key remove")?, id, context),
    }
}

fn used(client: &Client) -> Result<Value, CliError> {
    block_on(async { Ok(client.get(&route(&["api", "encryption-keys"], &[])).await?) })
}

fn list(client: &Client, context: &Context) -> Result<Exit, CliError> {
    let found = used(client)?;
    if context.global.json {
        print_out!("{}", compact(&found));
        return Ok(Exit::Fine);
    }
    let answer = Response::new(client, "the encryption keys", &found);
    let mut rows = Vec::new();
    for key in answer.objects("keys", "a key")? {
        let words = [
            (key.flag("primary")?, "encrypts new values"),
            (key.flag("installation")?, "the installation's key"),
            (!key.flag("known")?, "not in the key file of the server"),
        ];
        let words: Vec<&str> = words.into_iter().filter(|(is_so, _)| *is_so).map(|(_, word)| word).collect();
        rows.push([shown(&key.text("id")?), counted(key.number("values")?, "value", "values"), words.join(", ")]);
    }
    print_table(&rows);
    Ok(Exit::Fine)
}

fn add(context: &Context) -> Result<Exit, CliError> {
    let file = StoreLocation::of(&context.global)?.key_file();
    let id = key_id(&keys::add_encryption_key(&file)?);
    if context.global.json {
        print_out!("{}", compact(&Value::map([("id", Value::from(id)), ("file", file.display().to_string().into())])));
    } else {
        let next = "copy the file to all nodes of the store, then `mainspring key rotate`";
        context.terminal.note(&format!("{id} is added to {}; {next}", file.display()));
    }
    Ok(Exit::Fine)
}

fn rotate(client: &Client, rows: Option<u64>, context: &Context) -> Result<Exit, CliError> {
    let path = route(&["api", "encryption-keys", "rotate"], &[]);
    let body = Value::map(rows.map(|rows| ("rows", Value::from(rows))));
    let mut total = 0;
    for _ in 0..STEPS_MAX {
        // A repeated step continues where the first one has ended.
        let step = block_on(async { Ok(client.post(&path, &body, Repeat::May).await?) })?;
        let answer = Response::new(client, "a step of the rotation", &step);
        total += answer.number("rows")?;
        if !answer.flag("done")? {
            continue;
        }
        let (primary, unreadable) = (answer.text("primary")?, answer.number("unreadable")?);
        if context.global.json {
            let result = [("primary", Value::from(primary)), ("rows", total.into()), ("unreadable", unreadable.into())];
            print_out!("{}", compact(&Value::map(result)));
        } else {
            let done = format!(
                "{} encrypts new values; {} encrypted again",
                shown(&primary),
                counted(total, "row was", "rows were")
            );
            let left = match unreadable {
                0 => String::new(),
                count => format!("; {count} rows cannot be decrypted by the server, and must be set again"),
            };
            context.terminal.note(&format!("{done}{left}"));
        }
        return Ok(Exit::Fine);
    }
    Err(CliError::bad_input("bad_input", "the server does not end the rotation: check `mainspring key list`"))
}

fn remove(client: &Client, id: &str, context: &Context) -> Result<Exit, CliError> {
    let found = used(client)?;
    let answer = Response::new(client, "the encryption keys", &found);
    let refused = |why: String| CliError::bad_input("bad_input", format!("the key {}: {why}", shown(id)));
    for key in answer.objects("keys", "a key")? {
        if key.text("id")? != id {
            continue;
        }
        let why = removal_refused(key.flag("primary")?, key.flag("installation")?, key.number("values")?);
        why.map_or(Ok(()), |why| Err(refused(why)))?;
    }
    let time = |text: &str| parse_rfc3339(text).unwrap_or_default();
    if let Some(activated) = answer.maybe_text("activatedAt")? {
        let since = time(&answer.text("now")?).saturating_sub(time(&activated));
        if since < FORMER_KEY_MS {
            let wait = (FORMER_KEY_MS - since).div_ceil(1000);
            let why = "requests that began before the change may still store a value under it";
            return Err(refused(format!("{why}: try again in {wait} s")));
        }
    }
    let file = StoreLocation::of(&context.global)?.key_file();
    if !encryption_keys(&file)?.iter().any(|key| key_id(key) == id) {
        return Err(CliError::bad_input("bad_input", format!("{} has no key {}", file.display(), shown(id))));
    }
    keys::remove_encryption_key(&file, |key| key_id(key) == id)?;
    match context.global.json {
        true => print_out!("{}", compact(&Value::map([("ok", Value::Bool(true))]))),
        false => context.terminal.note(&format!("{}: removed from {}", shown(id), file.display())),
    }
    Ok(Exit::Fine)
}

/// The reason for which a key must stay.
fn removal_refused(is_primary: bool, is_installation: bool, values: u64) -> Option<String> {
    match (is_primary, is_installation, values) {
        (true, ..) => Some("it encrypts new values: `mainspring key add` and `mainspring key rotate` first".into()),
        (_, true, _) => Some("it also authenticates journals, tokens and approvals, and is never removed".into()),
        (.., 1..) => Some({
            let used = counted(values, "stored value uses", "stored values use");
            format!("{used} it: `mainspring key rotate` first")
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_use_is_not_removed() {
        assert!(removal_refused(true, false, 0).is_some_and(|why| why.contains("encrypts new values")));
        assert!(removal_refused(false, true, 0).is_some_and(|why| why.contains("never removed")));
        assert!(removal_refused(false, false, 2).is_some_and(|why| why.contains("2 stored values")));
        assert_eq!(removal_refused(false, false, 0), None);
    }
}
