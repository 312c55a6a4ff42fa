//! The permission requests of external agents. Each kind of tool is judged before the agent starts, so that the verdicts are
//! in the plan of the execution and not in the settings of a later time.
//!
//! The name of a request in rules is `AGENT.KIND`, such as `claude.execute`.

use alloc::{collections::BTreeMap, format};

use super::{EffectPolicy, Judgment};
use crate::{
    flow::{Source, Surroundings},
    label::Label,
    plan::{ClassSource, EffectClass, Plan, ToolKind, Verdict, VerdictRules},
    value::Value,
};

impl EffectPolicy {
    /// Judges a permission request of an agent. The kind is the word of the agent's program, which the settings name.
    pub fn judge_permission(
        &self,
        runner: &str,
        kind: ToolKind,
        organization: Option<&str>,
        workflow: &VerdictRules,
    ) -> Judgment {
        let name = format!("{runner}.{}", kind.name());
        let rules = self.classes.iter().filter(|(pattern, _)| pattern.matches(&name));
        let by_rule = rules.max_by_key(|(pattern, class)| (pattern.literal_length(), **class)).map(|(_, class)| *class);
        let (class, source) = match (by_rule, kind.class()) {
            (Some(class), _) => (class, ClassSource::Rule),
            (None, Some(class)) => (class, ClassSource::Annotations),
            (None, None) => (EffectClass::Destructive, ClassSource::Assumed),
        };
        Judgment { class, source, verdict: self.verdict(&name, class, source, organization, workflow) }
    }

    /// Returns the verdicts for the permission requests of the agents of a plan, by step: `{kind: verdict}`.
    pub(super) fn permissions(
        &self,
        plan: &Plan,
        organization: Option<&str>,
        around: &Surroundings,
    ) -> BTreeMap<u32, Value> {
        if !plan.has_runners() {
            return BTreeMap::new();
        }
        let flows = self.has_flow_rules().then(|| self.labels_within(plan, around));
        let steps = (0..plan.steps.len() as u32).filter_map(|step| Some((step, plan.step(step).work.runner()?)));
        let of_step = |(step, runner): (u32, &str)| {
            let labels = flows.as_ref().map(|flows| {
                let mut labels = flows.of_input(step);
                // The arguments of a call are written by a model.
                labels.untrusted.get_or_insert(Source::Step(step));
                labels
            });
            let verdicts = ToolKind::ALL.map(|kind| {
                let judged = self.judge_permission(runner, kind, organization, &plan.effect_rules);
                let of_label = |label: Label| {
                    labels.as_ref()?.get(label)?;
                    self.flow_verdict(label, judged.class, kind == ToolKind::Fetch).flatten()
                };
                let verdict = Label::ALL.into_iter().filter_map(of_label).fold(judged.verdict, Verdict::max);
                (kind.name(), Value::from(verdict.name()))
            });
            (step, Value::map(verdicts))
        };
        steps.map(of_step).collect()
    }
}
