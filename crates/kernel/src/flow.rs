//! Labels of values and their way through a plan. A value is untrusted if it comes from outside, and private if its
//! author declares it. All data flows are references of the plan, so the labels of every step are known before it runs.
//!
//! Conditions are not followed: a step that runs because of an untrusted value does not become untrusted.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    string::{String, ToString},
    vec::Vec,
};

use crate::{
    label::{Label, Trust},
    plan::{AgentPart, Loop, Over, Plan, Work},
    reference::{Part, Reference, Root},
    template::Template,
    value::Value,
};

/// The origin of a label.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A step, by number.
    Step(u32),
    /// A variable that its declaration marks as private.
    Variable(String),
    /// The step of another workflow that starts this one.
    Caller,
}

/// The labels that a plan takes from the workflows around it in a tree of executions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Surroundings {
    /// The labels of its input and its variables.
    pub input: Labels,
    /// The names of workflows whose output is private.
    pub private_workflows: BTreeSet<String>,
}

/// The labels of a value, each with its first origin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels {
    /// Set if the value is untrusted.
    pub untrusted: Option<Source>,
    /// Set if the value is private.
    pub private: Option<Source>,
}

/// The labels of the values in a plan.
#[derive(Debug)]
pub struct Flows<'p> {
    plan: &'p Plan,
    private: BTreeSet<&'p str>,
    /// The steps that write to a conversation, by its name.
    speakers: BTreeMap<&'p str, Vec<u32>>,
    input: Labels,
    outputs: Vec<Labels>,
    /// The labels of what the tools of agents return, by step.
    results: BTreeMap<u32, Labels>,
}

impl Source {
    /// Returns the origin in words.
    pub fn words(&self, plan: &Plan) -> String {
        match self {
            Self::Step(step) => format!("the output of `{}` ({})", plan.id(*step), plan.step(*step).work.kind()),
            Self::Variable(name) => format!("the variable `{name}`"),
            Self::Caller => "the input from the workflow that starts this one".into(),
        }
    }
}

impl Labels {
    /// Returns the origin of a label, if the value has it.
    pub fn get(&self, label: Label) -> Option<&Source> {
        match label {
            Label::Untrusted => self.untrusted.as_ref(),
            Label::Private => self.private.as_ref(),
        }
    }

    /// Adds the labels of another value, and returns true if that adds one. A label keeps its first origin.
    pub(crate) fn join(&mut self, other: &Self) -> bool {
        let mut is_more = false;
        for (own, other) in [(&mut self.untrusted, &other.untrusted), (&mut self.private, &other.private)] {
            if own.is_none() && other.is_some() {
                own.clone_from(other);
                is_more = true;
            }
        }
        is_more
    }

    fn without(mut self, trust: Trust) -> Self {
        self.untrusted = self.untrusted.filter(|_| !trust.trusted);
        self.private = self.private.filter(|_| !trust.public);
        self
    }
}

impl<'p> Flows<'p> {
    /// Follows the labels through a plan. The results of tools of a trusted server are trusted.
    pub fn of(plan: &'p Plan, is_trusted_server: &dyn Fn(&str) -> bool, around: &Surroundings) -> Self {
        let declared = plan.variables.iter().flatten().filter(|variable| variable.is_private);
        let private = declared.map(|variable| variable.name.as_str()).collect();
        let mut flows = Self {
            plan,
            private,
            speakers: plan.speakers(),
            input: around.input.clone(),
            outputs: Vec::new(),
            results: BTreeMap::new(),
        };
        flows.outputs.resize_with(plan.steps.len(), Labels::default);
        let mut readers: Vec<Vec<u32>> = Vec::new();
        readers.resize_with(plan.steps.len(), Vec::new);
        let mut changed = Vec::new();
        for number in 0..plan.steps.len() as u32 {
            let mut own = Labels::default();
            if is_source(&plan.step(number).work, is_trusted_server) {
                own.untrusted = Some(Source::Step(number));
            }
            if plan.step(number).work.starts().iter().any(|name| around.private_workflows.contains(*name)) {
                own.private = Some(Source::Step(number));
            }
            if let Work::Loop(Loop { over: Over::Turns(agent), .. }) = &plan.step(number).work {
                let is_from_outside = |tool: &String| match tool.split_once('.') {
                    Some((server, _)) => !is_trusted_server(server),
                    None => !matches!(tool.as_str(), "ask" | "budget" | "bash"),
                };
                let untrusted = agent.tools.iter().any(is_from_outside).then_some(Source::Step(number));
                flows.results.insert(number, Labels { untrusted, private: own.private.clone() });
            }
            for (holder, reference) in flows.references(number) {
                match flows.resolved(holder, reference).root {
                    Root::Step(from) => readers[from as usize].push(number),
                    _ => drop(own.join(&flows.of_reference(holder, reference))),
                }
            }
            readers[number as usize].extend(plan.parent(number));
            if flows.add(number, own) {
                changed.push(number);
            }
        }
        for speakers in flows.speakers.values() {
            let (agents, messages): (Vec<u32>, Vec<u32>) =
                speakers.iter().partition(|speaker| plan.agent(**speaker).is_some());
            // The response to a message is the text of an agent.
            agents.iter().for_each(|agent| readers[*agent as usize].extend(&messages));
        }
        // Each step gains a label at most twice, so the work is linear in the references.
        while let Some(from) = changed.pop() {
            let labels = flows.outputs[from as usize].clone();
            for reader in &readers[from as usize] {
                if flows.add(*reader, labels.clone()) {
                    changed.push(*reader);
                }
            }
        }
        flows
    }

