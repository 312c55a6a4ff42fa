//! `mainspring diff` and `mainspring apply`: compare a folder of definitions with the workflows of a server, and make the
//! server equal to it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use clap::{Args, ValueHint};
use mainspring_engine::start_request::starts;
use mainspring_kernel::{
    definition::{Compiled, nearest, read},
    diagnostic::OF_PLACES,
    document::Document,
    json::compact,
    value::{Map, Value},
};
use mainspring_review::{Version, review};

use crate::{
    client::{Client, Repeat, address::route, response::Response},
    context::{Context, block_on},
    definitions::{compiled, list, print_remote, syntax_of},
    error::{CliError, Exit},
    evaluator::compile,
    output::{
        review::rated,
        terminal::{bold, dim, print_out},
        text::shown,
    },
    read_limited,
};

use super::workflows::all_with_data;

/// Files of a folder. A larger set does not fit into one request.
const FILES_MAX: usize = 1_000;

/// Folders inside each other.
const DEPTH_MAX: usize = 8;

/// Compare a folder of definitions with the workflows of a server
#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// The folder, searched for *.yaml, *.yml and *.json; the file name is the slug
    #[arg(value_hint = ValueHint::DirPath)]
    folder: PathBuf,
}

/// Make the workflows of a server equal to a folder of definitions, in one transaction
#[derive(Debug, Args)]
pub(crate) struct Apply {
    /// The folder, searched for *.yaml, *.yml and *.json; the file name is the slug
    #[arg(value_hint = ValueHint::DirPath)]
    folder: PathBuf,
    /// Show the changes, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Create a proposal for each changed workflow, and change nothing else
    #[arg(long, conflicts_with_all = ["dry_run", "prune"])]
    propose: bool,
    /// Delete own workflows of the server that are not in the folder, with their triggers
    #[arg(long)]
    prune: bool,
}

/// A definition file.
struct Local {
    compiled: Compiled,
    document: Value,
}

/// A workflow of the server that belongs to the caller.
struct Remote {
    id: String,
    hash: String,
    data: Value,
}

/// The difference of one workflow.
struct Change<'c> {
    slug: &'c str,
    kind: Kind,
    /// The report of the review, for a changed definition that this release compiles.
    report: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Create,
    Update,
    Delete,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Self::Create => "+",
            Self::Update => "~",
            Self::Delete => "-",
        }
    }
}

pub(crate) fn diff(diff: &Diff, context: &Context) -> Result<Exit, CliError> {
    let client = context.global.client_of("diff")?;
    let Some(local) = locals(&diff.folder, context)? else { return Ok(Exit::BadInput) };
    let remote = remotes(&client)?;
    note_unknown(&local, &remote, context);
    let changes = changes(&local, &remote, true);
    print(&changes, local.len(), context, true);
    Ok(if changes.is_empty() { Exit::Fine } else { Exit::NotSo })
}

pub(crate) fn apply(apply: &Apply, context: &Context) -> Result<Exit, CliError> {
    let client = context.global.client_of("apply")?;
    let Some(local) = locals(&apply.folder, context)? else { return Ok(Exit::BadInput) };
    let remote = remotes(&client)?;
    let changes = changes(&local, &remote, apply.prune);
    if apply.propose {
        return propose(&client, &local, &remote, &changes, context);
    }
    print(&changes, local.len(), context, apply.prune);
    if apply.dry_run {
        note_unknown(&local, &remote, context);
    }
    if apply.dry_run || changes.is_empty() {
        return Ok(Exit::Fine);
    }
    let body = sync_body(&local, &remote, apply.prune);
    // A repeated request finds other hashes than expected, and changes nothing.
    let saved =
        block_on(async { Ok(client.post(&route(&["api", "workflows", "sync-all"], &[]), &body, Repeat::May).await?) })?;
    print_outside(&saved);
    if !context.global.json {
        let deleted = Response::new(&client, "saved workflows", &saved).list("deleted")?.len();
        print_out!("{}", dim(&format!("saved {} workflows, deleted {deleted}, in one transaction", local.len())));
    }
    Ok(Exit::Fine)
}

