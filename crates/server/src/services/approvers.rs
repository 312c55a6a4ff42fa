//! Approvers of a gate: finds gates at which too few members can decide. A named approver may have left the
//! organization, or have a role that does not decide. Such a gate waits until it times out. The result is a warning and
//! never an error, because members may still be added.

use std::collections::{BTreeMap, BTreeSet};

use mainspring_engine::execution_tree::OpenGate;
use mainspring_kernel::{
    diagnostic::{Diagnostic, quoted},
    document::{Document, Path},
    hash::Hash,
    limits::{APPROVAL_COUNT_MAX, LINEAGE_WORKFLOWS_MAX},
    plan::{Decision, Gate, Plan, Work},
    value::Value,
};
use mainspring_store::{Catalogue, ExecutionRow};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    app::App,
    auth::{
        caller::Caller,
        permission::{Permission, Role},
    },
    http::{body::Data, pagination::PAGE_MAX, problem::Result},
    resources::{Member, Workflow, repository::Repository},
    services::{
        compile::plan_of,
        outside::InOrganization,
        plan_cache::CompiledPlan,
        workflow_names::{PendingChange, resolve_started},
    },
};

/// Warning code: a named approver cannot decide.
pub(crate) const CANNOT_DECIDE: &str = "approver_cannot_decide";

/// Warning code: fewer members can decide than must approve.
pub(crate) const TOO_FEW: &str = "too_few_approvers";

/// Most warnings in one response. A definition can name a hundred thousand approvers.
const WARNINGS_MAX: usize = 100;

/// Most members that a request reads one by one. Beyond that it reads all members once, so that the cost is bounded by
/// the size of the organization and not by the number of named approvers.
const MEMBERS_READ_MAX: usize = 200;

/// Most owners, and most admins, that a request reads: one page of each, and more than any gate asks for.
const ADMINS_MAX: usize = PAGE_MAX;

const _: () = assert!(ADMINS_MAX > APPROVAL_COUNT_MAX as usize, "the admins that are read must suffice for every gate");

/// Bytes of an approver in a response beside the name. With a hundred thousand short names this is the larger part.
const APPROVER_BYTES: usize = 80;

/// An approver named by the approval.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approver {
    /// Id of the approver, as written in the approval.
    pub user_id: String,
    /// Role in the organization; null if the approver is no member, or if the caller may not see members.
    pub role: Option<Role>,
    /// True if the approver has already approved.
    pub has_approved: bool,
    /// True if a decision of the approver currently counts: a member with a role that decides, who has not approved
    /// yet.
    pub can_decide: bool,
}

impl Approver {
    /// Bytes that it adds to a page.
    pub(crate) fn byte_count(&self) -> usize {
        self.user_id.len() + APPROVER_BYTES
    }
}

/// The members of an organization, read from the catalogue on demand and remembered for one request.
pub(crate) struct Members<'a> {
    repository: Repository<'a>,
    shows_roles: bool,
    known: BTreeMap<String, Option<Role>>,
    is_whole: bool,
    admins: Option<BTreeSet<String>>,
}

/// The user who starts the execution of a gate. This user may decide if the gate names no approvers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Starter<'a> {
    /// A known user.
    Known(&'a str),
    /// Not known yet: the gate is in a definition.
    Unknown,
}

impl<'a> Members<'a> {
    pub(crate) fn of(app: &'a App, caller: &'a Caller) -> Self {
        let shows_roles = caller.has(Permission::MembersRead);
        Self { shows_roles, ..Self::in_catalogue(app.catalogue(), &caller.organization) }
    }

    /// All members, with their roles, for a caller who may read them.
    pub(crate) fn in_catalogue(catalogue: &'a dyn Catalogue, organization: &'a str) -> Self {
        let repository = Repository::of(catalogue, organization);
        Self { repository, shows_roles: true, known: BTreeMap::new(), is_whole: false, admins: None }
    }

