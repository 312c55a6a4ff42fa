//! The calls of agents. Each call is judged by its own tool, as far as the rules distinguish the tools before the model has
//! made its choice.

use alloc::{
    borrow::ToOwned,
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    vec::Vec,
};

use super::{Call, EffectPolicy, Judgment, Known};
use crate::{
    flow::{Flows, Source, Surroundings},
    label::Label,
    limits::AGENT_TOOL_RULES_MAX,
    plan::{Agent, ClassSource, EffectClass, Guard, PROPOSE_TOOL, Pattern, Plan, Verdict, VerdictRules, WORKFLOW_TOOL},
};

/// The classes that a request can have while its method is not known.
const REQUEST_CLASSES: [EffectClass; 3] = [EffectClass::Read, EffectClass::Write, EffectClass::Destructive];

/// The guards of an agent's calls, by the name of a tool or by an entry of its list. A call of the most exact entry that
/// matches has its guard; `None` is a call that runs.
pub(super) type ToolGuards = BTreeMap<String, Option<Guard>>;

/// Calls of an agent that have the same judgments.
#[derive(Clone)]
pub(super) struct Listed {
    /// A tool, or an entry with `*`, which means all other tools below it.
    name: String,
    /// The judgments that such a call can have.
    judgments: Vec<Judgment>,
}

