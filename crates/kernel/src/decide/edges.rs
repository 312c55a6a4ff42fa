//! Examines blocks with edges (graphs and dataflows): evaluates edges, skips steps that no edge reaches, starts the
//! others.

use core::{cmp::Reverse, ops::Bound};

use super::{Decider, begin::unreadable_condition};
use crate::{
    apply::IllegalTransition,
    decide_version::SECOND_RULES,
    failure::Failure,
    instance::{Instance, Scope},
    plan::{Edge, EdgeKind, Graph, Order, Pull, SourceEnd, Work},
    record::{Record, SkipReason},
    state::{State, Status, StepState, View},
};

/// The decision about a step whose incoming edges are all settled.
enum Verdict {
    Begins,
    Skipped(SkipReason),
    Fails(Failure),
}

impl Decider<'_> {
    /// Examines a block with edges: skips steps that no edge reaches, and starts others while concurrency slots are
    /// free. In a failing block only failure handlers and cleanup steps start.
    pub(super) fn consider_edges(&mut self, scope: &Scope, graph: &Graph) -> Result<(), IllegalTransition> {
        let is_halted = self.is_halted(scope);
        if is_halted && self.cancel_waits(scope)? {
            if self.state.decide_version >= SECOND_RULES {
                // The canceled steps may be in inner blocks, in which case nothing else marks this block for
                // examination.
                self.agenda.dirty.scopes.insert(scope.clone());
            }
            return Ok(());
        }
        let here = &self.state.blocks.scopes[scope];
        let nothing_follows = here.pending.is_empty() || is_halted && !graph.skips();
        if nothing_follows && here.open == 0 {
            return if is_halted { self.close_halted(scope) } else { self.close(scope) };
        }
        if nothing_follows {
            return Ok(());
        }
        if self.judge_fresh(scope, graph, is_halted)? {
            return Ok(());
        }
        self.begin_ready(scope)
    }

    /// Evaluates the steps whose incoming edges were settled since the last examination. Returns true after the first
    /// one that changes the state.
    fn judge_fresh(&mut self, scope: &Scope, graph: &Graph, is_halted: bool) -> Result<bool, IllegalTransition> {
        let plan = self.state.plan.clone();
        let of_scope = (scope.clone(), 0)..=(scope.clone(), u32::MAX);
        while let Some(fresh) = self.agenda.fresh.range(of_scope.clone()).next().cloned() {
            self.agenda.fresh.remove(&fresh);
            let place = fresh.1;
            let instance = scope.instance(plan.block(scope.block).steps[place as usize]);
            if !self.state.blocks.scopes[scope].pending.contains(&place) || self.is_ready(&instance) {
                continue;
            }
            match self.verdict(scope, graph.incoming(place), &instance, is_halted) {
                Verdict::Fails(failure) => self.fail(&instance, failure)?,
                Verdict::Skipped(reason) => self.record(Record::StepSkipped { instance, reason })?,
                Verdict::Begins if self.needs_no_place(&instance) => self.begin(scope, place)?,
                Verdict::Begins => {
                    let rank = (Reverse(plan.step(instance.step).priority), place);
                    self.agenda.cursors.entry(scope.clone()).and_modify(|cursor| *cursor = rank.min(*cursor));
                    continue;
                }
            }
            self.agenda.dirty.scopes.insert(scope.clone());
            return Ok(true);
        }
        Ok(false)
    }

    /// True if the step starts without a concurrency slot: a `return`, which ends the execution, or a step that
    /// finishes at once or waits.
    fn needs_no_place(&self, instance: &Instance) -> bool {
        let work = &self.state.plan.step(instance.step).work;
        let is_known = self.state.decide_version >= SECOND_RULES;
        matches!(work, Work::Return { .. }) || is_known && !work.takes_place()
    }

    /// Starts steps while concurrency slots are free, by descending priority and then in plan order.
    fn begin_ready(&mut self, scope: &Scope) -> Result<(), IllegalTransition> {
        let plan = self.state.plan.clone();
        let steps = &plan.block(scope.block).steps;
        loop {
            let here = &self.state.blocks.scopes[scope];
            // Waiting steps occupy no slot, because an approval can take days.
            let ready = self.ready_in(scope);
            let has_room = (here.open - here.waiting) as usize + ready < self.max_parallel() as usize;
            if !has_room || here.decidable.len() == ready {
                return Ok(());
            }
            let from = self.agenda.cursors.get(scope).map_or(Bound::Unbounded, |cursor| Bound::Included(*cursor));
            let mut places = here.decidable.range((from, Bound::Unbounded));
            let next = places.find(|(_, place)| !self.is_ready(&scope.instance(steps[*place as usize])));
            let Some((rank, place)) = next.copied() else { return Ok(()) };
            debug_assert!(
                self.state.decide_version < SECOND_RULES || !self.is_forbidden(&scope.instance(steps[place as usize])),
                "what no edge leads to was not left out in time"
            );
            self.agenda.cursors.insert(scope.clone(), (rank, place));
            let records = self.agenda.turn.records.len();
            self.begin(scope, place)?;
            if self.agenda.turn.records.len() != records {
                // Starts one step at a time, so that each sees the changes made by the one before.
                self.agenda.dirty.scopes.insert(scope.clone());
                return Ok(());
            }
        }
    }

    /// True if a step instance is ready: it may be dispatched as soon as everything else of the turn is settled.
    pub(super) fn is_ready(&self, instance: &Instance) -> bool {
        self.agenda.ready.contains(&self.rank(instance))
    }

    /// True if a ready step instance must not start any more.
    pub(super) fn is_forbidden(&self, instance: &Instance) -> bool {
        let (plan, scope) = (&self.state.plan, instance.scope(&self.state.plan));
        let Order::Edges(graph) = &plan.block(scope.block).order else { return self.is_halted(&scope) };
        let place = plan.block(scope.block).steps.binary_search(&instance.step).unwrap_or_default() as u32;
        let verdict = self.verdict(&scope, graph.incoming(place), instance, self.is_halted(&scope));
        !matches!(verdict, Verdict::Begins)
    }

    fn verdict(&self, scope: &Scope, edges: &[Edge], instance: &Instance, is_halted: bool) -> Verdict {
        let (plan, view) = (&self.state.plan, View::of_scope(self.state, scope));
        let (mut is_taken, mut is_blocked, mut outlives) = (edges.is_empty(), false, false);
        for edge in edges {
            let from = scope.instance(plan.block(scope.block).steps[edge.from as usize]);
            let Some(source) = self.state.steps.get(&from) else { continue };
            match edge.kind.pull(source_end(source)) {
                Pull::Neutral => {}
                Pull::Blocks => is_blocked = true,
                Pull::Takes => match edge.condition.as_ref().map(|condition| condition.holds(&view)) {
                    Some(Err(unreadable)) => {
                        let key = "condition of the edge to it";
                        return Verdict::Fails(unreadable_condition(plan.id(instance.step), key, &unreadable));
                    }
                    Some(Ok(false)) => {}
                    Some(Ok(true)) | None => {
                        is_taken = true;
                        outlives |= edge.kind.outlives_failure() || source.is_cleanup;
                    }
                },
            }
        }
        match (is_taken && !is_blocked, is_halted && !outlives) {
            (false, _) => Verdict::Skipped(SkipReason::NoEdgeTaken),
            (true, true) => Verdict::Skipped(SkipReason::ExecutionFailing),
            (true, false) => Verdict::Begins,
        }
    }

    /// True if a failure edge will handle the failure of the step instance. The condition of the edge is evaluated
    /// again for its target and must then have the same result, so the view shows the step as failed already.
    pub(super) fn is_handled(&self, instance: &Instance) -> bool {
        let (plan, scope) = (&self.state.plan, instance.scope(&self.state.plan));
        let block = plan.block(scope.block);
        let Order::Edges(graph) = &block.order else { return false };
        let Ok(place) = block.steps.binary_search(&instance.step) else { return false };
        let view = View::of_scope(self.state, &scope).once_failed(instance.step);
        let is_taken = |edge: &Edge| edge.condition.as_ref().is_none_or(|asked| asked.holds(&view) == Ok(true));
        graph.outgoing(place as u32).any(|(_, edge)| edge.kind == EdgeKind::OnFailure && is_taken(edge))
    }

    /// Evaluates a step again that was ready and could not start.
    pub(super) fn judge_again(&mut self, instance: &Instance) {
        let scope = instance.scope(&self.state.plan);
        let block = self.state.plan.block(scope.block);
        if let (Order::Edges(_), Ok(place)) = (&block.order, block.steps.binary_search(&instance.step)) {
            self.agenda.fresh.insert((scope, place as u32));
        }
    }

    /// Marks the successors of an ended step whose incoming edges are all settled. They are evaluated at the next
    /// examination of the block.
    pub(super) fn look_along_edges(&mut self, instance: &Instance) {
        let scope = instance.scope(&self.state.plan);
        let block = self.state.plan.block(scope.block);
        let (Order::Edges(graph), Ok(place)) = (&block.order, block.steps.binary_search(&instance.step)) else {
            return;
        };
        let Some(here) = self.state.blocks.scopes.get(&scope).filter(|_| self.status_of(instance).is_final()) else {
            return;
        };
        let is_settled = |to: &u32| here.unsettled[*to as usize] == 0;
        let settled = graph.outgoing(place as u32).map(|(to, _)| to).filter(is_settled);
        self.agenda.fresh.extend(settled.map(|to| (scope.clone(), to)));
    }

    /// Marks all pending steps of a block whose incoming edges are settled for evaluation.
    pub(super) fn look_at_all_decidable(&mut self, scope: &Scope) {
        let decidable = self.state.blocks.scopes.get(scope).map(|here| &here.decidable);
        self.agenda.fresh.extend(decidable.into_iter().flatten().map(|(_, place)| (scope.clone(), *place)));
    }
}

fn source_end(source: &StepState) -> SourceEnd {
    match source.status {
        Status::Failed if source.tolerated => SourceEnd::Tolerated,
        Status::Failed if source.is_handled => SourceEnd::Handled,
        Status::Failed => SourceEnd::Failed,
        Status::Skipped => SourceEnd::Skipped,
        Status::Completed => SourceEnd::Completed,
        _ => SourceEnd::Cancelled,
    }
}

/// Returns the running blocks with edges.
pub(super) fn scopes_with_edges(state: &State) -> impl Iterator<Item = &Scope> {
    state.blocks.scopes.keys().filter(|scope| matches!(state.plan.block(scope.block).order, Order::Edges(_)))
}
