//! An independent model of the rules for failures: the blocks in which no step may start.
//!
//! An unhandled failure halts its block. If that fails the step around the block, the next outer block is halted too. A
//! halted loop is halted in all its rounds. Steps of the outermost block of a graph that start later are cleanup steps
//! and are not halted. The model follows the rules of the language, not the code of the kernel.

use std::collections::BTreeSet;

use mainspring_kernel::{
    instance::{Instance, Scope},
    plan::{EdgeKind, OnError, Order, Plan, Work},
    record::{FailureDisposition, Record},
};

/// The blocks and loops that are halted so far.
#[derive(Debug, Default)]
pub(crate) struct Halted {
    blocks: BTreeSet<Scope>,
    loops: BTreeSet<Instance>,
    cleaning: BTreeSet<Instance>,
}

impl Halted {
    /// Updates the model with a record.
    pub(crate) fn follow(&mut self, plan: &Plan, record: &Record) {
        match record {
            Record::FailureBoundReached { .. } => drop(self.blocks.insert(Scope::root())),
            Record::StepFailed { instance, disposition: FailureDisposition::Failed, .. } => self.failed(plan, instance),
            Record::StepStarted { instance, .. } if self.all() && plan.step(instance.step).block == 0 => {
                self.cleaning.insert(instance.clone());
            }
            _ => {}
        }
    }

    /// True if the execution is failing.
    pub(crate) fn all(&self) -> bool {
        self.blocks.contains(&Scope::root())
    }

    fn failed(&mut self, plan: &Plan, instance: &Instance) {
        let mut scope = instance.scope(plan);
        self.blocks.insert(scope.clone());
        while let Some(owner) = scope.owner(plan) {
            if matches!(plan.step(owner.step).work, Work::Loop(_)) {
                self.loops.insert(owner.clone());
            }
            let lets_through = plan.step(owner.step).on_error == OnError::Continue || plan.policy.fail_open;
            if lets_through || edges_from(plan, owner.step).any(|kind| kind == EdgeKind::OnFailure) {
                return;
            }
            scope = owner.scope(plan);
            if plan.is_finally(scope.block) {
                return;
            }
            self.blocks.insert(scope.clone());
        }
    }

    /// True if nothing may start or wait at the position of an instance.
    pub(crate) fn holds(&self, plan: &Plan, instance: &Instance) -> bool {
        let mut instance = instance.clone();
        loop {
            let scope = instance.scope(plan);
            if self.blocks.contains(&scope) && !self.cleaning.contains(&instance) {
                return true;
            }
            let Some(owner) = scope.owner(plan) else { return false };
            if self.loops.contains(&owner) {
                return true;
            }
            instance = owner;
        }
    }

    /// True if a step of the outermost block may start in a failing execution: behind an `on_failure` or `always` edge,
    /// or behind another cleanup step.
    pub(crate) fn may_clean(&self, plan: &Plan, step: u32) -> bool {
        let Order::Edges(graph) = &plan.block(0).order else { return false };
        let steps = &plan.block(0).steps;
        let Ok(place) = steps.binary_search(&step) else { return false };
        graph.incoming(place as u32).iter().any(|edge| {
            let source = Instance::of_step(steps[edge.from as usize]);
            matches!(edge.kind, EdgeKind::OnFailure | EdgeKind::Always) || self.cleaning.contains(&source)
        })
    }
}

/// Returns the kinds of the edges out of a step.
fn edges_from(plan: &Plan, step: u32) -> impl Iterator<Item = EdgeKind> + '_ {
    let block = plan.block(plan.step(step).block);
    let place = block.steps.binary_search(&step).unwrap_or_default() as u32;
    let graph = match &block.order {
        Order::Edges(graph) => Some(graph),
        Order::Sequence | Order::Parallel => None,
    };
    graph.into_iter().flat_map(move |graph| graph.outgoing(place).map(|(_, edge)| edge.kind))
}
