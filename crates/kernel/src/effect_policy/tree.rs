//! Labels across the workflows of a tree of executions: the input of a child has the labels of the step that starts it, and
//! a step that starts a child has an output that is private if that of the child is.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    string::String,
    sync::Arc,
    vec::Vec,
};
use core::fmt;

use super::EffectPolicy;
use crate::{
    flow::{Labels, Source, Surroundings},
    label::Label,
    limits::FLOW_STEPS_MAX,
    plan::{Loop, Over, Plan, Work},
};

/// The labels that the plans of a tree take from each other.
#[derive(Debug, Default)]
pub struct Tree {
    inputs: BTreeMap<String, Labels>,
    private_workflows: BTreeSet<String>,
    follows: usize,
}

/// The labels of a tree were not followed to their end: it has too many steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeTooLarge;

impl fmt::Display for TreeTooLarge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "the workflow and those that it starts have too many steps for the rules of `policy.flows`: their labels were \
             followed through {FLOW_STEPS_MAX} steps; start fewer workflows from one tree, or make them smaller"
        )
    }
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

    /// Returns how often a plan was followed.
    pub fn follows(&self) -> usize {
        self.follows
    }
}

impl EffectPolicy {
    /// Follows the labels through a plan and the workflows that it starts, directly and through others. Without rules for
    /// labels there are none: warnings concern one definition.
    ///
    /// Each plan is followed once, and again only if its input gained a label or a workflow that it starts became
    /// private.
    ///
    /// # Errors
    /// Fails if this takes more than [`FLOW_STEPS_MAX`] steps.
    pub fn surroundings(&self, root: &Plan, workflows: &BTreeMap<String, Arc<Plan>>) -> Result<Tree, TreeTooLarge> {
        self.surroundings_within(root, workflows, FLOW_STEPS_MAX)
    }

    fn surroundings_within(
        &self,
        root: &Plan,
        workflows: &BTreeMap<String, Arc<Plan>>,
        steps_max: usize,
    ) -> Result<Tree, TreeTooLarge> {
        let mut tree = Tree::default();
        if !self.has_flow_rules() {
            return Ok(tree);
        }
        let plans = children_first(root, workflows);
        let numbers: BTreeMap<&str, usize> =
            plans.iter().enumerate().filter_map(|(number, (name, _))| Some(((*name)?, number))).collect();
        let mut starters: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        for (number, (_, plan)) in plans.iter().enumerate() {
            let names = plan.steps.iter().flat_map(|step| step.work.starts());
            names.for_each(|name| _ = starters.entry(name).or_default().insert(number));
        }
        // At first parents come before their children, whose input is then known. Later children come first, so that a
        // plan waits for all of its children.
        let mut first = plans.len();
        let (mut pending, mut steps) =
            (BTreeSet::<usize>::new(), plans.iter().map(|(_, plan)| plan.steps.len()).sum::<usize>());
        loop {
            if steps > steps_max {
                return Err(TreeTooLarge);
            }
            let next = match first.checked_sub(1) {
                Some(next) => {
                    first = next;
                    next
                }
                None => {
                    let Some(next) = pending.pop_first() else { return Ok(tree) };
                    steps += plans[next].1.steps.len();
                    next
                }
            };
            let (name, plan) = plans[next];
            tree.follows += 1;
            let around = name.map_or_else(|| tree.of_root(), |name| tree.of(name));
            let found = self.follow(plan, &around, &mut tree.inputs);
            let changed = found.inputs.iter().filter_map(|name| numbers.get(*name).copied());
            // Plans below `first` are followed anyway.
            pending.extend(changed.filter(|other| *other >= first));
            if let Some(name) = name.filter(|_| found.is_private)
                && tree.private_workflows.insert(name.into())
            {
                let starting = starters.get(name).into_iter().flatten().copied();
                pending.extend(starting.filter(|other| *other >= first));
            }
        }
    }

    /// Adds the labels that a plan gives to the workflows that it starts.
    fn follow<'p>(&self, plan: &'p Plan, around: &Surroundings, inputs: &mut BTreeMap<String, Labels>) -> Followed<'p> {
        let flows = self.labels_within(plan, around);
        let mut changed = BTreeSet::new();
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
                if inputs.entry(name.into()).or_default().join(&given) {
                    changed.insert(name);
                }
            }
        }
        Followed { inputs: changed, is_private: flows.of_execution().get(Label::Private).is_some() }
    }
}

struct Followed<'p> {
    /// The workflows whose input gained a label.
    inputs: BTreeSet<&'p str>,
    /// True if the output of the plan is private.
    is_private: bool,
}

/// Returns the plans of a tree by name, the root without one, each after the workflows that it starts. In a circle of
/// workflows, one of them comes before a workflow that it starts.
fn children_first<'p>(root: &'p Plan, workflows: &'p BTreeMap<String, Arc<Plan>>) -> Vec<(Option<&'p str>, &'p Plan)> {
    let children = |plan: &'p Plan| plan.steps.iter().flat_map(|step| step.work.starts()).collect::<Vec<_>>();
    let (mut ordered, mut seen) = (Vec::new(), BTreeSet::new());
    let mut open = alloc::vec![(None, root, children(root))];
    while let Some((name, plan, names)) = open.last_mut() {
        let Some(next) = names.pop() else {
            ordered.push((*name, *plan));
            open.pop();
            continue;
        };
        if let Some((next, plan)) = workflows.get_key_value(next)
            && seen.insert(next.as_str())
        {
            open.push((Some(next.as_str()), plan, children(plan)));
        }
    }
    ordered
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;
    use crate::definition::{Syntax, compile, read};

    /// The steps of the first round and of the second count against one bound.
    #[test]
    fn a_tree_with_too_many_steps_is_refused() {
        let document = |text: &str| read(text.as_bytes(), Syntax::Yaml).expect("it reads");
        let plan = |text: &str| compile(&document(text)).expect("it compiles").plan;
        let private = "{id: r, type: return, input: '@vars.v'}";
        let child = format!("variables: {{v: {{private: true}}}}\nsteps: [{private}]");
        let workflows = BTreeMap::from([("child".into(), Arc::new(plan(&child)))]);
        let root = plan("steps: [{id: go, type: subworkflow, workflow: child}]");
        let policy = EffectPolicy::read(&document("{flows: {untrusted: {execute: deny}}}").value).expect("a policy");
        // The child is private, so its parent is followed again.
        let follows = |most| policy.surroundings_within(&root, &workflows, most).map(|tree| tree.follows());
        assert_eq!([follows(1), follows(2), follows(3)], [Err(TreeTooLarge), Err(TreeTooLarge), Ok(3)]);
    }
}
