//! Open approvals, as lines or as JSON.

use mainspring_kernel::{form::Form, json::compact, time::rfc3339, value::Value};

use super::{
    terminal::{bold, dim, print_out},
    text::{paragraph, shown},
};

/// An open approval, of a local store or of a server.
pub(crate) struct ApprovalView {
    /// The execution id.
    pub(crate) execution: String,
    /// The name of the workflow.
    pub(crate) workflow: Option<String>,
    /// The path of the approval step.
    pub(crate) step: String,
    pub(crate) prompt: String,
    /// The named approvers; empty if the gate names none.
    pub(crate) approvers: Vec<ApproverView>,
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
    /// The decision at the deadline: `approve` or `deny`.
    pub(crate) default_action: String,
    /// True if enough approvers exist to reach the count; `None` outside of organizations, where everyone with
    /// access to the store may decide.
    pub(crate) can_be_approved: Option<bool>,
    /// The schema of the form that a tool server asks for.
    pub(crate) form: Option<Value>,
    /// The approval page of the server.
    pub(crate) url: Option<String>,
}

/// A named approver.
pub(crate) struct ApproverView {
    pub(crate) user: String,
    /// True if this user can decide now; `None` without knowledge of members.
    pub(crate) can_decide: Option<bool>,
}

/// Prints a page of approvals: as lines, or as one JSON object.
pub(crate) fn print(waits: &[ApprovalView], next: Option<&str>, json: bool) {
    if json {
        let gates: Vec<Value> = waits.iter().map(ApprovalView::to_value).collect();
        print_out!("{}", compact(&Value::map([("approvals", gates.into()), ("nextCursor", next.into())])));
        return;
    }
    if waits.is_empty() {
        print_out!("{}", dim("no open approvals"));
    }
    waits.iter().for_each(ApprovalView::show);
    if let Some(next) = next {
        print_out!("{}", dim(&shown(&format!("there may be more: mainspring approvals --cursor {next}"))));
    }
}

impl ApprovalView {
    fn to_value(&self) -> Value {
        let approver = |named: &ApproverView| {
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
            ("form", self.form.clone().unwrap_or_default()),
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
        let form = self.form.as_ref().and_then(|schema| Form::of_schema(schema).ok());
        for field in form.iter().flat_map(|form| &form.fields) {
            let required = if field.is_required { ", required" } else { "" };
            print_out!(
                "  field {}: {}",
                shown(&field.name),
                paragraph(&format!("{}{required}", field.kind.expected()))
            );
        }
        let content = form.map(|form| format!(" --content {}", quoted(&compact(&form.sample())))).unwrap_or_default();
        let (execution, step) = (word(&self.execution), word(&self.step));
        print_out!(
            "  {}",
            dim(&shown(&format!(
                "mainspring approve {execution} --step {step}{content}    or    mainspring deny {execution} --step {step}"
            )))
        );
    }

    /// The approvers as text, and the number of approvals.
    fn deciders(&self) -> String {
        let one = |named: &ApproverView| {
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

/// A word of a command: quoted if a shell would read it as something else.
fn word(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@%+=,".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) { text.into() } else { quoted(text) }
}

/// A text in single quotes, as a shell reads it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn past(decision: &str) -> &str {
    match decision {
        "approve" => "approved by itself",
        "deny" => "denied by itself",
        other => other,
    }
}
