//! Migrations: checks that an execution can continue with another plan, and finds the counterparts of its blocks.
//!
//! Journals, receipts and decisions name a step by its number. A step that has begun therefore keeps its number, and no
//! other step gets it: a late input always means the step that it was written for. Steps that have not begun may be
//! anywhere behind those that have.

use alloc::{format, string::String, vec::Vec};

use crate::{
    decide_version::MIGRATIONS_SINCE,
    input::Policy,
    instance::{Instance, Scope},
    limits::{MIGRATION_PLAN_BYTES_MAX, MIGRATION_REASONS_MAX, MIGRATIONS_MAX, PARALLEL_DEFAULT},
    plan::{EdgeKind, Loop, Order, Over, PROPOSE_TOOL, Plan, Step, Work},
    secret::{SESSION_TOKEN, references_of},
    state::{Cleanup, State, Status},
};

/// A reason for which an execution stays with its plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The kind of the reason, such as `step_missing`.
    pub code: &'static str,
    /// The name of the step instance, if the reason is about one.
    pub step: Option<String>,
    /// A sentence for people.
    pub message: String,
}

/// Returns the limits that an execution has with another plan. A limit that the start set itself stays.
pub fn policy(state: &State, new: &Plan) -> Policy {
    let Some(start) = &state.start else {
        return Policy { max_steps: 0, max_parallel: 0, timeout_ms: None, max_output_bytes: None };
    };
    let (was, asked, mut policy) = (&state.plan.constraints, &new.constraints, start.policy);
    if policy.max_steps == was.max_steps.unwrap_or_else(|| state.plan.max_steps_default()) {
        policy.max_steps = asked.max_steps.unwrap_or_else(|| new.max_steps_default());
    }
    if policy.max_parallel == was.max_parallel.unwrap_or(PARALLEL_DEFAULT) {
        policy.max_parallel = asked.max_parallel.unwrap_or(PARALLEL_DEFAULT);
    }
    if policy.max_output_bytes == was.max_output_bytes {
        policy.max_output_bytes = asked.max_output_bytes;
    }
    policy
}

/// Checks that an execution can continue with another plan, whose stored form has `byte_count` bytes. It would then end as if
/// it had begun with that plan.
///
/// # Errors
/// Returns the reasons for which it stays with its plan, at least one and at most [`MIGRATION_REASONS_MAX`].
pub fn check(state: &State, new: &Plan, byte_count: usize) -> Result<(), Vec<Reason>> {
    let mut check = Check { state, old: &state.plan, new, reasons: Vec::new() };
    check.execution(byte_count);
    if check.reasons.is_empty() {
        check.declarations();
        check.block(&Scope::root(), 0);
    }
    if check.reasons.is_empty() {
        return Ok(());
    }
    check.reasons.truncate(MIGRATION_REASONS_MAX);
    Err(check.reasons)
}

/// Returns the block of another plan for a running block. `None` if the step around it has no counterpart.
pub(crate) fn counterpart(old: &Plan, new: &Plan, scope: &Scope) -> Option<Scope> {
    let block = match old.block(scope.block).owner {
        None if old.is_finally(scope.block) => new.finally?.block,
        None => 0,
        Some(owner) => {
            let branches = old.step(owner).work.branches();
            let (key, _) = branches.into_iter().find(|(_, block)| *block == scope.block)?;
            let branches = new.steps.get(owner as usize)?.work.branches();
            branches.into_iter().find(|(name, _)| *name == key)?.1
        }
    };
    Some(Scope { block, rounds: scope.rounds.clone() })
}

struct Check<'a> {
    state: &'a State,
    old: &'a Plan,
    new: &'a Plan,
    reasons: Vec<Reason>,
}

