//! `mainspring approvals`: lists open approvals, with approvers, start and deadline.

use clap::Args;
use mainspring_kernel::{json::compact, key::ExecutionKey, time::rfc3339, value::Value};
use mainspring_server::{
    http::problem::Problem,
    services::pending_approvals::{self, Cursor, Pending},
};

use super::remote;
use crate::{
    cli::Global,
    error::{CliError, Exit},
    output::terminal::{Terminal, bold, dim, print_out},
    output::text::{paragraph, shown},
    read_store::{ReadStore, open_read_only},
};

/// List open approvals.
#[derive(Debug, Args)]
pub(crate) struct Approvals {
    /// The maximum number of approvals
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(super) limit: u32,
    /// Start after this cursor of the previous page
    #[arg(long, value_name = "CURSOR")]
    pub(super) cursor: Option<String>,
}

/// An open approval, of a local store or of a server.
pub(crate) struct Waits {
    /// The execution id.
    pub(crate) execution: String,
    /// The name of the workflow.
    pub(crate) workflow: Option<String>,
    /// The path of the approval step.
    pub(crate) step: String,
    /// The prompt.
    pub(crate) prompt: String,
    /// The named approvers; empty if the gate names none.
    pub(crate) approvers: Vec<Named>,
    /// The owner of the execution, for a gate of an organization without named approvers.
    pub(crate) owner: Option<String>,
    /// The number of required approvals.
    pub(crate) count: u64,
    /// The users who have approved.
    pub(crate) approved_by: Vec<String>,
    /// The opening time in milliseconds since the epoch; a server of an older release does not return it.
    pub(crate) since: Option<u64>,
    /// The deadline, after which the default action applies.
    pub(crate) until: u64,
    /// The default action.
    pub(crate) default_action: String,
    /// True if enough approvers exist to reach the count; `None` outside of organizations, where everyone with
    /// access to the store may decide.
    pub(crate) can_be_approved: Option<bool>,
    /// The approval page of the server.
    pub(crate) url: Option<String>,
}

/// A named approver.
pub(crate) struct Named {
    pub(crate) user: String,
    /// True if this user can decide now; `None` without knowledge of members.
    pub(crate) can_decide: Option<bool>,
}

pub(crate) fn approvals(approvals: &Approvals, global: &Global, terminal: &Terminal) -> Result<Exit, CliError> {
    if let Some(client) = global.client()? {
        return remote::approvals(approvals, &client, global);
    }
    let opened = open_read_only(global)?;
    let after = approvals.cursor.as_deref().map(cursor).transpose()?;
    let limit = approvals.limit as usize;
    let page = pending_approvals::pending(&*opened.store, &opened.loader, &opened.key, after.as_ref(), limit)
        .map_err(error)?;
    let waits = page.gates.iter().map(|pending| waits(&opened, pending)).collect::<Result<Vec<_>, _>>()?;
    let next = page.next.map(|(execution, step, gate)| format!("{execution}:{step}:{gate}"));
    show(&waits, next.as_deref(), global);
    if !page.broken.is_empty() {
        let names = page.broken.iter().map(|id| shown(id)).collect::<Vec<_>>().join(", ");
        terminal.note(&format!("left out, as their journals cannot be read: {names}; `mainspring verify` says why"));
    }
    Ok(Exit::Fine)
}

fn error(problem: Problem) -> CliError {
    CliError::internal("store_unavailable", problem.full_message())
}

fn waits(opened: &ReadStore, pending: &Pending) -> Result<Waits, CliError> {
    let Pending { listed, row, open } = pending;
    let catalogue = opened.store.catalogue();
    let members = pending_approvals::named(catalogue, row, open).map_err(error)?;
    let approvers = match members {
        Some(members) => {
            let named = |member: &pending_approvals::Approver| Named {
                user: member.user_id.clone(),
                can_decide: Some(member.can_decide),
            };
            members.iter().map(named).collect()
        }
        None => open.gate.approvers.iter().map(|user| Named { user: user.clone(), can_decide: None }).collect(),
    };
    Ok(Waits {
        execution: row.id.clone(),
        workflow: row.workflow_name.clone().or_else(|| row.workflow.clone()),
        step: open.step.clone(),
        prompt: open.gate.prompt.clone(),
        approvers,
        owner: row.organization.as_ref().and(row.initiator_user_id.clone()),
        count: open.gate.count.into(),
        approved_by: open.gate.approved_by.clone(),
        since: Some(listed.opened_at),
        until: open.gate.expires_at,
        default_action: open.gate.on_timeout.name().into(),
        can_be_approved: pending_approvals::are_enough(catalogue, row, open).map_err(error)?,
        url: None,
    })
}