/// Prints the warnings of saved workflows about names that are unknown at the server.
fn print_outside(saved: &Value) {
    for workflow in list(saved, "workflows") {
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_text).unwrap_or_default().to_string();
        let mut warnings = list(&workflow, "warnings");
        warnings.retain(|warning| OF_PLACES.contains(&text(warning, "code").as_str()));
        let slug = text(&workflow, "slug");
        print_remote(&warnings, Some(Path::new(&slug)));
    }
}

/// Prints a note for each workflow that one of the files starts, and that is neither among them nor at the server.
fn note_unknown(local: &BTreeMap<String, Local>, remote: &BTreeMap<String, Remote>, context: &Context) {
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

/// The request that saves all files. The server refuses it if a workflow has changed since it was compared.
fn sync_body(local: &BTreeMap<String, Local>, remote: &BTreeMap<String, Remote>, prunes: bool) -> Value {
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
    Value::map([
        ("workflows", Value::from(local.iter().map(whole).collect::<Vec<_>>())),
        ("keepOthers", (!prunes).into()),
        ("expected", Value::Map(expected.collect())),
    ])
}

fn propose(
    client: &Client,
    local: &BTreeMap<String, Local>,
    remote: &BTreeMap<String, Remote>,
    changes: &[Change<'_>],
    context: &Context,
) -> Result<Exit, CliError> {
    let mut lines = Vec::new();
    for change in changes.iter().filter(|change| change.kind != Kind::Delete) {
        let Some(old) = remote.get(change.slug) else {
            let message = format!(
                "`{}` is new, and a proposal changes an existing workflow: use `apply` for it",
                shown(change.slug)
            );
            context.terminal.note(&message);
            continue;
        };
        let summary = format!("Change of {} in the repository", change.slug);
        let proposed = [("proposedWorkflow", local[change.slug].document.clone()), ("summary", summary.into())];
        let body =
            Value::map([("baseWorkflowHash", Value::from(old.hash.as_str())), ("proposal", Value::map(proposed))]);
        let path = route(&["api", "workflows", &old.id, "proposals"], &[]);
        let created = block_on(async { Ok(client.post(&path, &body, Repeat::MustNot).await?) })?;
        let answer = Response::new(client, "a proposal", &created);
        let (id, risk) = (answer.text("id")?, answer.object("report", "a report")?.text("risk")?);
        if !context.global.json {
            print_out!("{} {} risk: {}", bold(&shown(change.slug)), shown(&id), rated(&risk));
        }
        lines.push(Value::map([("slug", Value::from(change.slug)), ("proposal", id.into()), ("risk", risk.into())]));
    }
    if context.global.json {
        print_out!("{}", compact(&Value::map([("proposals", Value::from(lines))])));
    } else if lines.is_empty() {
        print_out!("{}", dim("no changed workflow to propose"));
    }
    Ok(Exit::Fine)
}

fn changes<'c>(
    local: &'c BTreeMap<String, Local>,
    remote: &'c BTreeMap<String, Remote>,
    with_deletions: bool,
) -> Vec<Change<'c>> {
    let mut changes = Vec::new();
    for (slug, local) in local {
        match remote.get(slug) {
            None => changes.push(Change { slug, kind: Kind::Create, report: None }),
            Some(remote) if remote.hash != local.compiled.workflow_hash.prefixed() => {
                let old = compile(&Document::placeless(remote.data.clone())).ok();
                let report = old.map(|old| {
                    let side = |compiled| Version { compiled, source: None };
                    review(side(&old), side(&local.compiled)).to_value()
                });
                changes.push(Change { slug, kind: Kind::Update, report });
            }
            Some(_) => {}
        }
    }
    let gone = remote.keys().filter(|slug| with_deletions && !local.contains_key(*slug));
    changes.extend(gone.map(|slug| Change { slug, kind: Kind::Delete, report: None }));
    changes
}

