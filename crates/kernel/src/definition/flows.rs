//! Labels of values in a definition: `trust` of steps, and warnings about labeled values that reach a call for which the
//! label matters.

use alloc::{collections::BTreeMap, format, vec::Vec};

use super::{Compiled, outline::Outline, report::Report};
use crate::{
    diagnostic::{self, Diagnostic, Severity},
    document::Document,
    effect_policy::{EffectPolicy, Flow},
    fix::Fix,
    label::{Label, Trust},
    plan::Verdict,
};

/// Reads `trust` of all steps, by number. Both parts of a step with `forEach` have it.
pub(super) fn trust(outline: &Outline<'_>, report: &mut Report<'_>) -> BTreeMap<u32, Trust> {
    let mut found = BTreeMap::new();
    for (number, entry) in outline.entries.iter().enumerate() {
        let Some(value) = entry.fields.get("trust") else { continue };
        match Trust::read(value) {
            Some(trust) => drop(found.insert(number as u32, trust)),
            // The parts of a loop or an agent have the fields of one written step.
            None if !entry.is_first() => {}
            None => {
                let message = "`trust` names the labels that a person vouches for";
                let help = "write `trust: trusted`, `trust: public` or `trust: [trusted, public]`";
                report.error(diagnostic::WRONG_VALUE, &entry.fields.path.key("trust"), message, help);
            }
        }
    }
    found
}

/// Returns a warning for each labeled value that reaches a call for which the label matters.
pub fn flow_warnings(
    compiled: &Compiled,
    document: &Document,
    policy: &EffectPolicy,
    organization: Option<&str>,
) -> Vec<Diagnostic> {
    let plan = &compiled.plan;
    let warning = |flow: Flow| {
        // The calls of an agent are those of the step that an author has written.
        let step = plan.agent_of_part(flow.step).map_or(flow.step, |(agent, _)| agent);
        let path = compiled.paths.get(step as usize).cloned().unwrap_or_default();
        let (id, source) = (diagnostic::quoted(plan.id(step)), flow.source.words(plan));
        let (code, word) = match flow.label {
            Label::Untrusted => (diagnostic::UNTRUSTED_FLOW, "trusted"),
            Label::Private => (diagnostic::PRIVATE_FLOW, "public"),
        };
        let consequence = match flow.verdict {
            None => " and runs without an approval",
            Some(Verdict::Allow) => ", and the policy allows it",
            Some(Verdict::Ask) => ", and asks before it runs",
            Some(Verdict::Deny) => ", and the policy denies it",
        };
        let (label, class) = (flow.label, flow.class.name());
        let message =
            format!("{source} is {label} and reaches the call of {id}, which is of the class {class}{consequence}");
        let help = format!(
            "let the call ask by `policy: {{effects: {{{class}: ask}}}}`, or write `trust: {word}` at a step that checks the value"
        );
        Diagnostic {
            severity: Severity::Warning,
            code,
            place: document.place(&path),
            path,
            message,
            help,
            fix: Fix::default(),
        }
    };
    policy.flows(plan, organization).into_iter().map(warning).collect()
}