    /// Returns the labels of a step's output.
    pub fn of_output(&self, step: u32) -> &Labels {
        &self.outputs[step as usize]
    }

    /// Returns the labels of the output of the execution.
    pub fn of_execution(&self) -> Labels {
        let mut labels = Labels::default();
        for number in 0..self.plan.steps.len() as u32 {
            let step = self.plan.step(number);
            let is_output = step.output_variable.is_some()
                || step.bail.is_some()
                || matches!(step.work, Work::Return { .. })
                || self.plan.parent(number).is_none();
            if is_output {
                labels.join(self.of_output(number));
            }
        }
        labels
    }

    /// Returns the labels of the values that reach the work of a step. The calls of an agent get what the agent gets; its model
    /// reads what its tools return as well.
    pub fn of_input(&self, step: u32) -> Labels {
        let agent = self.plan.agent_of_part(step).map(|(agent, _)| agent);
        let mut labels = Labels::default();
        let reader = agent.unwrap_or(step);
        for (holder, reference) in self.references(reader) {
            labels.join(&self.of_reference(holder, reference));
        }
        for other in self.beside(reader).filter(|other| self.plan.agent(*other).is_some()) {
            // The conversation keeps its answers and the results of its tools. `trust` concerns its output alone.
            labels.untrusted.get_or_insert(Source::Step(other));
            if let Some(results) = self.results.get(&other) {
                labels.join(results);
            }
        }
        if let Some(results) = agent.and_then(|agent| self.results.get(&agent)) {
            let is_model = self.plan.agent_part(step) == Some(AgentPart::Model);
            let untrusted = results.untrusted.clone().filter(|_| is_model);
            labels.join(&Labels { untrusted, private: results.private.clone() });
        }
        labels
    }

    /// Returns the other steps that write to the conversation of an agent.
    fn beside(&self, step: u32) -> impl Iterator<Item = u32> {
        let conversation = self.plan.conversation_of_agent(step);
        let speakers = conversation.and_then(|conversation| self.speakers.get(conversation));
        speakers.into_iter().flatten().copied().filter(move |other| *other != step)
    }

    /// Adds labels to the output of a step, less those that its `trust` removes.
    fn add(&mut self, step: u32, labels: Labels) -> bool {
        // The output of an approval is a decision, and that of a wait is a time.
        if matches!(self.plan.step(step).work, Work::Approval(_) | Work::Sleep { .. } | Work::SleepUntil { .. }) {
            return false;
        }
        let trust = self.plan.trust.get(&step).copied().unwrap_or_default();
        self.outputs[step as usize].join(&labels.without(trust))
    }

    /// Returns the references whose values reach the work of a step, each with the step that has it. An agent also
    /// reads the messages of others in its conversation.
    fn references(&self, step: u32) -> Vec<(u32, &'p Reference)> {
        let mut all = Vec::new();
        for holder in core::iter::once(step).chain(self.beside(step)) {
            let mut found = Vec::new();
            match &self.plan.step(holder).work {
                Work::Conditional { .. } | Work::Sleep { .. } | Work::SleepUntil { .. } => {}
                Work::Loop(Loop { over: Over::While { .. } | Over::Until { .. } | Over::Items(_), .. }) => {}
                work => work.references(&mut found),
            }
            all.extend(found.into_iter().map(|reference| (holder, reference)));
        }
        all
    }

    /// Replaces `@item` by the list that the innermost loop runs over.
    fn resolved(&self, step: u32, reference: &'p Reference) -> &'p Reference {
        let (mut step, mut reference) = (step, reference);
        while reference.root == Root::Item {
            let list = self.plan.loops_around(step).find_map(|owner| match &self.plan.step(owner).work {
                Work::Loop(Loop { over: Over::Items(list), .. }) => Some((owner, list)),
                _ => None,
            });
            let Some((owner, list)) = list else { break };
            (step, reference) = (owner, list);
        }
        reference
    }

    fn of_reference(&self, step: u32, reference: &'p Reference) -> Labels {
        let reference = self.resolved(step, reference);
        match reference.root {
            Root::Step(from) => self.outputs[from as usize].clone(),
            Root::Variables => {
                let named = match reference.path.first() {
                    Some(Part::Name(name)) => self.private.get(name.as_str()),
                    _ => self.private.first(),
                };
                let mut labels =
                    Labels { untrusted: None, private: named.map(|name| Source::Variable(name.to_string())) };
                labels.join(&self.input);
                labels
            }
            Root::Input => self.input.clone(),
            _ => Labels::default(),
        }
    }
}

/// True if the output of a step comes from outside. A script returns what its author makes it return, so it has the
/// labels of its inputs alone.
fn is_source(work: &Work, is_trusted_server: &dyn Fn(&str) -> bool) -> bool {
    match work {
        Work::Effect { effect, params } if effect == "tool" => {
            let server = literal(params, "tool").and_then(|tool| tool.split_once('.')).map(|(server, _)| server);
            !server.is_some_and(is_trusted_server)
        }
        Work::Effect { effect, .. } => effect != "bash",
        Work::Loop(Loop { over: Over::Turns(_), .. }) | Work::Signal { .. } | Work::Subworkflow { .. } => true,
        _ => false,
    }
}

/// Returns a literal text parameter.
pub(crate) fn literal<'t>(params: &'t Template, key: &str) -> Option<&'t str> {
    match params {
        Template::Literal(value) => value.get(key).and_then(Value::as_text),
        Template::Map(fields) => fields.iter().find(|(name, _)| name == key).and_then(|(_, field)| match field {
            Template::Literal(value) => value.as_text(),
            _ => None,
        }),
        _ => None,
    }
}
