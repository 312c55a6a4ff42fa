//! The scenarios of a folder, and those of the workflows of a server.

use std::{collections::BTreeMap, path::PathBuf};

use mainspring_kernel::{
    definition::{Syntax, read},
    value::{Map, Value},
};

use super::{
    change::{Action, Change, Field, Kind},
    definitions::{self, slug_of_scenario},
    folder::unreadable,
};
use crate::{
    client::{Client, address::route, response::Response},
    context::{Context, block_on},
    error::CliError,
    output::text::counted,
    read_limited,
};

/// A scenario file.
pub(super) struct Local {
    name: String,
    text: String,
}

/// The stored scenarios of a workflow.
pub(super) struct Remote {
    hash: String,
    files: BTreeMap<String, String>,
}

/// Reads the scenario files, by the slug of their workflow. Files without a definition are named and left out.
pub(super) fn locals(
    files: &[PathBuf],
    definitions: &BTreeMap<String, definitions::Local>,
    context: &Context,
) -> Result<BTreeMap<String, Local>, CliError> {
    let mut found = BTreeMap::new();
    for file in files {
        let Some(slug) = slug_of_scenario(file, definitions) else {
            let why = "no definition of this name is beside it, so it belongs to no workflow and is left out";
            context.terminal.note(&format!("{}: {why}", file.display()));
            continue;
        };
        let bytes = read_limited::file(file).map_err(|why| CliError::bad_input("unreadable", why))?;
        let text = String::from_utf8(bytes).map_err(|_| unreadable(file, "it is not UTF-8"))?;
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if found.insert(slug.clone(), Local { name, text }).is_some() {
            return Err(unreadable(file, &format!("there is another scenario file of `{slug}`: keep one")));
        }
    }
    Ok(found)
}

/// The stored scenarios of the given workflows, by slug. A workflow without scenarios is left out.
pub(super) fn remotes<'a>(
    client: &Client,
    workflows: impl Iterator<Item = (&'a String, &'a definitions::Remote)>,
) -> Result<BTreeMap<String, Remote>, CliError> {
    let mut found = BTreeMap::new();
    for (slug, workflow) in workflows {
        let path = route(&["api", "workflows", &workflow.id, "scenarios"], &[]);
        let answer = block_on(async {
            match client.get(&path).await {
                Err(error) if error.is("NOT_FOUND") => Ok(None),
                answer => Ok(Some(answer?)),
            }
        })?;
        let Some(answer) = answer else { continue };
        let answer = Response::new(client, "the scenarios of a workflow", &answer);
        let files = answer.any("files");
        let files = files.as_map().into_iter().flatten();
        let files = files.filter_map(|(name, text)| Some((name.clone(), text.as_text()?.to_owned()))).collect();
        found.insert(slug.clone(), Remote { hash: answer.text("hash")?, files });
    }
    Ok(found)
}

pub(super) fn changes(
    local: &BTreeMap<String, Local>,
    remote: &BTreeMap<String, Remote>,
    with_deletions: bool,
) -> Vec<Change> {
    let mut changes = Vec::new();
    for (slug, local) in local {
        let action = match remote.get(slug) {
            None => Action::Create,
            Some(remote) if is_same(local, remote) => continue,
            Some(_) => Action::Update,
        };
        let before = remote.get(slug).map(|remote| &remote.files);
        changes.push(Change::new(Kind::Scenarios, slug, action, texts(local, before)));
    }
    let gone = remote.keys().filter(|slug| with_deletions && !local.contains_key(*slug));
    changes.extend(gone.map(|slug| Change::new(Kind::Scenarios, slug, Action::Delete, Vec::new())));
    changes
}

/// Compares by meaning: neither the name of the file nor comments and spelling count.
fn is_same(local: &Local, remote: &Remote) -> bool {
    let value = |text: &str| read(text.as_bytes(), Syntax::Guess).ok().map(|document| document.value);
    match (remote.files.len(), remote.files.values().next()) {
        (1, Some(text)) => *text == local.text || value(text).is_some_and(|before| value(&local.text) == Some(before)),
        _ => false,
    }
}

/// The changed texts by their number of lines.
fn texts(local: &Local, before: Option<&BTreeMap<String, String>>) -> Vec<Field> {
    let lines = |text: &String| Value::from(counted(text.lines().count() as u64, "line", "lines"));
    let old = before.into_iter().flatten().filter(|(name, _)| **name != local.name);
    let mut fields: Vec<Field> =
        old.map(|(name, text)| Field { path: name.clone(), before: Some(lines(text)), after: None }).collect();
    let same = before.and_then(|before| before.get(&local.name));
    fields.push(Field { path: local.name.clone(), before: same.map(lines), after: Some(lines(&local.text)) });
    fields
}

/// The field `scenarios` of a request that makes these changes.
pub(super) fn sync_body(changes: &[Change], local: &BTreeMap<String, Local>, remote: &BTreeMap<String, Remote>) -> Map {
    let own = changes.iter().filter(|change| change.kind == Kind::Scenarios);
    own.map(|change| {
        let text = |local: &Local| Value::map([(local.name.as_str(), Value::from(local.text.as_str()))]);
        let files = local.get(&change.name).map(text).unwrap_or_default();
        let compared = remote.get(&change.name).map(|remote| remote.hash.as_str());
        (change.name.clone(), Value::map([("files", files), ("compared", compared.into())]))
    })
    .collect()
}
