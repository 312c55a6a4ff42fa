//! Labels across the workflows of a tree of executions: the input of a child has the labels of the step that starts it, and
//! a step that starts a child has an output that is private if that of the child is.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    string::String,
    sync::Arc,
};

use super::EffectPolicy;
use crate::{
    flow::{Labels, Source, Surroundings},
    label::Label,
    plan::{Loop, Over, Plan, Work},
};

/// The labels that the plans of a tree take from each other.
#[derive(Debug, Default)]
pub struct Tree {
    inputs: BTreeMap<String, Labels>,
    private_workflows: BTreeSet<String>,
}

impl Tree {
    /// Returns the surroundings of the plan that begins first. People and triggers give its input.
    pub fn of_root(&self) -> Surroundings {
        Surroundings { input: Labels::default(), private_workflows: self.private_workflows.clone() }
    }

    /// Returns the surroundings of a workflow that another one starts.
    pub fn of(&self, name: &str) -> Surroundings {
        Surroundings { input: self.inputs.get(name).cloned().unwrap_or_default(), ..self.of_root() }
    }
}

impl EffectPolicy {
    /// Follows the labels through a plan and the workflows that it starts, directly and through others. Without rules for
    /// labels there are none: warnings concern one definition.
    pub fn surroundings(&self, root: &Plan, workflows: &BTreeMap<String, Arc<Plan>>) -> Tree {
        let mut tree = Tree::default();
        if !self.has_flow_rules() {
            return tree;
        }
        // Each round adds a label to a workflow, or is the last one. Labels mostly go one way, so there are few rounds.
        loop {
            let mut is_more = self.follow(root, &tree.of_root(), &mut tree.inputs).is_more;
            for (name, plan) in workflows {
                let found = self.follow(plan, &tree.of(name), &mut tree.inputs);
                is_more |= found.is_more;
                is_more |= found.is_private && tree.private_workflows.insert(name.clone());
            }
            if !is_more {
                return tree;
            }
        }
    }

    /// Adds the labels that a plan gives to the workflows that it starts.
    fn follow(&self, plan: &Plan, around: &Surroundings, inputs: &mut BTreeMap<String, Labels>) -> Followed {
        let flows = self.labels_within(plan, around);
        let mut is_more = false;
        for step in 0..plan.steps.len() as u32 {
            let work = &plan.step(step).work;
            let names = work.starts();
            if names.is_empty() {
                continue;
            }
            let given = flows.of_input(step);
            // A model writes the input of the workflows that it calls.
            let is_agent = matches!(work, Work::Loop(Loop { over: Over::Turns(_), .. }));
            let is_untrusted = is_agent || given.get(Label::Untrusted).is_some();
            let is_private = given.get(Label::Private).is_some();
            let source = |has: bool| has.then_some(Source::Caller);
            let given = Labels { untrusted: source(is_untrusted), private: source(is_private) };
            for name in names {
                is_more |= inputs.entry(name.into()).or_default().join(&given);
            }
        }
        Followed { is_more, is_private: flows.of_execution().get(Label::Private).is_some() }
    }
}

struct Followed {
    is_more: bool,
    /// True if the output of the plan is private.
    is_private: bool,
}
