//! The definitions of a folder, and the workflows of a server.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use mainspring_engine::start_request::starts;
use mainspring_kernel::{
    definition::{Compiled, nearest},
    diagnostic::OF_PLACES,
    document::Document,
    value::{Map, Value},
};
use mainspring_review::{Version, review};

use super::{
    change::{Action, Change, Kind},
    folder::{document, stem},
};
use crate::{
    client::{Client, response::Response},
    commands::workflows::all_with_data,
    context::{Context, block_on},
    definitions::{compiled, list, print_remote},
    error::CliError,
    evaluator::compile,
    output::text::shown,
};

/// A definition file.
pub(super) struct Local {
    pub(super) path: PathBuf,
    pub(super) compiled: Compiled,
    pub(super) document: Value,
}

/// A workflow of the server that belongs to the caller.
pub(super) struct Remote {
    pub(super) id: String,
    pub(super) hash: String,
    pub(super) data: Value,
}

/// Compiles definition files, by slug. `None` if one is invalid; the diagnostics are printed.
pub(super) fn locals(files: &[PathBuf], context: &Context) -> Result<Option<BTreeMap<String, Local>>, CliError> {
    let (mut found, mut is_valid) = (BTreeMap::new(), true);
    for file in files {
        let slug = stem(file)?;
        let Some(compiled) = compiled(file, context)? else {
            is_valid = false;
            continue;
        };
        let local = Local { path: file.clone(), compiled, document: document(file)? };
        if found.insert(slug.clone(), local).is_some() {
            let message = format!("{}: another file of the folder has the name `{slug}` too", file.display());
            return Err(CliError::bad_input("bad_arguments", message));
        }
    }
    Ok(is_valid.then_some(found))
}

/// The caller's workflows at the server, by slug.
pub(super) fn remotes(client: &Client, user: &str) -> Result<BTreeMap<String, Remote>, CliError> {
    let found = block_on(async { Ok(all_with_data(client).await?) })?;
    let mut remotes = BTreeMap::new();
    for workflow in &found {
        let answer = Response::new(client, "a workflow", workflow);
        if answer.text("userId")? != user {
            continue;
        }
        let id = answer.text("id")?;
        let slug = answer.maybe_text("slug")?.unwrap_or_else(|| id.clone());
        let (hash, data) = (answer.text("workflowHash")?, answer.any("data"));
        remotes.insert(slug, Remote { id, hash, data });
    }
    Ok(remotes)
}

pub(super) fn changes(
    local: &BTreeMap<String, Local>,
    remote: &BTreeMap<String, Remote>,
    with_deletions: bool,
) -> Vec<Change> {
    let change = |slug: &str, action| Change::new(Kind::Workflow, slug, action, Vec::new());
    let mut changes = Vec::new();
    for (slug, local) in local {
        match remote.get(slug) {
            None => changes.push(change(slug, Action::Create)),
            Some(remote) if remote.hash != local.compiled.workflow_hash.prefixed() => {
                let old = compile(&Document::placeless(remote.data.clone())).ok();
                let report = old.map(|old| {
                    let side = |compiled| Version { compiled, source: None };
                    review(side(&old), side(&local.compiled)).to_value()
                });
                changes.push(Change { report, ..change(slug, Action::Update) });
            }
            Some(_) => {}
        }
    }
    let gone = remote.keys().filter(|slug| with_deletions && !local.contains_key(*slug));
    changes.extend(gone.map(|slug| change(slug, Action::Delete)));
    changes
}

/// Prints the warnings of saved workflows about names that are unknown at the server.
pub(super) fn print_outside(saved: &Value) {
    for workflow in list(saved, "workflows") {
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_text).unwrap_or_default().to_string();
        let mut warnings = list(&workflow, "warnings");
        warnings.retain(|warning| OF_PLACES.contains(&text(warning, "code").as_str()));
        let slug = text(&workflow, "slug");
        print_remote(&warnings, Some(Path::new(&slug)));
    }
}

/// Prints a note for each workflow that one of the files starts, and that is neither among them nor at the server.
pub(super) fn note_unknown(local: &BTreeMap<String, Local>, remote: &BTreeMap<String, Remote>, context: &Context) {
    let name = |document: &Value| document.get("name").and_then(Value::as_text).map(String::from);
    let mut known: BTreeSet<String> = local.keys().chain(remote.keys()).cloned().collect();
    known.extend(remote.values().map(|remote| remote.id.clone()));
    known.extend(local.values().filter_map(|local| name(&local.document)));
    known.extend(remote.values().filter_map(|remote| name(&remote.data)));
    for (slug, local) in local {
        for child in starts(&local.compiled.plan).into_iter().filter(|child| !known.contains(*child)) {
            let near = nearest(child, known.iter().map(String::as_str));
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            let message = format!(
                "`{slug}` starts `{child}`, which is neither in the folder nor among your workflows of the server{near}"
            );
            context.terminal.note(&shown(&message));
        }
    }
}

/// The fields of a request that save all files. The server refuses it if a workflow has changed since it was compared.
pub(super) fn sync_body(local: &BTreeMap<String, Local>, remote: &BTreeMap<String, Remote>, prunes: bool) -> Map {
    let whole = |(slug, local): (&String, &Local)| {
        let mut body = Map::from([("slug".to_string(), Value::from(slug.as_str()))]);
        body.extend(remote.get(slug).map(|remote| ("id".to_string(), remote.id.as_str().into())));
        let own = |key: &str| local.document.get(key).filter(|text| text.as_text().is_some()).cloned();
        body.extend(["name", "description"].into_iter().filter_map(|key| Some((key.to_string(), own(key)?))));
        body.insert("data".into(), local.document.clone());
        Value::Map(body)
    };
    let hash = |slug: &str| remote.get(slug).map_or(Value::Null, |remote| remote.hash.as_str().into());
    let expected = local.keys().chain(remote.keys()).map(|slug| (slug.clone(), hash(slug)));
    Map::from([
        ("workflows".to_string(), Value::from(local.iter().map(whole).collect::<Vec<_>>())),
        ("keepOthers".to_string(), (!prunes).into()),
        ("expected".to_string(), Value::Map(expected.collect())),
    ])
}

/// The slug of the definition beside which a scenario file is: `NAME` for `NAME.scenario.yaml` beside `NAME.yaml`.
pub(super) fn slug_of_scenario(file: &Path, local: &BTreeMap<String, Local>) -> Option<String> {
    let slug = file.file_stem()?.to_str()?.strip_suffix(".scenario")?;
    local.get(slug).filter(|local| local.path.parent() == file.parent()).map(|_| slug.into())
}
