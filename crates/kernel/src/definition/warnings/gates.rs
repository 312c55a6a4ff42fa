//! Gates that no person can decide.

use alloc::format;

use crate::{
    definition::{
        outline::Entry,
        report::{Report, named},
    },
    diagnostic::{self, quoted},
    limits::DECISION_MIN_MS,
    plan::{Decision, Step, Work},
};

/// Words for roles, which authors write in place of names. `owner` is not among them: the first member of an installation
/// has this name.
const ROLES: [&str; 9] =
    ["admin", "admins", "agent", "member", "members", "owners", "viewer", "role:admin", "role:owner"];

pub(super) fn check(step: &Step, entry: &Entry<'_>, report: &mut Report<'_>) {
    let Work::Approval(gate) = &step.work else { return };
    for (at, name) in gate.approvers.iter().enumerate().filter(|(_, name)| name.starts_with('@')) {
        let message = format!(
            "`approvers` of {} does not refer: {} is the name of a person here, and no member has it",
            named(&entry.id),
            quoted(name)
        );
        let help = "write the name or the address of a member, or leave `approvers` out";
        report.warning(diagnostic::GATE_NEVER_OPENS, &entry.fields.path.key("approvers").index(at), message, help);
    }
    for (at, name) in gate.approvers.iter().enumerate().filter(|(_, name)| ROLES.contains(&name.as_str())) {
        let message = format!(
            "`approvers` of {} names a person {}, and roles cannot be named here",
            named(&entry.id),
            quoted(name)
        );
        let help = "write the names of members, or leave `approvers` out: then the owner and the admins decide";
        report.warning(diagnostic::GATE_NEVER_OPENS, &entry.fields.path.key("approvers").index(at), message, help);
    }
    if gate.ttl_ms < DECISION_MIN_MS && gate.on_timeout == Decision::Deny {
        let message = format!("{} is denied after {} ms, before a person can decide", named(&entry.id), gate.ttl_ms);
        let help = format!("write the time in milliseconds: `ttlMs: {}` or more", DECISION_MIN_MS);
        report.warning(diagnostic::GATE_NEVER_OPENS, &entry.fields.path.key("ttlMs"), message, help);
    }
}