fn print(changes: &[Change<'_>], files: usize, context: &Context, with_deletions: bool) {
    if context.global.json {
        let change = |change: &Change<'_>| {
            Value::map([
                ("slug", Value::from(change.slug)),
                ("change", change.kind.name().into()),
                ("report", change.report.clone().unwrap_or_default()),
            ])
        };
        let changes: Vec<Value> = changes.iter().map(change).collect();
        return print_out!(
            "{}",
            compact(&Value::map([("files", Value::from(files as u64)), ("changes", changes.into())]))
        );
    }
    for change in changes {
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_text).unwrap_or_default().to_string();
        let risk = change
            .report
            .as_ref()
            .map(|report| format!("  risk: {}", rated(&text(report, "risk"))))
            .unwrap_or_default();
        print_out!("{} {}{risk}", change.kind.sign(), bold(&shown(change.slug)));
        let findings = change.report.as_ref().and_then(|report| report.get("findings")?.as_list());
        for finding in findings.unwrap_or_default() {
            let (code, path) = (text(finding, "code"), text(finding, "path"));
            print_out!("    {} {} {}", rated(&text(finding, "severity")), shown(&code), dim(&shown(&path)));
        }
    }
    let count = |kind: Kind| changes.iter().filter(|change| change.kind == kind).count();
    let deleted = match with_deletions {
        true => format!(", {} not in the folder", count(Kind::Delete)),
        false => String::new(),
    };
    print_out!("{}", dim(&format!("{} new, {} changed{deleted}", count(Kind::Create), count(Kind::Update))));
}

/// Compiles the files of a folder, by slug. `None` if one is invalid; the diagnostics are printed.
fn locals(folder: &Path, context: &Context) -> Result<Option<BTreeMap<String, Local>>, CliError> {
    let mut files = Vec::new();
    find(folder, 0, &mut files)?;
    if files.is_empty() {
        let message = format!("{}: there is no *.yaml, *.yml or *.json file in it", folder.display());
        return Err(CliError::bad_input("no_file", message));
    }
    let (mut found, mut is_valid) = (BTreeMap::new(), true);
    for file in files {
        let Some(slug) = file.file_stem().and_then(|stem| stem.to_str()).map(String::from) else {
            return Err(CliError::bad_input("no_slug", format!("{}: its name is not UTF-8", file.display())));
        };
        let Some(compiled) = compiled(&file, context)? else {
            is_valid = false;
            continue;
        };
        let text = read_limited::file(&file).map_err(|why| CliError::bad_input("unreadable", why))?;
        let document =
            read(&text, syntax_of(&file)).map_err(|why| CliError::bad_input("unreadable", why.to_string()))?;
        if found.insert(slug.clone(), Local { compiled, document: document.value }).is_some() {
            let message = format!("{}: another file of the folder has the name `{slug}` too", file.display());
            return Err(CliError::bad_input("bad_arguments", message));
        }
    }
    Ok(is_valid.then_some(found))
}

/// Finds definition files in the order of their names. Hidden files, symbolic links, scenario files and whatever is no
/// regular file are left out: a read of a named pipe would wait forever.
fn find(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), CliError> {
    let refused = |why: String| CliError::bad_input("unreadable", format!("{}: {why}", folder.display()));
    if depth > DEPTH_MAX {
        return Err(refused(format!("it is more than {DEPTH_MAX} folders deep")));
    }
    let entries = fs::read_dir(folder).map_err(|error| refused(error.to_string()))?;
    let mut entries = entries.collect::<Result<Vec<_>, _>>().map_err(|error| refused(error.to_string()))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let kind = entry.file_type().map_err(|error| refused(error.to_string()))?;
        let is_definition =
            [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end)) && !name.contains(".scenario.");
        if name.starts_with('.') || kind.is_symlink() {
            continue;
        }
        if kind.is_dir() {
            find(&path, depth + 1, found)?;
        } else if kind.is_file() && is_definition {
            found.push(path);
        }
        if found.len() > FILES_MAX {
            return Err(refused(format!("it has more than {FILES_MAX} definitions")));
        }
    }
    Ok(())
}

/// The caller's workflows at the server, by slug.
fn remotes(client: &Client) -> Result<BTreeMap<String, Remote>, CliError> {
    let (user, found) = block_on(async {
        let session = client.get(&route(&["api", "me"], &[])).await?;
        let user = Response::new(client, "the member of the token", &session).text("userId")?;
        Ok((user, all_with_data(client).await?))
    })?;
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
