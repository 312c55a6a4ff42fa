//! The policy of effects: the calls of a plan that run, that wait for a person, and that fail.
//!
//! A call has a side-effect class. Rules of three levels give a verdict for a class or for a name: those of the
//! installation, of the organization, and of the workflow. The verdict of a call is the strictest one of all rules that
//! match, so a lower level can only tighten. The default applies where the installation has no rule.

use alloc::{
    borrow::ToOwned,
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    sync::Arc,
    vec::Vec,
};

mod agents;
mod flows;
mod levels;
mod runners;
mod tree;

use crate::{
    budget::ModelTerms,
    flow::Surroundings,
    limits::{APPROVAL_COUNT_MAX, EFFECT_RULES_MAX},
    plan::{
        ClassSource, EffectClass, Guard, Loop, Over, PERMISSIONS, PROPOSE_TOOL, Pattern, Plan, RUNNER_EFFECT,
        RuleError, RuleReader, Verdict, VerdictRules, Work,
    },
    template::Template,
    value::Value,
};

use agents::{Listed, ToolGuards, strictest};
pub use flows::Flow;
use flows::FlowRules;
pub use tree::{Tree, TreeTooLarge};

/// The keys of `policy` in a settings file.
const KEYS: [&str; 6] = ["classes", "trusted", "verdicts", "organizations", "flows", "raises"];

/// The policy of an installation. The rules of a workflow are part of its plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EffectPolicy {
    /// Classes of tools by name.
    classes: BTreeMap<Pattern, EffectClass>,
    /// The tool servers whose annotations are believed.
    trusted: BTreeSet<String>,
    installation: VerdictRules,
    organizations: BTreeMap<String, VerdictRules>,
    /// The rules for labeled values.
    flows: FlowRules,
    /// The configured tool servers.
    servers: BTreeSet<String>,
    /// The classes that trusted servers give their tools, by full name.
    annotated: BTreeMap<String, EffectClass>,
    /// The configured models and their prices, which plans with agents pin.
    models: Option<ModelTerms>,
    /// True if the calls of agents need leases of the budgets for a day or a month.
    needs_leases: bool,
    /// The number of people who approve a raise of a budget, if a rule sets it.
    raise_approvals: Option<u32>,
}

/// The decision about one call, and its reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judgment {
    /// The class of the call.
    pub class: EffectClass,
    /// The origin of the class.
    pub source: ClassSource,
    /// The decision.
    pub verdict: Verdict,
}

impl Judgment {
    /// Returns the stricter one of two judgments.
    fn stricter(self, other: Self) -> Self {
        if (other.verdict, other.class) > (self.verdict, self.class) { other } else { self }
    }
}

/// The judgments of the tools of one plan, by the name in `tool` steps and by the entry in the lists of agents.
#[derive(Default)]
struct Known<'p> {
    tools: BTreeMap<&'p str, Judgment>,
    listed: BTreeMap<&'p str, Vec<Listed>>,
}