    /// The role of a member; `None` for a user who is not a member.
    fn role(&mut self, user: &str) -> Result<Option<Role>> {
        if let Some(role) = self.known.get(user) {
            return Ok(*role);
        }
        if self.known.len() >= MEMBERS_READ_MAX && !self.is_whole {
            for stored in self.repository.all::<Member>(None) {
                let stored = stored?;
                self.known.insert(stored.id, Some(stored.body.role));
            }
            self.is_whole = true;
            return self.role(user);
        }
        let stored = if self.is_whole { None } else { self.repository.get::<Member>(user)? };
        let role = stored.map(|stored| stored.body.role);
        self.known.insert(user.into(), role);
        Ok(role)
    }

    fn can_decide(&mut self, user: &str) -> Result<bool> {
        Ok(self.role(user)?.is_some_and(|role| Permission::ApprovalsDecide.is_of(role)))
    }

    /// Owners and admins: all of them, or more than any gate asks for.
    fn admins(&mut self) -> Result<&BTreeSet<String>> {
        if self.admins.is_none() {
            let mut admins = BTreeSet::new();
            for role in [Role::Owner, Role::Admin] {
                let of_role = self.repository.all::<Member>(Some(("role", role.name().into())));
                for stored in of_role.take(ADMINS_MAX) {
                    admins.insert(stored?.id);
                }
            }
            self.admins = Some(admins);
        }
        Ok(self.admins.get_or_insert_default())
    }

    /// True if a member who is no admin can decide.
    fn has_other_deciders(&mut self) -> Result<bool> {
        let roles = [Role::Member, Role::Viewer, Role::Agent]
            .into_iter()
            .filter(|role| Permission::ApprovalsDecide.is_of(*role));
        for role in roles {
            if let Some(stored) = self.repository.all::<Member>(Some(("role", role.name().into()))).next() {
                stored?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Counts the users whom a gate asks, who can decide, and who have not approved yet.
    fn able(&mut self, approvers: &[String], starter: Starter<'_>, approved_by: &[String]) -> Result<usize> {
        let mut able = 0;
        if !approvers.is_empty() {
            for user in approvers.iter().filter(|user| !approved_by.contains(user)) {
                able += usize::from(self.can_decide(user)?);
            }
            return Ok(able);
        }
        able += self.admins()?.iter().filter(|admin| !approved_by.contains(admin)).count();
        able += usize::from(match starter {
            // Any member who decides may start it; an admin is counted above.
            Starter::Unknown => self.has_other_deciders()?,
            Starter::Known(user) => {
                let counts = !approved_by.iter().any(|by| by == user) && !self.admins()?.contains(user);
                counts && self.can_decide(user)?
            }
        });
        Ok(able)
    }

    /// The approvers whom an open gate names.
    pub(crate) fn named(&mut self, open: &OpenGate) -> Result<Vec<Approver>> {
        let gate = &open.gate;
        let each = |user: &String| {
            let has_approved = gate.approved_by.contains(user);
            let can_decide = self.can_decide(user)? && !has_approved;
            let role = self.role(user)?.filter(|_| self.shows_roles);
            Ok(Approver { user_id: user.clone(), role, has_approved, can_decide })
        };
        gate.approvers.iter().map(each).collect()
    }

    /// True if enough members can still approve at an open gate.
    pub(crate) fn are_enough(&mut self, row: &ExecutionRow, open: &OpenGate) -> Result<bool> {
        let gate = &open.gate;
        let starter = Starter::Known(row.initiator_user_id.as_deref().unwrap_or_default());
        let able = self.able(&gate.approvers, starter, &gate.approved_by)?;
        Ok(gate.approved_by.len() + able >= gate.count as usize)
    }
}

/// A definition with the paths to its parts.
#[derive(Clone, Copy)]
pub(crate) struct CheckedDefinition<'a> {
    pub plan: &'a Plan,
    /// The steps that ask people or start workflows, as [`asking`] finds them.
    pub asking: &'a [(u32, Path)],
    /// Source positions for diagnostics; without positions if there is no text.
    pub document: &'a Document,
    /// The warnings that the definition accepts, each with the step that may cause it.
    pub allowed: &'a [(Path, &'static str)],
}