impl Check<'_> {
    fn refuse(&mut self, code: &'static str, message: impl Into<String>) {
        self.reasons.push(Reason { code, step: None, message: message.into() });
    }

    fn refuse_step(&mut self, code: &'static str, instance: &Instance, message: impl Into<String>) {
        let step = Some(instance.name(self.old));
        self.reasons.push(Reason { code, step, message: message.into() });
    }

    /// The state of the execution as a whole.
    fn execution(&mut self, byte_count: usize) {
        let (state, end) = (self.state, &self.state.end);
        let is_failing = state.blocks.scopes.values().any(|scope| scope.is_failing)
            || state.blocks.loops.values().any(|rounds| rounds.is_failing);
        let is_ending = end.ending.is_some() || end.is_cancel_requested || end.cleanup != Cleanup::Pending;
        if state.start.is_none() {
            self.refuse("execution_not_started", "the execution has not started");
        } else if is_ending || end.ended_at.is_some() {
            self.refuse("execution_ending", "the execution is ending or has ended");
        } else if is_failing || end.bound_reached.is_some() {
            self.refuse("execution_failing", "a failure in it is being handled, or will end the execution");
        } else if state.decide_version < MIGRATIONS_SINCE {
            self.refuse("older_release", "an older release of Mainspring started the execution");
        } else if state.journal.is_split {
            self.refuse("turn_in_progress", "a long turn of the execution is in progress; try again");
        } else if state.journal.has_erased {
            self.refuse("values_erased", "values of the execution were erased");
        } else if state.journal.migration.as_ref().is_some_and(|last| last.earlier.len() >= MIGRATIONS_MAX) {
            let message = format!("the execution has migrated {MIGRATIONS_MAX} times");
            self.refuse("limit_exceeded", message);
        } else if byte_count > MIGRATION_PLAN_BYTES_MAX {
            let message = format!(
                "the plan has {byte_count} bytes, and executions migrate to plans of up to {MIGRATION_PLAN_BYTES_MAX}"
            );
            self.refuse("plan_too_large", message);
        }
    }

    /// The parts of the plan outside of its steps.
    fn declarations(&mut self) {
        let (old, new) = (self.old, self.new);
        if old.name != new.name {
            self.refuse("workflow_renamed", "the name in the definition has changed");
        }
        if old.input_schema != new.input_schema {
            self.refuse("input_changed", "the schema of the input has changed, and the input was checked at the start");
        }
        if old.variables != new.variables || old.default_context != new.default_context {
            self.refuse(
                "variables_changed",
                "the declared variables or their defaults have changed, and they were filled in at the start",
            );
        }
        let (was, asked) = (&old.constraints, &new.constraints);
        let pinned = |of: &crate::plan::Constraints| (of.timeout_ms, of.max_executions, of.budget);
        if pinned(was) != pinned(asked) {
            self.refuse(
                "limits_changed",
                "the timeout, the budget or the number of child executions has changed, and the execution counts since its start",
            );
        }
        self.rights();
        self.counts();
        let pinned = &self.state.lineage.workflows;
        for name in new.steps.iter().flat_map(|step| step.work.starts()) {
            if !pinned.iter().any(|pinned| pinned.name == name) {
                let message = format!("the execution did not pin the workflow `{name}` at its start");
                self.refuse("workflow_added", message);
            }
        }
    }

    /// Steps that need permissions of the member who started the execution. A start is checked for them, and a migration has
    /// another caller.
    fn rights(&mut self) {
        let has = |plan: &Plan, needs: &dyn Fn(&Work) -> bool| plan.steps.iter().any(|step| needs(&step.work));
        let uses_token = |work: &Work| match work {
            Work::Effect { params, .. } => {
                references_of(params).iter().any(|used| used.reference.name == SESSION_TOKEN)
            }
            _ => false,
        };
        let proposes = |work: &Work| match work {
            Work::Loop(Loop { over: Over::Turns(agent), .. }) => agent.permits(PROPOSE_TOOL),
            _ => false,
        };
        let is_added = |needs: &dyn Fn(&Work) -> bool| has(self.new, needs) && !has(self.old, needs);
        let needs = [
            (is_added(&Work::may_run_scripts), "runs scripts"),
            (is_added(&uses_token), "uses the token of the session"),
            (is_added(&proposes), "has an agent that proposes changes"),
        ];
        for (_, what) in needs.into_iter().filter(|(is_added, _)| *is_added) {
            let message = format!("the new definition {what}, for which the start was not checked");
            self.refuse("rights_added", message);
        }
    }

    /// Numbers of the execution that a new limit would have stopped.
    fn counts(&mut self) {
        let (counts, new) = (&self.state.counts, self.new);
        let reached = |count: u32, limit: Option<u32>| limit.is_some_and(|limit| count >= limit);
        let policy = policy(self.state, new);
        if counts.visits > policy.max_steps || new.constraints.max_calls.is_some_and(|limit| counts.calls > limit) {
            self.refuse("limit_exceeded", "the execution has started more steps or made more calls than the new limit");
        }
        let limits = &new.policy;
        if reached(counts.node_failures, limits.max_node_failures)
            || reached(counts.retries_exhausted, limits.max_retries_exhausted)
        {
            self.refuse(
                "limit_exceeded",
                "as many steps have failed as end the execution by the new limits on failures",
            );
        }
        if self.old.policy.fail_open != limits.fail_open && counts.node_failures > 0 {
            self.refuse("failures_changed", "steps have failed, and `failOpen` has changed");
        }
    }

    /// A running block: the steps in it that have begun have their counterparts, and all others follow them.
    fn block(&mut self, scope: &Scope, block: u32) {
        let (old, new) = (self.old, self.new);
        let (before, after) = (old.block(scope.block), new.block(block));
        if core::mem::discriminant(&before.order) != core::mem::discriminant(&after.order) {
            return self.refuse("order_changed", "the order of steps in a block that runs has changed");
        }
        let begun: Vec<Instance> = before.steps.iter().map(|step| scope.instance(*step)).collect();
        let begun: Vec<Instance> = begun.into_iter().filter(|step| self.state.steps.contains_key(step)).collect();
        let has_begun = |id: &str| begun.iter().any(|step| old.id(step.step) == id);
        let passed = self.passed(after, &begun, &has_begun);
        for instance in &begun {
            let id = old.id(instance.step);
            match after.steps.iter().find(|step| new.id(**step) == id) {
                Some(step) if *step == instance.step => self.step(instance),
                Some(_) if passed => {}
                Some(_) => self.refuse_step(
                    "step_renumbered",
                    instance,
                    "steps were added or removed before it; keep the steps in front of those that have begun, and add new ones behind",
                ),
                None if new.number_of(id).is_some() => {
                    self.refuse_step("step_moved", instance, "it has begun, and is in another block now");
                }
                None => self.refuse_step("step_missing", instance, "it has begun, and is not in the new definition"),
            }
        }
        self.edges(scope, block, &begun);
    }

    /// Refuses steps of a sequence that have not begun and precede one that has. Returns true if there are any.
    fn passed(&mut self, after: &crate::plan::Block, begun: &[Instance], has_begun: &dyn Fn(&str) -> bool) -> bool {
        if after.order != Order::Sequence {
            return false;
        }
        let last = after.steps.iter().rposition(|step| has_begun(self.new.id(*step))).unwrap_or(0);
        let passed = after.steps[..last.min(after.steps.len())].iter().filter(|step| !has_begun(self.new.id(**step)));
        let passed: Vec<u32> = passed.copied().collect();
        for step in &passed {
            let id = self.new.id(*step);
            let message = format!("the step `{id}` has not run, and stands before a step that has begun");
            let step = Some(id.into());
            self.reasons.push(Reason { code: "place_passed", step, message });
        }
        !passed.is_empty() && !begun.is_empty()
    }

    /// In a block with edges: those into steps that have begun are the same, and those out of failed steps that handle the
    /// failure.
    fn edges(&mut self, scope: &Scope, block: u32, begun: &[Instance]) {
        let (Order::Edges(before), Order::Edges(after)) =
            (&self.old.block(scope.block).order, &self.new.block(block).order)
        else {
            return;
        };
        let (old_steps, new_steps) = (&self.old.block(scope.block).steps, &self.new.block(block).steps);
        for instance in begun {
            let places = (old_steps.binary_search(&instance.step), new_steps.binary_search(&instance.step));
            let (Ok(was), Ok(is)) = places else { continue };
            let (was, is) = (was as u32, is as u32);
            let incoming = |graph: &crate::plan::Graph, steps: &[u32], place| -> Vec<_> {
                let edges = graph.incoming(place).iter();
                edges.map(|edge| (steps[edge.from as usize], edge.kind, edge.condition.clone())).collect()
            };
            if incoming(before, old_steps, was) != incoming(after, new_steps, is) {
                self.refuse_step("edges_changed", instance, "it has begun, and the edges into it have changed");
            }
            let handlers = |graph: &crate::plan::Graph, steps: &[u32], place| -> Vec<_> {
                let edges = graph.outgoing(place).filter(|(_, edge)| edge.kind == EdgeKind::OnFailure);
                edges.map(|(to, edge)| (steps[to as usize], edge.condition.clone())).collect()
            };
            let has_failed = self.state.steps.get(instance).is_some_and(|step| step.status == Status::Failed);
            if has_failed && handlers(before, old_steps, was) != handlers(after, new_steps, is) {
                self.refuse_step(
                    "edges_changed",
                    instance,
                    "it has failed, and the edges for its failure have changed",
                );
            }
        }
    }

    /// A step that has begun, and that has the same number and id in both plans.
    fn step(&mut self, instance: &Instance) {
        let (Some(before), Some(after)) = (self.pair(instance.step), self.state.steps.get(instance)) else {
            return self.refuse_step("step_missing", instance, "it has begun, and is not in the new definition");
        };
        let ((old, new), status) = (before, after.status);
        if old.work.kind() != new.work.kind()
            || core::mem::discriminant(&old.work) != core::mem::discriminant(&new.work)
        {
            return self.refuse_step("step_changed", instance, "it has begun, and is of another type now");
        }
        if old.when != new.when || !has_same_condition(&old.work, &new.work) {
            return self.refuse_step("condition_changed", instance, "its condition was decided, and has changed");
        }
        if self.old.conversation_of_message(instance.step) != self.new.conversation_of_message(instance.step)
            || self.old.conversation_of_agent(instance.step) != self.new.conversation_of_agent(instance.step)
        {
            return self.refuse_step("conversation_changed", instance, "it belongs to another conversation now");
        }
        match &old.work {
            _ if status.is_final() => self.ended(instance, status),
            Work::Loop(_) if !self.is_same_inside(instance.step, is_same_step) || !is_same_step(old, new) => {
                self.refuse_step(
                    "loop_changed",
                    instance,
                    "its rounds have begun, and it or the steps in it have changed",
                );
            }
            Work::Loop(_) => {}
            Work::Conditional { .. } | Work::Parallel { .. } => self.inside(instance),
            _ if !is_same_call(old, new) => self.refuse_step(
                "open_step_changed",
                instance,
                "it is open, and its parameters, its retries, its timeout or the rules for its call have changed",
            ),
            _ => {}
        }
    }

    /// A step that has ended.
    fn ended(&mut self, instance: &Instance, status: Status) {
        let Some((old, new)) = self.pair(instance.step) else { return };
        if !is_same_result(old, new) {
            let message = "it has ended, and its output variable, its `bail`, its schema or its function has changed";
            return self.refuse_step("output_changed", instance, message);
        }
        if status == Status::Failed && old.on_error != new.on_error {
            return self.refuse_step("failures_changed", instance, "it has failed, and its `onError` has changed");
        }
        let is_same = |old: &Step, new: &Step| {
            old.work.kind() == new.work.kind()
                && old.when == new.when
                && has_same_condition(&old.work, &new.work)
                && is_same_result(old, new)
        };
        if old.work.is_container() && !self.is_same_inside(instance.step, is_same) {
            self.refuse_step("steps_inside_changed", instance, "it has ended, and it has other steps inside");
        }
    }

    /// The running blocks inside a step that has begun.
    fn inside(&mut self, instance: &Instance) {
        for (_, block) in self.old.step(instance.step).work.branches() {
            let scope = Scope::inside(instance, block);
            if !self.state.blocks.scopes.contains_key(&scope) {
                continue;
            }
            match counterpart(self.old, self.new, &scope) {
                Some(new) => self.block(&scope, new.block),
                None => self.refuse_step("step_changed", instance, "its branch has begun, and is gone"),
            }
        }
    }

    /// True if the steps inside of a step are the same in both plans, and equal by `is_same`.
    fn is_same_inside(&self, step: u32, is_same: impl Fn(&Step, &Step) -> bool) -> bool {
        let mut open = Vec::from([step]);
        while let Some(step) = open.pop() {
            let Some((before, after)) = self.pair(step) else { return false };
            let (was, is) = (before.work.branches(), after.work.branches());
            if was.len() != is.len() {
                return false;
            }
            for ((key, old), (name, new)) in was.into_iter().zip(is) {
                let (old, new) = (self.old.block(old), self.new.block(new));
                let has_same_ids = |step: &u32| self.pair(*step).is_some_and(|(old, new)| old.id == new.id);
                if key != name
                    || old.order != new.order
                    || old.steps != new.steps
                    || !old.steps.iter().all(has_same_ids)
                {
                    return false;
                }
                if !old.steps.iter().all(|step| self.pair(*step).is_some_and(|(old, new)| is_same(old, new))) {
                    return false;
                }
                open.extend(old.steps.iter().copied());
            }
        }
        true
    }

    /// The steps of a number in both plans.
    fn pair(&self, step: u32) -> Option<(&Step, &Step)> {
        Some((self.old.steps.get(step as usize)?, self.new.steps.get(step as usize)?))
    }
}