/// A call that a policy judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call<'a> {
    /// A tool, by the name in the step: `SERVER.TOOL`, or a name that one server has.
    Tool(&'a str),
    /// Another effect, by its step type, with the class that its parameters imply.
    BuiltIn(&'a str, EffectClass),
}

impl<'a> Call<'a> {
    /// Returns the call of a step. `None` if the step makes none.
    pub fn of(work: &'a Work) -> Option<Self> {
        let Work::Effect { effect, params } = work else { return None };
        let text = |key: &str| match params {
            Template::Literal(value) => value.get(key).and_then(Value::as_text),
            Template::Map(fields) => fields.iter().find(|(name, _)| name == key).and_then(|(_, field)| match field {
                Template::Literal(value) => value.as_text(),
                _ => None,
            }),
            _ => None,
        };
        Some(match effect.as_str() {
            "tool" => Self::Tool(text("tool").unwrap_or_default()),
            "bash" => Self::BuiltIn(effect, EffectClass::Execute),
            "http" => Self::BuiltIn(effect, of_method(text("method"))),
            PROPOSE_TOOL => Self::BuiltIn(effect, EffectClass::Write),
            // It runs what its goal asks for, also without a permission request.
            RUNNER_EFFECT => Self::BuiltIn("agent", EffectClass::Execute),
            _ => Self::BuiltIn(effect, EffectClass::Model),
        })
    }
}

/// Returns the class of a request (RFC 9110, 9.2.1: safe methods). An unknown method may delete.
fn of_method(method: Option<&str>) -> EffectClass {
    match method {
        Some("GET" | "HEAD" | "OPTIONS") => EffectClass::Read,
        Some("POST" | "PUT" | "PATCH") => EffectClass::Write,
        _ => EffectClass::Destructive,
    }
}

impl EffectPolicy {
    /// Reads the value of `policy` in a settings file. Null is the default policy. All errors are returned.
    pub fn read(value: &Value) -> Result<Self, Vec<RuleError>> {
        let mut reader = RuleReader::default();
        let mut policy = Self::default();
        for (key, value) in reader.map("policy", value) {
            match key.as_str() {
                "classes" => policy.classes = classes(&mut reader, value),
                "trusted" => policy.trusted = trusted(&mut reader, value),
                "verdicts" => policy.installation = reader.verdicts("policy.verdicts", value),
                "flows" => policy.flows = FlowRules::read(&mut reader, value),
                "organizations" => policy.organizations = organizations(&mut reader, value),
                "raises" => policy.raise_approvals = raises(&mut reader, value),
                _ => {
                    let help = format!("the keys are {}", KEYS.join(", "));
                    reader.refuse(format!("policy.{key}"), "this key is not known", help);
                }
            }
        }
        reader.finish(policy)
    }
}

impl EffectPolicy {
    /// Takes the names of the configured tool servers.
    pub fn with_servers(mut self, servers: impl IntoIterator<Item = String>) -> Self {
        self.servers = servers.into_iter().collect();
        self
    }

    /// Takes the classes that servers give their tools by annotations. Those of servers that are not trusted are
    /// ignored.
    pub fn with_annotations(mut self, tools: impl IntoIterator<Item = (String, String, EffectClass)>) -> Self {
        let trusted = tools.into_iter().filter(|(server, _, _)| self.trusted.contains(server));
        self.annotated = trusted.map(|(server, tool, class)| (format!("{server}.{tool}"), class)).collect();
        self
    }

    /// Takes the configured models and their prices.
    pub fn with_models(mut self, models: ModelTerms) -> Self {
        self.models = Some(models);
        self
    }

    /// Lets the calls of agents lease from the budgets for a day or a month.
    pub fn with_leases(mut self) -> Self {
        self.needs_leases = true;
        self
    }

    /// Returns the terms of models that a plan pins, if it has agents.
    fn terms_for(&self, plan: &Plan) -> Option<ModelTerms> {
        let Self { models, needs_leases, raise_approvals, .. } = self;
        let is_set = models.is_some() || *needs_leases || raise_approvals.is_some();
        let own = || models.clone().unwrap_or_default();
        let terms = || ModelTerms { needs_leases: *needs_leases, raise_approvals: *raise_approvals, ..own() };
        (is_set && plan.has_agents()).then(terms)
    }

    /// Returns the tools of a plan before whose calls a person is asked because no rule classifies them. Empty without
    /// tool servers, whose classes are then known elsewhere.
    pub fn unclassified<'p>(&self, plan: &'p Plan) -> BTreeSet<&'p str> {
        let names = (0..plan.steps.len() as u32).flat_map(|step| match &plan.step(step).work {
            Work::Loop(Loop { over: Over::Turns(agent), .. }) => {
                agent.tools.iter().map(String::as_str).filter(|tool| tool.contains('.')).collect()
            }
            // The tool of a call inside of an agent is in the list of the agent.
            work if plan.agent_part(step).is_none() => match Call::of(work) {
                Some(Call::Tool(name)) => Vec::from([name]),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        });
        let is_assumed = |name: &&str| {
            let judged = self.judge(Call::Tool(name), None, &plan.effect_rules);
            judged.source == ClassSource::Assumed && judged.verdict == Verdict::Ask
        };
        let names: BTreeSet<&str> = names.filter(|_| !self.servers.is_empty()).collect();
        names.into_iter().filter(is_assumed).collect()
    }

    /// The servers whose annotations are believed.
    pub fn trusted_servers(&self) -> impl Iterator<Item = &str> {
        self.trusted.iter().map(String::as_str)
    }

    /// Judges a call of an organization's workflow; the command line has no organization.
    pub fn judge(&self, call: Call<'_>, organization: Option<&str>, workflow: &VerdictRules) -> Judgment {
        match call {
            Call::Tool(name) => {
                let mut names = self.full_names(name);
                // Another node may have the server that the name begins with, and the rules name it.
                if !names.iter().any(|full| full == name) && self.names(name, organization, workflow) {
                    names.push(name.to_owned());
                }
                let judged = names.iter().map(|name| self.judge_tool(name, organization, workflow));
                // A short name may mean a tool of any server, so the strictest judgment applies.
                judged.max_by_key(|judged| (judged.verdict, judged.class)).unwrap_or(Judgment {
                    class: EffectClass::Destructive,
                    source: ClassSource::Assumed,
                    verdict: Verdict::Deny,
                })
            }
            Call::BuiltIn(name, class) => {
                let verdict = self.verdict(name, class, ClassSource::StepType, organization, workflow);
                Judgment { class, source: ClassSource::StepType, verdict }
            }
        }
    }

    /// Returns the tools that a name in a step can mean, as the executor of `tool` steps finds them.
    fn full_names(&self, name: &str) -> Vec<String> {
        match name.split_once('.') {
            Some((server, _)) if self.servers.contains(server) => Vec::from([name.to_owned()]),
            _ if self.servers.is_empty() => Vec::from([name.to_owned()]),
            _ => self.servers.iter().map(|server| format!("{server}.{name}")).collect(),
        }
    }

    /// True if a rule for names is about this one.
    fn names(&self, name: &str, organization: Option<&str>, workflow: &VerdictRules) -> bool {
        let of_organization = organization.and_then(|organization| self.organizations.get(organization));
        let levels = [Some(&self.installation), of_organization, Some(workflow)].into_iter().flatten();
        let verdicts = levels.flat_map(VerdictRules::patterns).map(|(pattern, _)| pattern);
        self.classes.keys().chain(verdicts).any(|pattern| pattern.matches(name))
    }

    fn judge_tool(&self, name: &str, organization: Option<&str>, workflow: &VerdictRules) -> Judgment {
        let rules = self.classes.iter().filter(|(pattern, _)| pattern.matches(name));
        // The most specific rule decides, and of two the more careful one.
        let by_rule = rules.max_by_key(|(pattern, class)| (pattern.literal_length(), **class)).map(|(_, class)| *class);
        let by_annotations = || self.annotated.get(name).copied();
        let (class, source) = match by_rule {
            Some(class) => (class, ClassSource::Rule),
            None => match by_annotations() {
                Some(class) => (class, ClassSource::Annotations),
                None => (EffectClass::Destructive, ClassSource::Assumed),
            },
        };
        Judgment { class, source, verdict: self.verdict(name, class, source, organization, workflow) }
    }

    fn verdict(
        &self,
        name: &str,
        class: EffectClass,
        source: ClassSource,
        organization: Option<&str>,
        workflow: &VerdictRules,
    ) -> Verdict {
        let usual = match source {
            // Steps of these types ran before there was a policy, and continue to.
            ClassSource::StepType => Verdict::Allow,
            ClassSource::Assumed => Verdict::Ask,
            ClassSource::Rule | ClassSource::Annotations => class.verdict_default(),
        };
        let of_installation = self.installation.verdict(name, class, source).unwrap_or(usual);
        let of_organization = organization.and_then(|organization| self.organizations.get(organization));
        let lower = [of_organization, Some(workflow)].into_iter().flatten();
        lower.filter_map(|rules| rules.verdict(name, class, source)).fold(of_installation, Verdict::max)
    }

    /// Judges a step of a plan. `None` if the step makes no call, or calls a tool where neither a tool server nor a rule
    /// is configured.
    pub fn judge_step(&self, plan: &Plan, step: u32, organization: Option<&str>) -> Option<Judgment> {
        self.judge_once(plan, step, organization, &mut Known::default())
    }

    /// Judges a step. Each tool of the plan is compared with the rules once.
    fn judge_once<'p>(
        &self,
        plan: &'p Plan,
        step: u32,
        organization: Option<&str>,
        known: &mut Known<'p>,
    ) -> Option<Judgment> {
        let workflow = &plan.effect_rules;
        if let Some((_, agent)) = plan.agent_of_call(step) {
            return self.judge_agent(agent, organization, workflow, known);
        }
        match Call::of(&plan.step(step).work)? {
            Call::Tool(_) if !self.judges_tools(workflow) => None,
            Call::Tool(name) => {
                let judge = || self.judge(Call::Tool(name), organization, workflow);
                Some(*known.tools.entry(name).or_insert_with(judge))
            }
            call => Some(self.judge(call, organization, workflow)),
        }
    }

    /// True if there is a tool server or a rule. Another node may have tool servers that are not configured here, and the
    /// rules apply to their tools as well.
    fn judges_tools(&self, workflow: &VerdictRules) -> bool {
        let has_rules = !self.classes.is_empty()
            || !self.installation.is_empty()
            || !self.organizations.is_empty()
            || self.has_flow_rules();
        !self.servers.is_empty() || has_rules || !workflow.is_empty()
    }

    /// Returns the guards of a plan's steps, by number. A call that is allowed needs none.
    pub fn guards(&self, plan: &Plan, organization: Option<&str>) -> BTreeMap<u32, Guard> {
        self.guards_within(plan, organization, &Surroundings::default())
    }

    fn guards_within(&self, plan: &Plan, organization: Option<&str>, around: &Surroundings) -> BTreeMap<u32, Guard> {
        let steps = 0..plan.steps.len() as u32;
        let mut known = Known::default();
        let guarded = steps.filter_map(|step| {
            let Judgment { class, source, verdict } = self.judge_once(plan, step, organization, &mut known)?;
            let is_assumed = source == ClassSource::Assumed;
            let is_denied = verdict == Verdict::Deny;
            (verdict != Verdict::Allow).then_some((step, Guard { class, is_assumed, is_denied, label: None }))
        });
        let mut guards: BTreeMap<u32, Guard> = guarded.collect();
        if !self.has_flow_rules() {
            return guards;
        }
        // The flows into the calls of an agent are judged by the tool.
        let of_agents = |(call, (_, tools)): (u32, (u32, ToolGuards))| Some((call, strictest(tools.into_values())?));
        guards.extend(self.tool_guards(plan, organization, around).into_iter().filter_map(of_agents));
        for flow in self.flows_within(plan, organization, around) {
            let (class, label) = (flow.class, Some(flow.label));
            let guard =
                guards.entry(flow.step).or_insert(Guard { class, is_assumed: false, is_denied: false, label: None });
            guard.label = guard.label.or(label);
            guard.is_denied |= flow.verdict == Some(Verdict::Deny);
        }
        guards
    }

    /// Returns a plan with the guards of this policy and the terms of models, as an execution pins it.
    pub fn guarded(&self, plan: &Arc<Plan>, organization: Option<&str>) -> Arc<Plan> {
        self.guarded_within(plan, organization, &Surroundings::default())
    }

    /// The same for a plan among those of a [`Tree`].
    pub fn guarded_within(&self, plan: &Arc<Plan>, organization: Option<&str>, around: &Surroundings) -> Arc<Plan> {
        let guards = self.guards_within(plan, organization, around);
        let models = self.terms_for(plan);
        let permissions = self.permissions(plan, organization, around);
        if guards.is_empty() && models.is_none() && permissions.is_empty() {
            return plan.clone();
        }
        let mut plan = Plan::clone(plan);
        plan.models = models;
        for (step, verdicts) in permissions {
            plan.steps[step as usize].work.set_param(PERMISSIONS, verdicts);
        }
        let mut tables = self.tool_guards(&plan, organization, around);
        for (step, guard) in guards {
            plan.steps[step as usize].guard = Some(guard);
            // A table equal to the guard of the step is left out.
            if let Some((agent, tools)) = tables.remove(&step)
                && tools.values().any(|of_tool| *of_tool != Some(guard))
                && let Work::Loop(Loop { over: Over::Turns(agent), .. }) = &mut plan.steps[agent as usize].work
            {
                agent.tool_guards = tools;
            }
        }
        Arc::new(plan)
    }

    /// Returns the steps that the policy certainly denies, as `(step, class)`.
    pub fn denied(&self, plan: &Plan, organization: Option<&str>) -> Vec<(u32, EffectClass)> {
        let guards =
            self.guards(plan, organization).into_iter().filter(|(step, _)| plan.agent_of_call(*step).is_none());
        // The calls of an agent are those of the step that an author has written.
        let written = |step: u32| plan.agent_of_part(step).map_or(step, |(agent, _)| agent);
        let guards = guards.map(|(step, guard)| (written(step), guard));
        // A tool below a `*` may never be called.
        let tables = self.tool_guards(plan, organization, &Surroundings::default()).into_values();
        let of_agents = tables.filter_map(|(step, tools)| {
            let lists = |name: &str| plan.agent_of(step).is_some_and(|agent| agent.lists(name));
            Some((step, strictest(tools.into_iter().filter(|(name, _)| lists(name)).map(|(_, guard)| guard))?))
        });
        let denied = guards.chain(of_agents).filter(|(_, guard)| guard.is_denied);
        denied.map(|(step, guard)| (step, guard.class)).collect()
    }
}

