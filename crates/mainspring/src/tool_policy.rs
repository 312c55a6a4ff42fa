//! The policy of this machine's settings file: the rules for the calls of workflows.

use std::path::Path;

use mainspring_engine::envelope;
use mainspring_kernel::{
    definition::{Compiled, denied_calls, flow_warnings, read},
    effect_policy::{Call, EffectPolicy},
    json::compact,
    label::Label,
    plan::{EffectClass, Loop, Over, Plan, Work},
    value::Value,
};

use crate::{
    context::Context,
    definitions::{show, syntax_of},
    error::CliError,
    models,
    output::{
        terminal::{print_err, print_out, waits},
        text::one_line,
    },
    period_budgets, read_limited,
    server_settings::{ObjectSettings, object_settings},
    tool_servers,
};

/// Reads the policy of a settings file. A policy with mistakes is an error for every workflow: none may run under
/// fewer rules than the file has.
pub(crate) fn of_settings(settings: &ObjectSettings) -> Result<EffectPolicy, CliError> {
    let policy = EffectPolicy::read(&settings.policy).map_err(|errors| {
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        let message = format!("the settings in {}: {}", settings.path.display(), errors.join("\n"));
        CliError::bad_input("bad_settings", message)
    })?;
    let servers = settings.tool_servers.as_map().into_iter().flatten().map(|(name, _)| name.clone());
    let policy = policy.with_servers(servers);
    let policy = match models::terms(settings)? {
        Some(terms) => policy.with_models(terms),
        None => policy,
    };
    let has_budgets = !period_budgets::of_settings(settings)?.is_empty();
    Ok(if has_budgets { policy.with_leases() } else { policy })
}

/// Reads the policy of this machine, and the annotations of trusted servers that one of the plans may use.
pub(crate) fn of_machine(plans: &[&Plan]) -> Result<EffectPolicy, CliError> {
    let settings = object_settings()?;
    let policy = of_settings(&settings)?;
    let mut works = plans.iter().flat_map(|plan| plan.steps.iter().map(|step| &step.work));
    match policy.trusted_servers().next().is_some() && works.any(may_call_tools) {
        true => tool_servers::annotated(policy, &settings),
        false => Ok(policy),
    }
}

/// True for a `tool` step, and for an agent that lists a tool of a server.
fn may_call_tools(work: &Work) -> bool {
    match work {
        Work::Loop(Loop { over: Over::Turns(agent), .. }) => agent.tools.iter().any(|tool| tool.contains('.')),
        work => matches!(Call::of(work), Some(Call::Tool(_))),
    }
}

/// True if the settings file has a policy or tool servers.
pub(crate) fn is_configured() -> Result<bool, CliError> {
    let settings = object_settings()?;
    Ok(settings.policy != Value::Null || settings.tool_servers != Value::Null)
}

/// Prints an error for each step whose call the policy denies, and returns false if there is one.
pub(crate) fn is_permitted(
    compiled: &Compiled,
    policy: &EffectPolicy,
    file: &Path,
    context: &Context,
) -> Result<bool, CliError> {
    if policy.denied(&compiled.plan, None).is_empty() {
        return Ok(true);
    }
    let text = read_limited::file(file).map_err(|why| CliError::bad_input("unreadable", why))?;
    let document = read(&text, syntax_of(file)).map_err(|why| CliError::bad_input("unreadable", why.to_string()))?;
    let denied = denied_calls(compiled, &document, policy, None);
    show(&denied, &String::from_utf8_lossy(&text), file);
    if context.global.json {
        print_out!("{}", compact(&envelope::of_diagnostics(&denied)));
    }
    Ok(false)
}

/// Prints a warning for each labeled value that reaches a call for which the label matters, and adds it to the warnings
/// of the definition.
pub(crate) fn warn_of_flows(compiled: &mut Compiled, policy: &EffectPolicy, file: &Path) -> Result<(), CliError> {
    if policy.flows(&compiled.plan, None).is_empty() {
        return Ok(());
    }
    let text = read_limited::file(file).map_err(|why| CliError::bad_input("unreadable", why))?;
    let document = read(&text, syntax_of(file)).map_err(|why| CliError::bad_input("unreadable", why.to_string()))?;
    let found = flow_warnings(compiled, &document, policy, None);
    show(&found, &String::from_utf8_lossy(&text), file);
    compiled.warnings.extend(found);
    Ok(())
}

/// Maximum number of tools that a note lists.
const LISTED_MAX: usize = 8;

/// Prints a note about tools that ask before each call because nothing is known about them.
pub(crate) fn note_unclassified(plan: &Plan, policy: &EffectPolicy) {
    let unclassified = policy.unclassified(plan);
    let Some(first) = unclassified.first() else { return };
    let listed: Vec<String> = unclassified.iter().take(LISTED_MAX).map(|tool| one_line(tool)).collect();
    let more = unclassified.len().saturating_sub(LISTED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    print_err!(
        "{} a person is asked before each call of {}{more}: no rule says what it does",
        waits("note:"),
        listed.join(", ")
    );
    let classes = EffectClass::ALL.map(EffectClass::name).join(", ");
    print_err!(
        " = classify it with `policy: {{classes: {{\"{}\": CLASS}}}}` in the settings (one of {classes}), or name its server in \
         `policy.trusted` to believe annotations such as readOnlyHint (`mainspring explain settings`)",
        one_line(first)
    );
}

/// The judgments of a plan's calls, for people and programs: `{step, class, source, verdict}`, with the origins of labels
/// of its input as `labels`.
pub(crate) fn judgments(plan: &Plan, policy: &EffectPolicy) -> Vec<Value> {
    let flows = policy.labels(plan);
    let guards = policy.guards(plan, None);
    let steps = 0..plan.steps.len() as u32;
    let judged = steps.filter_map(|step| {
        let judged = policy.judge_step(plan, step, None)?;
        let verdict = guards.get(&step).map_or(judged.verdict, |guard| guard.verdict());
        let labels = flows.of_input(step);
        let labels = Label::ALL.into_iter().filter_map(|label| {
            let source = labels.get(label)?.words(plan);
            Some((label.name(), Value::from(source)))
        });
        let labels: Vec<_> = labels.collect();
        let call = [
            ("step", plan.id(step).into()),
            ("class", judged.class.name().into()),
            ("source", judged.source.words().into()),
            ("verdict", verdict.name().into()),
        ];
        let labels = (!labels.is_empty()).then(|| ("labels", Value::map(labels)));
        Some(Value::map(call.into_iter().chain(labels)))
    });
    judged.collect()
}
