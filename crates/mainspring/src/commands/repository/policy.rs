//! The policy of a folder: features and limits of the organization.

use std::path::Path;

use mainspring_kernel::value::{Map, Value};

use super::{
    change::{Action, Change, Field, Kind},
    folder::{document, unreadable},
};
use crate::{
    client::{Client, address::route},
    context::block_on,
    error::CliError,
};

/// The parts of the policy.
const PARTS: [&str; 2] = ["features", "limits"];

/// Reads the file. Only its keys are compared and changed.
pub(super) fn local(file: &Path) -> Result<Map, CliError> {
    let Value::Map(map) = document(file)? else { return Err(unreadable(file, "it is not a map")) };
    for (key, value) in &map {
        match key.as_str() {
            "budgets" => {
                let why = "budgets are no part of the folder: set them with `mainspring budgets set`";
                return Err(unreadable(file, why));
            }
            key if !PARTS.contains(&key) => {
                let why = format!(
                    "`{key}` is not known; there are features and limits. Rules for calls are the server's own: they are \
                     `policy` in its settings file"
                );
                return Err(unreadable(file, &why));
            }
            key if value.as_map().is_none() => return Err(unreadable(file, &format!("`{key}` is not a map"))),
            _ => {}
        }
    }
    Ok(map)
}

/// The settings of the organization.
pub(super) fn remote(client: &Client) -> Result<Map, CliError> {
    let found = block_on(async { Ok(client.get(&route(&["api", "organization"], &[])).await?) })?;
    let part = |key: &str| Some((key.to_string(), found.get(key).filter(|part| part.as_map().is_some())?.clone()));
    Ok(PARTS.into_iter().filter_map(part).collect())
}

pub(super) fn changes(local: &Map, remote: &Map) -> Vec<Change> {
    let mut fields = Vec::new();
    for (part, wanted) in local {
        for (key, after) in wanted.as_map().into_iter().flatten() {
            // An absent feature is off, and an absent limit is none.
            let absent = if part == "features" { Value::Bool(false) } else { Value::Null };
            let before = remote.get(part).and_then(|part| part.get(key)).cloned().unwrap_or(absent);
            if before != *after {
                let path = format!("{part}.{key}");
                fields.push(Field { path, before: Some(before), after: Some(after.clone()) });
            }
        }
    }
    match fields.is_empty() {
        true => Vec::new(),
        false => vec![Change::new(Kind::Policy, "policy", Action::Update, fields)],
    }
}

/// The field `organization` of a request that makes the changes.
pub(super) fn sync_body(local: &Map, remote: &Map) -> Value {
    let mut body = local.clone();
    body.insert("compared".into(), Value::Map(remote.clone()));
    Value::Map(body)
}