/// Warnings collected from a definition and from the workflows that it starts.
struct Findings<'a> {
    app: &'a App,
    members: Members<'a>,
    /// The owner of the definition. Names of child workflows are resolved for this user.
    owner: &'a str,
    starter: Starter<'a>,
    pending: &'a PendingChange<'a>,
    found: Vec<Diagnostic>,
}

/// Warns of gates at which too few current members can decide: in a definition of this owner, and in the workflows that
/// it starts.
pub(crate) fn warnings(
    app: &App,
    caller: &Caller,
    owner: &str,
    starter: Starter<'_>,
    pending: &PendingChange<'_>,
    checked: CheckedDefinition<'_>,
) -> Result<Vec<Diagnostic>> {
    if checked.asking.is_empty() {
        return Ok(Vec::new());
    }
    let mut findings = Findings { app, members: Members::of(app, caller), owner, starter, pending, found: Vec::new() };
    let mut seen = BTreeSet::from([checked.plan.workflow_hash]);
    for (number, path) in checked.asking {
        match &checked.plan.step(*number).work {
            Work::Approval(gate) => {
                for (code, at, message, help) in findings.gate(gate, path)? {
                    findings.found.push(Diagnostic::warning(code, at, checked.document, &message, &help));
                }
            }
            Work::Subworkflow { workflow, .. } => findings.started(workflow, path, checked.document, &mut seen)?,
            _ => {}
        }
    }
    findings.found.retain(|warning| !is_accepted(checked.allowed, warning));
    findings.found.truncate(WARNINGS_MAX);
    Ok(findings.found)
}

