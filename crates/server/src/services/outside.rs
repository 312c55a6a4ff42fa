//! Warnings about names outside of a definition: workflows that it starts with the inputs that these take, secrets,
//! models with their prices, tool servers and external agents. They are warnings, because a later save or a change of the settings may add a name.

use std::{cell::RefCell, collections::BTreeMap};

use mainspring_kernel::{
    definition::{Complaint, FunctionTypes, Inspector, Missing, Outside, compile_with, nearest, shapes},
    diagnostic::{Diagnostic, UNUSED_ALLOW},
    document::Document,
    plan::{Loop, Over, Plan, RUNNER_EFFECT, Work},
    secret::references_of,
    value::Value,
};

use crate::{
    app::App,
    auth::{caller::Caller, permission::Permission},
    resources::{
        Secret, Workflow,
        repository::{Repository, Stored},
    },
    services::workflow_names::{PendingChange, resolve_started},
};

/// Most names that one definition looks up. Further ones are not checked.
const LOOKUPS_MAX: usize = 200;

/// Most names of the organization that are compared with an unknown one.
const COMPARED_MAX: usize = 500;

/// Most unknown names of a definition that are compared with others.
const SEARCHES_MAX: usize = 20;

/// The remedies, by kind.
const SAVE: &str = "save that workflow before an execution starts it, or correct the name";
const SET: &str = "an admin sets it with `mainspring secret set NAME`, or the operator adds it to `secrets` in the settings; or correct the name";

/// The organization as the definitions of one of its members see it.
pub(crate) struct InOrganization<'a> {
    app: &'a App,
    repository: Repository<'a>,
    owner: &'a str,
    pending: &'a PendingChange<'a>,
    /// True if the caller may read the names of secrets. Otherwise warnings would reveal them.
    reads_secrets: bool,
    found: RefCell<Found>,
}

/// The names that were looked up.
#[derive(Default)]
struct Found {
    workflows: BTreeMap<String, Option<Stored<Workflow>>>,
    outputs: BTreeMap<String, Option<Value>>,
    secrets: BTreeMap<String, bool>,
    searches: usize,
}

impl<'a> InOrganization<'a> {
    /// Sees the workflows of the owner, with the pending change applied, on behalf of the caller.
    pub(crate) fn of(app: &'a App, caller: &'a Caller, owner: &'a str, pending: &'a PendingChange<'a>) -> Self {
        let repository = Repository::of(app.catalogue(), &caller.organization);
        let reads_secrets = caller.has(Permission::SecretsRead);
        Self { app, repository, owner, pending, reads_secrets, found: RefCell::default() }
    }

    /// The warnings of a definition that depend on the organization. `known` has those of the compiler.
    pub(crate) fn warnings(&self, plan: &Plan, document: &Document, known: &[Diagnostic]) -> Vec<Diagnostic> {
        if !plan.steps.iter().any(|step| names_outside(&step.work)) {
            return Vec::new();
        }
        let Ok(compiled) = compile_with(document, self) else { return Vec::new() };
        let is_new = |found: &Diagnostic| {
            let is_it = |it: &Diagnostic| it.code == found.code && it.path == found.path && it.message == found.message;
            found.code != UNUSED_ALLOW && !known.iter().any(is_it)
        };
        compiled.warnings.into_iter().filter(is_new).collect()
    }

    fn workflow_of(&self, name: &str) -> Lookup<Stored<Workflow>> {
        if let Some(known) = self.found.borrow().workflows.get(name) {
            return known.clone().map_or(Lookup::Missing, Lookup::Found);
        }
        if self.found.borrow().workflows.len() >= LOOKUPS_MAX {
            return Lookup::Unknown;
        }
        // An ambiguous name is an error of the start, which names the candidates.
        let Ok(found) = resolve_started(self.repository, self.owner, name, self.pending) else {
            return Lookup::Unknown;
        };
        self.found.borrow_mut().workflows.insert(name.into(), found.clone());
        found.map_or(Lookup::Missing, Lookup::Found)
    }

