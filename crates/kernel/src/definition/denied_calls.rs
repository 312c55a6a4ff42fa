//! Diagnostics for calls that a policy certainly denies.

use alloc::{format, vec::Vec};

use super::Compiled;
use crate::{
    diagnostic::{self, Diagnostic, Severity},
    document::Document,
    effect_policy::EffectPolicy,
    fix::Fix,
};

/// Returns an error for each step whose call the policy denies for an organization.
pub fn denied_calls(
    compiled: &Compiled,
    document: &Document,
    policy: &EffectPolicy,
    organization: Option<&str>,
) -> Vec<Diagnostic> {
    let denied = policy.denied(&compiled.plan, organization).into_iter();
    let found = denied.map(|(step, class)| {
        let path = compiled.paths.get(step as usize).cloned().unwrap_or_default();
        let (id, class) = (diagnostic::quoted(compiled.plan.id(step)), class.name());
        Diagnostic {
            severity: Severity::Error,
            code: diagnostic::POLICY_DENIED,
            place: document.place(&path),
            path,
            message: format!("the policy denies the call of the step {id}, which is of the class {class}"),
            help: "remove the step, or change the rule of `policy` that denies it".into(),
            fix: Fix::default(),
        }
    });
    found.collect()
}
