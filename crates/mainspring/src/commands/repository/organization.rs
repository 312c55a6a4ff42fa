//! The settings of the organization in a folder: features, limits, and verdicts of its policy.

use std::path::Path;

use mainspring_kernel::{
    plan::VerdictRules,
    value::{Map, Value},
};

use super::{
    change::{Action, Change, Field, Kind},
    folder::{document, unreadable},
};
use crate::{
    client::{Client, address::route},
    context::block_on,
    error::CliError,
};

/// The parts of the settings.
const PARTS: [&str; 3] = ["features", "limits", VERDICTS];

/// The part that `/api/policy` has.
const VERDICTS: &str = "verdicts";

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
                let why = format!("`{key}` is not known; there are {}", PARTS.join(", "));
                return Err(unreadable(file, &why));
            }
            key if value.as_map().is_none() => return Err(unreadable(file, &format!("`{key}` is not a map"))),
            VERDICTS => {
                VerdictRules::read(VERDICTS, value).map_err(|errors| {
                    let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
                    unreadable(file, &errors.join("; "))
                })?;
            }
            _ => {}
        }
    }
    Ok(map)
}

/// The settings of the organization, with its verdicts if the file has some.
pub(super) fn remote(client: &Client, local: &Map) -> Result<Map, CliError> {
    let get = |resource: &str| block_on(async { Ok(client.get(&route(&["api", resource], &[])).await?) });
    let mut found = get("organization")?;
    if let (Value::Map(found), true) = (&mut found, local.contains_key(VERDICTS)) {
        found.extend(get("policy")?.get(VERDICTS).map(|verdicts| (VERDICTS.to_string(), verdicts.clone())));
    }
    let part = |key: &str| Some((key.to_string(), found.get(key).filter(|part| part.as_map().is_some())?.clone()));
    Ok(PARTS.into_iter().filter_map(part).collect())
}

pub(super) fn changes(local: &Map, remote: &Map) -> Vec<Change> {
    let mut fields = Vec::new();
    for (part, wanted) in local {
        let present = |key: &str| remote.get(part).and_then(|part| part.get(key)).cloned();
        for (key, after) in wanted.as_map().into_iter().flatten() {
            // An absent feature is off, and an absent limit is none.
            let absent = match part.as_str() {
                "features" => Some(Value::Bool(false)),
                "limits" => Some(Value::Null),
                _ => None,
            };
            let before = present(key).or(absent);
            if before.as_ref() != Some(after) {
                fields.push(Field { path: format!("{part}.{key}"), before, after: Some(after.clone()) });
            }
        }
        // The verdicts of the file are all verdicts of the organization.
        let others = remote.get(part).filter(|_| part == VERDICTS).and_then(Value::as_map).into_iter().flatten();
        for (key, before) in others.filter(|(key, _)| wanted.get(key).is_none()) {
            fields.push(Field { path: format!("{part}.{key}"), before: Some(before.clone()), after: None });
        }
    }
    match fields.is_empty() {
        true => Vec::new(),
        false => vec![Change::new(Kind::Organization, "organization", Action::Update, fields)],
    }
}

/// The field `organization` of a request that makes the changes.
pub(super) fn sync_body(local: &Map, remote: &Map) -> Value {
    let mut body = local.clone();
    body.insert("compared".into(), Value::Map(remote.clone()));
    Value::Map(body)
}
