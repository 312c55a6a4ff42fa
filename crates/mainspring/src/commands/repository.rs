//! `mainspring diff` and `mainspring apply`: compare a folder of definitions, scenarios, triggers and settings of the organization with a server,
//! and make the server equal to it.

mod change;
mod definitions;
mod folder;
mod organization;
mod scenarios;
mod triggers;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use clap::{Args, ValueHint};
use mainspring_kernel::{
    json::compact,
    value::{Map, Value},
};

use self::{
    change::{Action, Change, Kind, print},
    folder::Files,
};
use crate::{
    client::{Client, Repeat, address::route, response::Response},
    context::{Context, block_on},
    definitions::list,
    error::{CliError, Exit},
    output::{
        review::rated,
        terminal::{bold, dim, print_out},
        text::{counted, shown},
    },
};

/// Compare a folder of definitions, scenarios, triggers and settings of the organization with a server
#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// The folder: NAME.yaml with NAME.scenario.yaml, triggers/NAME.yaml, organization.yaml
    #[arg(value_hint = ValueHint::DirPath)]
    folder: PathBuf,
}

/// Make a server equal to a folder of definitions, scenarios, triggers and settings of the organization, in one transaction
#[derive(Debug, Args)]
pub(crate) struct Apply {
    /// The folder: NAME.yaml with NAME.scenario.yaml, triggers/NAME.yaml, organization.yaml
    #[arg(value_hint = ValueHint::DirPath)]
    folder: PathBuf,
    /// Show the changes, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Create a proposal for each changed workflow, and change nothing else
    #[arg(long, conflicts_with_all = ["dry_run", "prune", "resend_secrets"])]
    propose: bool,
    /// Delete own workflows, triggers and scenarios of the server that are not in the folder
    #[arg(long)]
    prune: bool,
    /// Send the values of secrets of all triggers again
    #[arg(long)]
    resend_secrets: bool,
}

/// The content of a folder.
struct Local {
    definitions: BTreeMap<String, definitions::Local>,
    scenarios: BTreeMap<String, scenarios::Local>,
    /// `None` for a folder without triggers.
    triggers: Option<BTreeMap<String, triggers::Local>>,
    organization: Option<Map>,
}

/// The state of a server. Kinds that the folder does not have are empty.
struct Remote {
    definitions: BTreeMap<String, definitions::Remote>,
    scenarios: BTreeMap<String, scenarios::Remote>,
    triggers: BTreeMap<String, Vec<triggers::Remote>>,
    organization: Map,
}

impl Local {
    /// Reads a folder. `None` if a definition is invalid; the diagnostics are printed.
    fn read(folder: &Path, context: &Context) -> Result<Option<Self>, CliError> {
        let files = Files::find(folder)?;
        let organization = files.organization.as_deref().map(organization::local).transpose()?;
        let triggers = files.triggers.as_deref().map(triggers::locals).transpose()?;
        let Some(definitions) = definitions::locals(&files.definitions, context)? else { return Ok(None) };
        let scenarios = scenarios::locals(&files.scenarios, &definitions, context)?;
        Ok(Some(Self { definitions, scenarios, triggers, organization }))
    }
}

impl Remote {
    /// Reads the kinds that the folder has.
    fn read(client: &Client, local: &Local) -> Result<Self, CliError> {
        let session = block_on(async { Ok(client.get(&route(&["api", "me"], &[])).await?) })?;
        let user = Response::new(client, "the member of the token", &session).text("userId")?;
        let definitions = definitions::remotes(client, &user)?;
        let scenarios = match local.scenarios.is_empty() {
            true => BTreeMap::new(),
            // A workflow that is deleted loses its scenarios.
            false => {
                let kept = definitions.iter().filter(|(slug, _)| local.definitions.contains_key(*slug));
                scenarios::remotes(client, kept)?
            }
        };
        let slugs: BTreeMap<&str, &String> =
            definitions.iter().map(|(slug, remote)| (remote.id.as_str(), slug)).collect();
        let triggers = match &local.triggers {
            Some(_) => triggers::remotes(client, &user, |id| slugs.get(id).map(|slug| (*slug).clone()))?,
            None => BTreeMap::new(),
        };
        let organization = match &local.organization {
            Some(local) => organization::remote(client, local)?,
            None => Map::new(),
        };
        Ok(Self { definitions, scenarios, triggers, organization })
    }
}

/// The differences: workflows, their scenarios, triggers, then the organization. A kind that the folder does not have is left
/// alone.
fn changes(
    local: &Local,
    remote: &Remote,
    (with_deletions, resends_secrets): (bool, bool),
) -> Result<Vec<Change>, CliError> {
    let deletes_workflows = with_deletions && !local.definitions.is_empty();
    let mut changes = definitions::changes(&local.definitions, &remote.definitions, deletes_workflows);
    let deleted = changes.iter().filter(|change| change.action == Action::Delete);
    let gone: BTreeSet<String> = deleted.map(|change| change.name.clone()).collect();
    changes.extend(scenarios::changes(&local.scenarios, &remote.scenarios, with_deletions));
    if let Some(triggers) = &local.triggers {
        let is_gone = |slug: &str| gone.contains(slug);
        let options = (with_deletions, resends_secrets);
        changes.extend(triggers::changes(triggers, &remote.triggers, is_gone, options)?);
    }
    changes.extend(local.organization.iter().flat_map(|local| organization::changes(local, &remote.organization)));
    Ok(changes)
}

