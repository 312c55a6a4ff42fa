//! The subject of a review: the report of a change, the workflows that it starts, the report of a shadow run, and the one
//! hash that binds a review to all of them.

use std::collections::BTreeMap;

use mainspring_engine::start_request::starts;
use mainspring_kernel::{
    definition::{self, Compiled},
    document::Document,
    hash::Hash,
    json,
    limits::LINEAGE_WORKFLOWS_MAX,
    plan::Plan,
    value::Value,
};
use mainspring_review::{Report, Version as Side, review};

use crate::{
    app::App,
    http::{
        body::Data,
        problem::{Code, Problem, Result},
    },
    resources::{
        Proposal, Version, Workflow,
        repository::{Listing, Repository, Stored},
    },
    services::{
        compile::plan_of,
        effect_policies::effect_policy,
        scenarios,
        workflow_names::{PendingChange, resolve_started},
    },
};
use mainspring_store::ReadLimit;

/// The subject of a review.
pub(crate) struct Subject {
    /// Difference, findings and risk.
    pub report: Report,
    /// Names of the workflows that it starts, directly and through others, with their hashes; null for a missing one.
    pub workflows: BTreeMap<String, Option<String>>,
    /// Hash of the workflow's scenarios, if it has any.
    pub scenarios: Option<String>,
    /// `sha256:…` over the report, the workflows, the scenarios, the report of the last shadow run, and the
    /// policy for calls.
    pub hash: String,
}

/// Computes the subject of a review as it is now.
pub(crate) fn subject(app: &App, repository: Repository<'_>, owner: &str, proposal: &Proposal) -> Result<Subject> {
    let base = entry(repository, &proposal.workflow, &proposal.change.base_hash)?;
    let base = base.ok_or_else(|| Problem::not_found("version"))?;
    let (old, new) = (stored(&base.data)?, stored(&proposal.change.data)?);
    let report = review(Side { compiled: &old, source: None }, Side { compiled: &new, source: None });
    let workflows = started(app, repository, owner, &new.plan)?;
    let names = workflows.iter().map(|(name, hash)| (name.as_str(), hash.as_deref().map_or(Value::Null, Value::from)));
    let mut all = vec![
        ("report", Value::from(report.hash().prefixed())),
        ("base", proposal.change.base_hash.as_str().into()),
        ("proposed", proposal.change.hash.as_str().into()),
        ("workflows", Value::map(names)),
    ];
    // Without a shadow run the hash is that of earlier releases, so that their approvals stay valid.
    all.extend(proposal.shadow.as_ref().map(|shadow| ("shadow", shadow.hash.as_str().into())));
    let scenarios = scenarios::find(repository, &proposal.workflow)?.map(|stored| scenarios::hash(&stored.body));
    all.extend(scenarios.as_ref().map(|hash| ("scenarios", hash.as_str().into())));
    let organization = repository.organization();
    let policy = effect_policy(app, organization)?;
    let policy = (!policy.is_default_for(organization)).then(|| policy.to_value(organization));
    all.extend(policy.map(|rules| ("policy", Hash::of(json::canonical(&rules).as_bytes()).prefixed().into())));
    let all = Value::map(all);
    let hash = Hash::of(json::canonical(&all).as_bytes()).prefixed();
    Ok(Subject { report, workflows, scenarios, hash })
}

/// Returns the entry of a definition in the history of a workflow.
pub(crate) fn entry(repository: Repository<'_>, workflow: &str, hash: &str) -> Result<Option<Version>> {
    let name = Some(("hash", format!("{workflow}/{hash}")));
    let listing = Listing { name, is_descending: true, most: ReadLimit::of(1), ..Listing::default() };
    Ok(repository.list::<Version>(listing)?.rows.pop().map(|stored| stored.body))
}

/// Compiles a stored definition, whose functions and schemas were checked when it was stored.
fn stored(data: &Data) -> Result<Compiled> {
    definition::compile(&Document::placeless(data.0.clone())).map_err(|found| {
        let first = found.first().map(ToString::to_string).unwrap_or_default();
        let message = format!("A stored definition does not compile with this release: {first}.");
        Problem::new(Code::Conflict, message)
    })
}

/// Returns the workflows that a plan starts, directly and through others, with the hashes of their definitions.
fn started(
    app: &App,
    repository: Repository<'_>,
    owner: &str,
    plan: &Plan,
) -> Result<BTreeMap<String, Option<String>>> {
    let mut found = BTreeMap::new();
    let mut names: Vec<String> = starts(plan).into_iter().map(Into::into).collect();
    while let Some(name) = names.pop() {
        if found.contains_key(&name) || found.len() >= LINEAGE_WORKFLOWS_MAX {
            continue;
        }
        let child: Option<Stored<Workflow>> = resolve_started(repository, owner, &name, &PendingChange::default())?;
        if let Some(child) = &child
            && let Ok(compiled) = plan_of(app, repository.organization(), &child.body)
        {
            names.extend(starts(&compiled.plan).into_iter().map(Into::into));
        }
        found.insert(name, child.map(|child| child.body.hash));
    }
    Ok(found)
}
