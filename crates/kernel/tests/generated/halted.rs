//! Where nothing may begin any more, as the rules have it and not as the kernel does: a failure that nobody takes up
//! halts its block, what that block fails halts the next one outwards, and a loop is halted in all its rounds. In the
//! outermost block of a graph, what begins after that is there to clean up, and is not halted itself.

use std::collections::BTreeSet;

use mainspring_kernel::{
    instance::{Instance, Scope},
    plan::{EdgeKind, OnError, Order, Plan, Work},
    record::{FailureFate, Record},
};

/// What is halted so far.
#[derive(Debug, Default)]
pub(crate) struct Halted {
    blocks: BTreeSet<Scope>,
    loops: BTreeSet<Instance>,
    cleaning: BTreeSet<Instance>,
}

impl Halted {
    /// Takes in what has happened.
    pub(crate) fn follow(&mut self, plan: &Plan, record: &Record) {
        match record {
            Record::FailureBoundReached { .. } => drop(self.blocks.insert(Scope::root())),
            Record::StepFailed { instance, fate: FailureFate::Fails, .. } => self.failed(plan, instance),
            Record::StepStarted { instance, .. } if self.all() && plan.step(instance.step).block == 0 => {
                self.cleaning.insert(instance.clone());
            }
            _ => {}
        }
    }

    /// Whether the execution is going to fail.
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
            self.blocks.insert(scope.clone());
        }
    }

    /// Whether an instance stands where nothing may begin and nothing is waited for.
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

    /// Whether a step of the outermost block may begin in an execution that is going to fail: behind a failure edge or an
    /// edge that is always taken, or behind something that cleans up already.
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

/// The kinds of the edges out of a step.
fn edges_from(plan: &Plan, step: u32) -> impl Iterator<Item = EdgeKind> + '_ {
    let block = plan.block(plan.step(step).block);
    let place = block.steps.binary_search(&step).unwrap_or_default() as u32;
    let graph = match &block.order {
        Order::Edges(graph) => Some(graph),
        Order::Sequence | Order::Parallel => None,
    };
    graph.into_iter().flat_map(move |graph| graph.outgoing(place).map(|(_, edge)| edge.kind))
}