impl EffectPolicy {
    /// Judges the tool calls of an agent: the strictest judgment of all listed tools, for those who read a plan.
    pub(super) fn judge_agent<'p>(
        &self,
        agent: &'p Agent,
        organization: Option<&str>,
        workflow: &VerdictRules,
        known: &mut Known<'p>,
    ) -> Option<Judgment> {
        let listed = self.listed(agent, organization, workflow, known);
        listed.iter().flat_map(|listed| &listed.judgments).copied().reduce(Judgment::stricter)
    }

    /// Returns the judgments of the tools of an agent. Each entry is compared with the rules once.
    fn listed<'p>(
        &self,
        agent: &'p Agent,
        organization: Option<&str>,
        workflow: &VerdictRules,
        known: &mut Known<'p>,
    ) -> Vec<Listed> {
        let judges_tools = self.judges_tools(workflow);
        // A question and a read of the budget call nothing, and the steps of a workflow are judged by themselves.
        let is_call = |tool: &&String| !matches!(tool.as_str(), "ask" | "budget") && !tool.starts_with(WORKFLOW_TOOL);
        let calls = agent.tools.iter().filter(is_call).filter(|tool| judges_tools || !tool.contains('.'));
        let listed = calls.flat_map(|tool| {
            let judge = || self.judge_listed(tool, organization, workflow);
            known.listed.entry(tool).or_insert_with(judge).clone()
        });
        listed.collect()
    }

    /// Judges an entry of an agent's tools.
    fn judge_listed(&self, tool: &str, organization: Option<&str>, workflow: &VerdictRules) -> Vec<Listed> {
        let built_in = |class| self.judge(Call::BuiltIn(tool, class), organization, workflow);
        let judgments = match (tool, tool.strip_suffix('*')) {
            ("bash", _) => Vec::from([built_in(EffectClass::Execute)]),
            (PROPOSE_TOOL, _) => Vec::from([built_in(EffectClass::Write)]),
            // The model chooses the method, so the request can be of each of these classes.
            ("http", _) => REQUEST_CLASSES.map(built_in).into(),
            (_, Some(prefix)) => return self.judge_server(prefix, organization, workflow),
            _ => Vec::from([self.judge(Call::Tool(tool), organization, workflow)]),
        };
        Vec::from([Listed { name: tool.to_owned(), judgments }])
    }

    /// Judges the tools whose names begin with a prefix: each tool that a rule or a trusted server names by itself, and
    /// all judgments that another one can have.
    fn judge_server(&self, prefix: &str, organization: Option<&str>, workflow: &VerdictRules) -> Vec<Listed> {
        let any = format!("{prefix}*");
        let of_organization = organization.and_then(|organization| self.organizations.get(organization));
        let levels = [Some(&self.installation), of_organization, Some(workflow)].into_iter().flatten();
        let verdicts: Vec<(&Pattern, Verdict)> = levels.flat_map(VerdictRules::patterns).collect();
        let in_rules = self.classes.keys().chain(verdicts.iter().map(|(pattern, _)| *pattern));
        let named = in_rules.filter_map(Pattern::as_name).chain(self.annotated.keys().map(String::as_str));
        let named: BTreeSet<&str> =
            named.filter(|name| name.starts_with(prefix) && name.len() > prefix.len()).collect();
        let is_split = named.len() <= AGENT_TOOL_RULES_MAX;
        let is_other = |pattern: &Pattern| {
            pattern.can_match_prefix(prefix)
                && !(is_split && pattern.as_name().is_some_and(|name| named.contains(name)))
        };
        let unknown = self.judge_tool(&any, organization, workflow);
        let classes = self.classes.iter().filter(|(pattern, _)| is_other(pattern));
        let classes: BTreeSet<EffectClass> = classes.map(|(_, class)| *class).collect();
        let by_class = classes.into_iter().map(|class| {
            let verdict = self.verdict(&any, class, ClassSource::Rule, organization, workflow);
            Judgment { class, source: ClassSource::Rule, verdict }
        });
        let patterns = verdicts.iter().filter(|(pattern, _)| is_other(pattern));
        let by_name = patterns.map(|(_, verdict)| Judgment { verdict: unknown.verdict.max(*verdict), ..unknown });
        let mut judgments: Vec<Judgment> = [unknown].into_iter().chain(by_class).chain(by_name).collect();
        let by_themselves = named.into_iter().map(|name| (name, self.judge(Call::Tool(name), organization, workflow)));
        if !is_split {
            judgments.extend(by_themselves.map(|(_, judged)| judged));
            return Vec::from([Listed { name: any, judgments }]);
        }
        let mut listed: Vec<Listed> = by_themselves
            .map(|(name, judged)| Listed { name: name.to_owned(), judgments: Vec::from([judged]) })
            .collect();
        listed.push(Listed { name: any, judgments });
        listed
    }

    /// Returns the guards of the calls of all agents in a plan, by the step of the call, each with the agent's step.
    pub(super) fn tool_guards(
        &self,
        plan: &Plan,
        organization: Option<&str>,
        around: &Surroundings,
    ) -> BTreeMap<u32, (u32, ToolGuards)> {
        let calls = (0..plan.steps.len() as u32).filter_map(|step| Some((step, plan.agent_of_call(step)?)));
        let mut calls = calls.peekable();
        if calls.peek().is_none() {
            return BTreeMap::new();
        }
        let flows = self.has_flow_rules().then(|| self.labels_within(plan, around));
        let mut known = Known::default();
        let guards = calls.map(|(call, (step, agent))| {
            let mut tools = ToolGuards::new();
            for listed in self.listed(agent, organization, &plan.effect_rules, &mut known) {
                let guard = self.guard_of(&listed, flows.as_ref().map(|flows| (flows, call, step)));
                // An entry of the list and a rule may name the same tool.
                let stored = tools.entry(listed.name).or_insert(guard);
                *stored = strictest([*stored, guard].into_iter());
            }
            let others = agent.tools.iter().filter(|tool| tool.starts_with(WORKFLOW_TOOL));
            tools.extend(others.map(|tool| (tool.clone(), None)));
            (call, (step, tools))
        });
        guards.collect()
    }

    /// Returns the guard of calls with these judgments. The labels are those of the agent's input, and its arguments are
    /// written by a model.
    fn guard_of(&self, listed: &Listed, flows: Option<(&Flows<'_>, u32, u32)>) -> Option<Guard> {
        let strictest = listed.judgments.iter().copied().reduce(Judgment::stricter)?;
        let guard = |judged: Judgment, verdict: Verdict, label| Guard {
            class: judged.class,
            is_assumed: judged.source == ClassSource::Assumed,
            is_denied: verdict == Verdict::Deny,
            label,
        };
        let mut found = (strictest.verdict != Verdict::Allow).then(|| guard(strictest, strictest.verdict, None));
        let Some((flows, call, agent)) = flows else { return found };
        let mut labels = flows.of_input(call);
        labels.untrusted.get_or_insert(Source::Step(agent));
        // The model chooses the host of a request.
        let is_foreign = listed.name == "http";
        let labels = Label::ALL.into_iter().filter(|label| labels.get(*label).is_some());
        for (label, judged) in labels.flat_map(|label| listed.judgments.iter().map(move |judged| (label, *judged))) {
            if let Some(Some(verdict)) = self.flow_verdict(label, judged.class, is_foreign) {
                let found = found.get_or_insert_with(|| guard(judged, verdict, Some(label)));
                found.label = found.label.or(Some(label));
                found.is_denied |= verdict == Verdict::Deny;
            }
        }
        found
    }
}

/// Returns the strictest guard. `None` if all calls run.
pub(super) fn strictest(guards: impl Iterator<Item = Option<Guard>>) -> Option<Guard> {
    guards.flatten().max_by_key(|guard| (guard.is_denied, guard.class, guard.label.is_some()))
}
