//! Rules of `policy.effects` that no call of the definition has.

use alloc::{collections::BTreeSet, format};

use crate::{
    definition::{report::Report, suggest::nearest::nearest},
    diagnostic::{self, quoted},
    document::Path,
    effect_policy::Call,
    plan::{EffectClass, Loop, Over, Pattern, Plan, ToolKind, Work},
};

/// Reports patterns that match no call. A rule for a class may match tools whose class only an installation knows.
pub(super) fn check(plan: &Plan, report: &mut Report<'_>) {
    let calls: BTreeSet<&str> = plan.steps.iter().flat_map(|step| names(&step.work)).collect();
    for (pattern, _) in plan.effect_rules.patterns() {
        if calls.iter().any(|call| can_match(pattern, call)) || is_of_runner(pattern, plan) {
            continue;
        }
        let key = format!("{pattern}");
        let classes = EffectClass::ALL.map(EffectClass::name);
        let help = match nearest(&key, classes.into_iter().chain(calls.iter().copied())) {
            Some(name) => format!("write {}", quoted(name)),
            None => format!(
                "write a class ({}), or the name of a call as the step writes it, such as `github.*`",
                classes.join(", ")
            ),
        };
        let message =
            format!("the rule {} has no effect: no call of this definition has that class or name", quoted(&key));
        let path = Path::root().key("policy").key("effects").key(&key);
        report.warning(diagnostic::RULE_MATCHES_NOTHING, &path, message, help);
    }
}

/// Returns the names of the calls of a step. A name that ends with `*` stands for all tools of a server.
fn names(work: &Work) -> impl Iterator<Item = &str> {
    let listed = match work {
        Work::Loop(Loop { over: Over::Turns(agent), .. }) => agent.tools.as_slice(),
        _ => &[],
    };
    let of_step = match Call::of(work) {
        Some(Call::Tool(name) | Call::BuiltIn(name, _)) => Some(name),
        None => None,
    };
    listed.iter().map(alloc::string::String::as_str).chain(of_step).filter(|name| !name.is_empty())
}

/// True if a permission request of an external agent can have the name.
fn is_of_runner(pattern: &Pattern, plan: &Plan) -> bool {
    let matches =
        |runner: &str| ToolKind::ALL.into_iter().any(|kind| pattern.matches(&format!("{runner}.{}", kind.name())));
    plan.steps.iter().filter_map(|step| step.work.runner()).any(matches)
}

fn can_match(pattern: &Pattern, call: &str) -> bool {
    match (call.strip_suffix('*'), pattern.as_name()) {
        (Some(server), _) => pattern.can_match_prefix(server),
        // A name without a server means the tool of any server.
        (None, Some(name)) if !call.contains('.') => {
            name == call || name.rsplit_once('.').is_some_and(|(_, tool)| tool == call)
        }
        (None, None) if !call.contains('.') => pattern.matches_end(call),
        (None, _) => pattern.matches(call),
    }
}