    fn has_secret(&self, name: &str) -> bool {
        if let Some(known) = self.found.borrow().secrets.get(name) {
            return *known;
        }
        let organization = Some(self.repository.organization());
        let is_configured =
            || self.app.settings.configured.known_names.of(Outside::Secret, organization).any(|known| known == name);
        // After a failed read, or too many of them, nothing is said about a name.
        let is_full = self.found.borrow().secrets.len() >= LOOKUPS_MAX;
        let is_stored = is_full || self.repository.get::<Secret>(name).map_or(true, |found| found.is_some());
        let has = is_stored || is_configured();
        self.found.borrow_mut().secrets.insert(name.into(), has);
        has
    }

    /// The most similar name of this kind, of those that the owner can use.
    fn nearest(&self, what: Outside, name: &str) -> Option<String> {
        self.found.borrow_mut().searches += 1;
        if self.found.borrow().searches > SEARCHES_MAX {
            return None;
        }
        match what {
            Outside::Workflow => nearest_workflow(self.repository, self.owner, name),
            _ => {
                let stored = self.repository.all::<Secret>(None).take(COMPARED_MAX).flatten();
                let mut names: Vec<String> = stored.map(|stored| stored.id).collect();
                let organization = Some(self.repository.organization());
                names.extend(self.app.settings.configured.known_names.of(what, organization).map(Into::into));
                nearest(name, names.iter().map(String::as_str)).map(Into::into)
            }
        }
    }
}

/// The result of looking up a name.
enum Lookup<T> {
    Found(T),
    Missing,
    /// It was not looked up.
    Unknown,
}

/// The most similar slug, name or id of a workflow of a member.
pub(crate) fn nearest_workflow(repository: Repository<'_>, owner: &str, name: &str) -> Option<String> {
    let own = repository.all::<Workflow>(Some(("user", owner.to_string()))).take(COMPARED_MAX).flatten();
    let names: Vec<String> = own
        .flat_map(|stored| {
            let Stored { id, body, .. } = stored;
            body.slug.into_iter().chain([body.name, id])
        })
        .collect();
    nearest(name, names.iter().map(String::as_str)).map(Into::into)
}

/// True for work that names something outside of its definition.
fn names_outside(work: &Work) -> bool {
    match work {
        Work::Subworkflow { .. } | Work::Loop(Loop { over: Over::Turns(_), .. }) => true,
        Work::Effect { effect, params } => {
            ["tool", "agent", RUNNER_EFFECT].contains(&effect.as_str()) || !references_of(params).is_empty()
        }
        _ => false,
    }
}

impl Inspector for InOrganization<'_> {
    // Functions and schemas were checked by the first compilation.
    fn source(&self, _: &str) -> Result<FunctionTypes, Complaint> {
        Ok(FunctionTypes::default())
    }

    fn schema(&self, _: &Value) -> Result<(), Complaint> {
        Ok(())
    }

    fn workflow(&self, name: &str) -> Option<Value> {
        if let Some(known) = self.found.borrow().outputs.get(name) {
            return known.clone();
        }
        // A workflow that is being read is unknown to those that it starts.
        self.found.borrow_mut().outputs.insert(name.into(), None);
        let Lookup::Found(stored) = self.workflow_of(name) else { return None };
        let output = shapes(&Document::placeless(stored.body.data.0), self).output;
        let output = Some(output).filter(|output| *output != Value::Bool(true));
        self.found.borrow_mut().outputs.insert(name.into(), output.clone());
        output
    }

    fn workflow_input(&self, name: &str) -> Option<Value> {
        let Lookup::Found(stored) = self.workflow_of(name) else { return None };
        stored.body.data.0.get("inputSchema").cloned()
    }

    fn missing(&self, what: Outside, name: &str) -> Option<Missing> {
        let place = "in this organization";
        let remedy = match what {
            Outside::Workflow => matches!(self.workflow_of(name), Lookup::Missing).then_some(SAVE)?,
            Outside::Secret => (self.reads_secrets && !self.has_secret(name)).then_some(SET)?,
            Outside::Model | Outside::ToolServer | Outside::Runner | Outside::Price => {
                let organization = Some(self.repository.organization());
                return self.app.settings.configured.known_names.missing(what, name, organization, "at this server");
            }
        };
        Some(Missing { place: place.into(), nearest: self.nearest(what, name), remedy: remedy.into() })
    }
}