/// Reads `policy.classes`.
fn classes(reader: &mut RuleReader, value: &Value) -> BTreeMap<Pattern, EffectClass> {
    let known = EffectClass::ALL.map(EffectClass::name);
    let mut classes = BTreeMap::new();
    for (key, value) in reader.map("policy.classes", value) {
        let class = reader.word(format!("policy.classes.{key}"), value, EffectClass::parse, &known);
        if let (Some(pattern), Some(class)) = (reader.pattern("policy.classes", key), class) {
            classes.insert(pattern, class);
        }
    }
    classes
}

/// Reads the rules for raises of budgets: `{approvals: 2}`.
fn raises(reader: &mut RuleReader, value: &Value) -> Option<u32> {
    let mut approvals = None;
    for (key, value) in reader.map("policy.raises", value) {
        let path = format!("policy.raises.{key}");
        match key.as_str() {
            "approvals" => {
                let count = value.as_u64().and_then(|count| u32::try_from(count).ok());
                approvals = count.filter(|count| (1..=APPROVAL_COUNT_MAX).contains(count));
                if approvals.is_none() {
                    reader.refuse(
                        path,
                        "this value is not possible",
                        format!("write a number from 1 to {APPROVAL_COUNT_MAX}"),
                    );
                }
            }
            _ => reader.refuse(path, "this key is not known", "the key is approvals"),
        }
    }
    approvals
}

/// Reads `policy.organizations`.
fn organizations(reader: &mut RuleReader, value: &Value) -> BTreeMap<String, VerdictRules> {
    let mut organizations = BTreeMap::new();
    for (name, value) in reader.map("policy.organizations", value) {
        organizations.insert(name.clone(), reader.verdicts(&format!("policy.organizations.{name}"), value));
    }
    organizations
}

/// Reads `policy.trusted`.
fn trusted(reader: &mut RuleReader, value: &Value) -> BTreeSet<String> {
    let Some(items) = value.as_list().filter(|items| items.len() <= EFFECT_RULES_MAX) else {
        let message = "this is not a list of servers, or too long";
        reader.refuse("policy.trusted".into(), message, "write `[NAME]`, names of `mcpServers`");
        return BTreeSet::new();
    };
    let mut trusted = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        match item.as_text() {
            Some(name) => drop(trusted.insert(name.to_owned())),
            None => {
                let message = format!("this is {}, not text", item.kind());
                reader.refuse(
                    format!("policy.trusted[{index}]"),
                    message,
                    "write the name of a server of `mcpServers`",
                );
            }
        }
    }
    trusted
}