fn cursor(text: &str) -> Result<Cursor, CliError> {
    let unknown = || CliError::bad_input("bad_cursor", "--cursor must be what the page before has named");
    let (execution, rest) = text.split_once(':').ok_or_else(unknown)?;
    let (step, gate) = rest.rsplit_once(':').ok_or_else(unknown)?;
    let execution = ExecutionKey::parse(execution).ok_or_else(unknown)?;
    Ok((execution, step.to_string(), gate.parse().map_err(|_| unknown())?))
}

/// Prints a page of approvals: as lines, or as one JSON object.
pub(super) fn show(waits: &[Waits], next: Option<&str>, global: &Global) {
    if global.json {
        let gates: Vec<Value> = waits.iter().map(Waits::to_value).collect();
        print_out!("{}", compact(&Value::map([("approvals", gates.into()), ("nextCursor", next.into())])));
        return;
    }
    if waits.is_empty() {
        print_out!("{}", dim("no open approvals"));
    }
    waits.iter().for_each(Waits::show);
    if let Some(next) = next {
        print_out!("{}", dim(&shown(&format!("there may be more: mainspring approvals --cursor {next}"))));
    }
}

impl Waits {
    fn to_value(&self) -> Value {
        let approver = |named: &Named| {
            Value::map([
                ("userId", named.user.as_str().into()),
                ("canDecide", named.can_decide.map(Value::Bool).unwrap_or_default()),
            ])
        };
        let approved: Vec<Value> = self.approved_by.iter().map(|user| user.as_str().into()).collect();
        Value::map([
            ("executionId", self.execution.as_str().into()),
            ("workflow", self.workflow.as_deref().into()),
            ("stepId", self.step.as_str().into()),
            ("prompt", self.prompt.as_str().into()),
            ("approvers", self.approvers.iter().map(approver).collect::<Vec<_>>().into()),
            ("owner", self.owner.as_deref().into()),
            ("count", self.count.into()),
            ("approvedBy", approved.into()),
            ("requestedAt", self.since.map(rfc3339).into()),
            ("timeoutAt", rfc3339(self.until).into()),
            ("defaultAction", self.default_action.as_str().into()),
            ("canBeApproved", self.can_be_approved.map(Value::Bool).unwrap_or_default()),
            ("url", self.url.as_deref().into()),
        ])
    }

    fn show(&self) {
        let workflow = self.workflow.as_deref().unwrap_or("-");
        print_out!("{}  {}  at `{}`", bold(&shown(&self.execution)), shown(workflow), shown(&self.step));
        print_out!("  {}", paragraph(&self.prompt));
        let since = self.since.map(|since| format!("since {}, ", rfc3339(since))).unwrap_or_default();
        print_out!("  waits {since}until {}, then {}", rfc3339(self.until), past(&self.default_action));
        print_out!("  decide: {}", shown(&self.deciders()));
        if self.can_be_approved == Some(false) {
            print_out!("  too few approvers can decide: deny it, or make the approvers members in a role that decides");
        }
        if let Some(url) = &self.url {
            print_out!("  {}", dim(&shown(url)));
        }
        print_out!(
            "  {}",
            dim(&shown(&format!(
                "mainspring approve {0} --step {1}    or    mainspring deny {0} --step {1}",
                self.execution, self.step
            )))
        );
    }

    /// The approvers as text, and the number of approvals.
    fn deciders(&self) -> String {
        let one = |named: &Named| {
            let has_approved = self.approved_by.contains(&named.user);
            let note = match named.can_decide {
                _ if has_approved => " (has approved)",
                Some(false) => " (cannot)",
                _ => "",
            };
            format!("{}{note}", named.user)
        };
        let who = match (self.approvers.as_slice(), &self.owner) {
            ([], Some(owner)) => format!("{owner}, whose execution it is, and the admins"),
            ([], None) => "everyone with access to this folder".to_string(),
            (named, _) => named.iter().map(one).collect::<Vec<_>>().join(", "),
        };
        if self.count > 1 { format!("{who}; {} of {} have approved", self.approved_by.len(), self.count) } else { who }
    }
}

fn past(decision: &str) -> &str {
    match decision {
        "approve" => "approved by itself",
        "deny" => "denied by itself",
        other => other,
    }
}