/// True if the work of a step that chooses a branch chooses it by the same condition.
fn has_same_condition(old: &Work, new: &Work) -> bool {
    match (old, new) {
        (Work::Conditional { condition: was, .. }, Work::Conditional { condition: is, .. }) => was == is,
        _ => true,
    }
}

/// True if what a step that has ended left behind is the same. The rules for its call and its parameters no longer matter.
fn is_same_result(old: &Step, new: &Step) -> bool {
    (&old.output_variable, &old.bail, &old.output_schema, &old.transform)
        == (&new.output_variable, &new.bail, &new.output_schema, &new.transform)
}

/// True if the open call, gate or wait of a step is the same. Its output is handled by the new plan.
fn is_same_call(old: &Step, new: &Step) -> bool {
    is_same_work(&old.work, &new.work)
        && (&old.retry, old.timeout_ms, old.on_interrupted, old.key_per_attempt, old.guard)
            == (&new.retry, new.timeout_ms, new.on_interrupted, new.key_per_attempt, new.guard)
}

/// True if all of a step is the same, except for the steps inside.
fn is_same_step(old: &Step, new: &Step) -> bool {
    is_same_call(old, new)
        && is_same_result(old, new)
        && old.when == new.when
        && old.on_error == new.on_error
        && old.priority == new.priority
}

/// True if the work is the same, except for the numbers of its blocks.
fn is_same_work(old: &Work, new: &Work) -> bool {
    match (old, new) {
        (Work::Conditional { otherwise: was, .. }, Work::Conditional { otherwise: is, .. }) => {
            has_same_condition(old, new) && was.is_some() == is.is_some()
        }
        (Work::Parallel { .. }, Work::Parallel { .. }) => true,
        (Work::Loop(was), Work::Loop(is)) => {
            let of = |of: &Loop| (of.concurrency, of.is_each);
            was.over == is.over && of(was) == of(is)
        }
        _ => old == new,
    }
}