pub(crate) fn diff(diff: &Diff, context: &Context) -> Result<Exit, CliError> {
    let client = context.global.client_of("diff")?;
    let Some(local) = Local::read(&diff.folder, context)? else { return Ok(Exit::BadInput) };
    let remote = Remote::read(&client, &local)?;
    definitions::note_unknown(&local.definitions, &remote.definitions, context);
    let changes = changes(&local, &remote, (true, false))?;
    print(&changes, local.definitions.len(), context, true);
    Ok(if changes.is_empty() { Exit::Fine } else { Exit::NotSo })
}

pub(crate) fn apply(apply: &Apply, context: &Context) -> Result<Exit, CliError> {
    let client = context.global.client_of("apply")?;
    let Some(local) = Local::read(&apply.folder, context)? else { return Ok(Exit::BadInput) };
    let remote = Remote::read(&client, &local)?;
    let changes = changes(&local, &remote, (apply.prune, apply.resend_secrets))?;
    if apply.propose {
        return propose(&client, &local, &remote, &changes, context);
    }
    print(&changes, local.definitions.len(), context, apply.prune);
    if apply.dry_run {
        definitions::note_unknown(&local.definitions, &remote.definitions, context);
    }
    if apply.dry_run || changes.is_empty() {
        return Ok(Exit::Fine);
    }
    let body = sync_body(&local, &remote, &changes, apply.prune)?;
    triggers::note_warnings(&list(&body, "triggers"), context);
    // A repeated request finds another state than the compared one, and changes nothing.
    let saved =
        block_on(async { Ok(client.post(&route(&["api", "workflows", "sync-all"], &[]), &body, Repeat::May).await?) })?;
    definitions::print_outside(&saved);
    if !context.global.json {
        let deleted = Response::new(&client, "saved workflows", &saved).list("deleted")?.len();
        let others = changes.iter().filter(|change| change.kind != Kind::Workflow).count();
        let others = if others > 0 {
            format!(", made {}", counted(others as u64, "other change", "other changes"))
        } else {
            String::new()
        };
        let saved = counted(local.definitions.len() as u64, "workflow", "workflows");
        print_out!("{}", dim(&format!("saved {saved}, deleted {deleted}{others}, in one transaction")));
    }
    Ok(Exit::Fine)
}

/// The request that makes all changes. The server refuses it if something has changed since it was compared.
fn sync_body(local: &Local, remote: &Remote, changes: &[Change], prunes: bool) -> Result<Value, CliError> {
    let prunes = prunes && !local.definitions.is_empty();
    let mut body = definitions::sync_body(&local.definitions, &remote.definitions, prunes);
    let scenarios = scenarios::sync_body(changes, &local.scenarios, &remote.scenarios);
    if !scenarios.is_empty() {
        body.insert("scenarios".into(), Value::Map(scenarios));
    }
    if let Some(triggers) = &local.triggers {
        let parts = triggers::sync_body(changes, triggers, &remote.triggers)?;
        if !parts.is_empty() {
            body.insert("triggers".into(), parts.into());
        }
    }
    let has_settings = changes.iter().any(|change| change.kind == Kind::Organization);
    if let Some(settings) = local.organization.as_ref().filter(|_| has_settings) {
        body.insert("organization".into(), organization::sync_body(settings, &remote.organization));
    }
    Ok(Value::Map(body))
}

fn propose(
    client: &Client,
    local: &Local,
    remote: &Remote,
    changes: &[Change],
    context: &Context,
) -> Result<Exit, CliError> {
    let mut lines = Vec::new();
    for change in changes.iter().filter(|change| change.action != Action::Delete) {
        if change.kind != Kind::Workflow {
            let why = "has changed, and a proposal changes definitions only: use `apply` for it";
            context.terminal.note(&format!("{} {why}", change.subject()));
            continue;
        }
        let Some(old) = remote.definitions.get(&change.name) else {
            let message = format!(
                "`{}` is new, and a proposal changes an existing workflow: use `apply` for it",
                shown(&change.name)
            );
            context.terminal.note(&message);
            continue;
        };
        let summary = format!("Change of {} in the repository", change.name);
        let document = local.definitions[&change.name].document.clone();
        let proposed = [("proposedWorkflow", document), ("summary", summary.into())];
        let body =
            Value::map([("baseWorkflowHash", Value::from(old.hash.as_str())), ("proposal", Value::map(proposed))]);
        let path = route(&["api", "workflows", &old.id, "proposals"], &[]);
        let created = block_on(async { Ok(client.post(&path, &body, Repeat::MustNot).await?) })?;
        let answer = Response::new(client, "a proposal", &created);
        let (id, risk) = (answer.text("id")?, answer.object("report", "a report")?.text("risk")?);
        if !context.global.json {
            print_out!("{} {} risk: {}", bold(&shown(&change.name)), shown(&id), rated(&risk));
        }
        let slug = Value::from(change.name.as_str());
        lines.push(Value::map([("slug", slug), ("proposal", id.into()), ("risk", risk.into())]));
    }
    if context.global.json {
        print_out!("{}", compact(&Value::map([("proposals", Value::from(lines))])));
    } else if lines.is_empty() {
        print_out!("{}", dim("no changed workflow to propose"));
    }
    Ok(Exit::Fine)
}