/// True if the definition accepts the warning at its step.
fn is_accepted(allowed: &[(Path, &'static str)], warning: &Diagnostic) -> bool {
    let is_here = |step: &Path| warning.path.segments().starts_with(step.segments());
    allowed.iter().any(|(step, code)| *code == warning.code && is_here(step))
}

/// A warning without a source position: code, path, message, help.
type Finding = (&'static str, Path, String, String);

impl Findings<'_> {
    /// The warnings of one gate.
    fn gate(&mut self, gate: &Gate, path: &Path) -> Result<Vec<Finding>> {
        let Gate { approvers, count, .. } = gate;
        let mut found = Vec::new();
        // Needs no lookup: every organization has an owner.
        if self.found.len() >= WARNINGS_MAX || approvers.is_empty() && *count <= 1 {
            return Ok(found);
        }
        // The more important warning comes first, because the list may be truncated.
        let able = self.members.able(approvers, self.starter, &[])?;
        if able < *count as usize {
            let (key, whom) = match approvers.as_slice() {
                [] => ("count", "the execution's owner and the admins".to_string()),
                named => ("approvers", format!("the {} named", named.len())),
            };
            let ending = match gate.on_timeout {
                Decision::Approve => "approved",
                Decision::Deny => "denied",
            };
            let message = format!(
                "{able} of {whom} can decide here, and {count} must approve: the gate would wait until its time is over, \
                 and be {ending} by itself"
            );
            let help = "make members of those who decide, in a role that may, or ask for fewer in `count`";
            found.push((TOO_FEW, path.key(key), message, help.into()));
        }
        for (at, user) in approvers.iter().enumerate() {
            if found.len() < WARNINGS_MAX && !self.members.can_decide(user)? {
                let (message, help) = self.cannot(user)?;
                found.push((CANNOT_DECIDE, path.key("approvers").index(at), message, help));
            }
        }
        Ok(found)
    }

    /// Message and help for an approver who cannot decide. The role is named only if the caller may read members.
    fn cannot(&mut self, user: &str) -> Result<(String, String)> {
        let role = self.members.role(user)?;
        let user = quoted(user);
        Ok(match role {
            _ if !self.members.shows_roles => {
                (format!("{user} cannot decide in this organization"), "name a member who can, by id".into())
            }
            None => (
                format!("{user} is no member of this organization, and cannot decide"),
                "add the approver as a member, or name another member by id".into(),
            ),
            Some(role) => (
                format!("{user} cannot decide as {}", role.name()),
                "give them a role that decides (member, admin, owner), or name another member".into(),
            ),
        })
    }

    /// Adds the warnings of a workflow that a step starts, and of the workflows that it starts in turn. Each is
    /// reported once per step. A workflow that is missing or does not compile is reported by the checks of the start.
    fn started(&mut self, name: &str, step_path: &Path, document: &Document, seen: &mut BTreeSet<Hash>) -> Result<()> {
        let mut names = vec![name.to_string()];
        let mut visited = 0;
        while let Some(name) = names.pop() {
            visited += 1;
            if visited > LINEAGE_WORKFLOWS_MAX || self.found.len() >= WARNINGS_MAX {
                break;
            }
            let Ok(Some(stored)) = resolve_started(self.members.repository, self.owner, &name, self.pending) else {
                continue;
            };
            let Ok(compiled) = plan_of(self.app, self.members.repository.organization(), &stored.body) else {
                continue;
            };
            if !seen.insert(compiled.plan.workflow_hash) {
                continue;
            }
            for (number, path) in compiled.asking.iter() {
                match &compiled.plan.step(*number).work {
                    Work::Approval(gate) => {
                        for (code, at, message, help) in self.gate(gate, path)? {
                            let message = format!("in {}, which it starts, at {at}: {message}", quoted(&name));
                            self.found.push(Diagnostic::warning(code, step_path.clone(), document, &message, &help));
                        }
                    }
                    Work::Subworkflow { workflow, .. } => names.push(workflow.clone()),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// Warnings for the author of a workflow that is about to be saved, with the pending change applied to the workflows
/// that it starts.
pub(crate) fn warnings_for_save(
    app: &App,
    caller: &Caller,
    workflow: &Workflow,
    pending: &PendingChange<'_>,
) -> Result<Vec<Data>> {
    // A stored workflow that no longer compiles can still be renamed and disabled. The start reports its errors.
    let Ok(compiled) = plan_of(app, &caller.organization, workflow) else { return Ok(Vec::new()) };
    let found = warnings_of_plan(app, caller, &workflow.user, Starter::Unknown, pending, &compiled)?;
    let document = Document::placeless(workflow.data.0.clone());
    let organization = InOrganization::of(app, caller, &workflow.user, pending);
    let outside = organization.warnings(&compiled.plan, &document, &compiled.warnings);
    Ok(shown(compiled.warnings.iter().chain(&found).chain(&outside)))
}

/// Warnings for a caller who starts a stored workflow: members may have changed since it was saved.
pub(crate) fn warnings_for_start(app: &App, caller: &Caller, workflow: &Workflow) -> Result<Vec<Diagnostic>> {
    let (compiled, pending) = (plan_of(app, &caller.organization, workflow)?, PendingChange::default());
    warnings_of_plan(app, caller, &workflow.user, Starter::Known(&caller.user), &pending, &compiled)
}

fn warnings_of_plan(
    app: &App,
    caller: &Caller,
    owner: &str,
    starter: Starter<'_>,
    pending: &PendingChange<'_>,
    compiled: &CompiledPlan,
) -> Result<Vec<Diagnostic>> {
    // Stored definitions have no text, and their warnings no lines.
    let document = Document::placeless(Value::Null);
    warnings(
        app,
        caller,
        owner,
        starter,
        pending,
        CheckedDefinition {
            plan: &compiled.plan,
            asking: &compiled.asking,
            document: &document,
            allowed: &compiled.allowed,
        },
    )
}

/// Warnings as they appear in responses.
pub(crate) fn shown<'d>(warnings: impl IntoIterator<Item = &'d Diagnostic>) -> Vec<Data> {
    warnings.into_iter().map(|warning| Data(warning.to_value())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_byte_count_of_an_approver_is_its_size_in_json() {
        for role in [None, Some(Role::Owner), Some(Role::Admin), Some(Role::Member), Some(Role::Viewer)] {
            let approver = Approver { user_id: "zoe".into(), role, has_approved: false, can_decide: false };
            let written = serde_json::to_string(&approver).unwrap().len();
            assert!((written..written + 20).contains(&approver.byte_count()), "{role:?}: {written}");
        }
    }
}
