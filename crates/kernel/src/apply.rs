//! Applies records to the state.
//!
//! `apply` makes no choices: `decide` does, and it changes the state only through here. Live execution and replay
//! therefore run the same code. A record that is not a legal transition is an error, so a damaged journal cannot
//! produce a state.

use alloc::{format, string::String};

use crate::{
    cbor,
    decide_version::BOUNDS_SINCE,
    input::Timer,
    instance::{Instance, Scope},
    plan::{AgentPart, Loop, Over, Work},
    record::{FailureDisposition, Fault, Payload, Record},
    state::{CallState, ChildState, Cleanup, GateState, Signal, Started, State, Status, StepState, StepTimes},
    value::Value,
    value_size,
};

mod blocks;
mod budgets;
mod calls;
mod conversations;
mod migration;
pub(crate) mod size;

/// A record that is not a legal transition from the current state. The cause is a damaged journal or a bug in `decide`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IllegalTransition {
    /// The record, the step and the reason.
    pub message: String,
}

/// The transition table of a step instance. Any pair that is not listed is illegal.
pub fn next_status(status: Status, record: &Record) -> Option<Status> {
    use Status::*;
    Some(match (status, record) {
        (Pending, Record::StepSkipped { .. }) => Skipped,
        (Pending, Record::StepStarted { .. }) => Running,
        // The step failed before it started: a reference or a condition could not be evaluated.
        (Pending, Record::StepFailed { .. }) => Failed,

        (Running, Record::BranchTaken { .. } | Record::ChildWaits { .. }) => Running,
        (Running, Record::ExecutionsGiven { .. } | Record::ExecutionsReturned { .. }) => Running,
        (Running, Record::RoundStarted { .. } | Record::RoundEnded { .. } | Record::StepLogged { .. }) => Running,
        (Running, Record::AnswerRejected { .. } | Record::MessagesRead { .. }) => Running,
        (Running, Record::WaitStarted { .. }) => Waiting,
        // Every attempt may need a lease, and an answer to a request may cover other calls only.
        (Running | Retrying | Waiting | WaitingApproval, Record::LeaseAwaited { .. }) => Waiting,
        // A retry, or a call that was approved, may need a larger budget.
        (Running | Retrying | Waiting | WaitingApproval, Record::GateOpened { .. }) => WaitingApproval,

        (Running | Retrying | Waiting | WaitingApproval, Record::AttemptStarted { .. }) => Running,
        (Running, Record::AttemptStopping { .. } | Record::AttemptContinued { .. }) => Running,
        (Running | WaitingApproval, Record::AttemptResumed { .. }) => Running,
        (Running, Record::AttemptFailed { retry_at: Some(_), .. }) => Retrying,
        (Running, Record::AttemptFailed { retry_at: None, .. }) => Running,

        (Waiting, Record::SignalTaken { .. }) => Waiting,
        (Running, Record::SignalTaken { .. }) => Running,
        (WaitingApproval, Record::GateDecided { .. }) => WaitingApproval,

        // A message may interrupt a model call between two attempts.
        (Running | Retrying | Waiting | WaitingApproval, Record::StepCompleted { .. }) => Completed,
        (Running | Retrying | Waiting | WaitingApproval, Record::StepFailed { .. }) => Failed,
        (Running | Retrying | Waiting | WaitingApproval, Record::StepCancelled { .. }) => Cancelled,
        _ => return None,
    })
}

/// Applies one record. `now` is the time of its turn, in milliseconds since 1970.
pub fn apply(state: &mut State, record: &Record, now: u64) -> Result<(), IllegalTransition> {
    if state.end.ended_at.is_some() {
        return Err(illegal(state, record, "after the end"));
    }
    if state.start.is_none() != matches!(record, Record::Started { .. }) {
        return Err(illegal(state, record, if state.start.is_none() { "before the start" } else { "twice" }));
    }
    state.now = state.now.max(now);
    state.journal.bytes += size::in_journal(record);
    state.journal.is_split = matches!(record, Record::TurnSplit | Record::TurnYielded { .. });
    match record.instance() {
        Some(_) if state.queue.is_some() => Err(illegal(state, record, "in a queue")),
        Some(instance) => apply_to_step(state, instance, record),
        None => apply_to_execution(state, record),
    }
}

fn illegal(state: &State, record: &Record, why: &str) -> IllegalTransition {
    let subject =
        record.instance().map_or_else(String::new, |instance| match state.plan.steps.get(instance.step as usize) {
            Some(step) => format!(" of step `{}`", step.id),
            None => format!(" of step number {}, which the plan does not have,", instance.step),
        });
    let name = format!("{record:?}");
    let name = name.split([' ', '{']).next().unwrap_or_default();
    IllegalTransition { message: format!("a record `{name}`{subject} cannot stand {why}") }
}

fn apply_to_execution(state: &mut State, record: &Record) -> Result<(), IllegalTransition> {
    match record {
        Record::Started { .. } => start(state, record),
        Record::LineageSet { lineage } => {
            budgets::begin(state, lineage.budget);
            state.lineage = lineage.clone();
        }
        Record::SignalKept { id, name, payload } => {
            state.signals.seen.insert(id.clone());
            let payload = known(state, payload);
            let byte_count = cbor::byte_count(&payload);
            state.counts.memory_bytes += value_size::of_signal(id, name, &payload);
            state.signals.kept.push(Signal { id: id.clone(), name: name.clone(), payload, byte_count });
        }
        Record::MessageKept { .. } => conversations::keep(state, record).map_err(|why| illegal(state, record, why))?,
        Record::DeadlineHeld { remaining_ms } => {
            set_deadline(state, None);
            state.end.deadline_held = Some(*remaining_ms);
        }
        Record::DeadlineSet { at } => set_deadline(state, Some(*at)),
        Record::EndingBegun { ending } => {
            state.queue = None;
            state.end.ending = Some(ending.clone());
            // An execution that awaits its running attempts keeps its deadline, so it does not wait longer than that.
            if state.decide_version < BOUNDS_SINCE || state.is_stopping() {
                set_deadline(state, None);
            }
        }
        Record::FinallyBegun { .. } | Record::FinallyHalted { .. } | Record::FinallyEnded => {
            return apply_to_cleanup(state, record);
        }
        Record::CancelRequested { .. } => state.end.is_cancel_requested = true,
        Record::Ended { .. } => {
            if state.end.ending.is_none() || !state.open.attempts.is_empty() || !state.open.waits.is_empty() {
                return Err(illegal(state, record, "while something is open"));
            }
            state.open.timers.clear();
            while let Some(id) = state.signals.kept.last().map(|signal| signal.id.clone()) {
                take_signal(state, &id);
            }
            state.end.ended_at = Some(state.now);
        }
        Record::FailureBoundReached { fault } => {
            state.end.bound_reached = Some(fault.clone());
            if let Some(root) = state.blocks.scopes.get_mut(&Scope::root()) {
                root.is_failing = true;
            }
        }
        Record::BudgetReserved { .. }
        | Record::BudgetSettled { .. }
        | Record::BudgetRaised { .. }
        | Record::BudgetWarned { .. }
        | Record::LeaseChanged { .. } => budgets::change(state, record).map_err(|why| illegal(state, record, why))?,
        Record::ToolsPinned { tools } => calls::pin(state, tools),
        Record::Migrated { .. } => migration::migrate(state, record).map_err(|why| illegal(state, record, why))?,
        Record::ParentNotified => state.counts.parent_notices += 1,
        Record::Queued { queue } if is_untouched(state) => state.queue = Some(*queue),
        Record::Queued { .. } => return Err(illegal(state, record, "where work has begun")),
        Record::Admitted if state.queue.is_some() => state.queue = None,
        Record::Admitted => return Err(illegal(state, record, "outside of a queue")),
        // These records are informative; the changes that follow have records of their own.
        Record::TurnSplit | Record::TurnYielded { .. } | Record::TurnJoined => {}
        _ => return Err(illegal(state, record, "without a step")),
    }
    Ok(())
}

/// Applies a record about the steps of `finally`.
fn apply_to_cleanup(state: &mut State, record: &Record) -> Result<(), IllegalTransition> {
    let is_ending = state.end.ending.is_some() && state.plan.finally.is_some();
    let has_open_work = !state.open.attempts.is_empty() || !state.open.waits.is_empty();
    match (record, &state.end.cleanup) {
        (Record::FinallyBegun { outcome, deadline }, Cleanup::Pending) if is_ending && !has_open_work => {
            set_deadline(state, Some(*deadline));
            state.end.cleanup = Cleanup::Running { outcome: outcome.clone() };
            // Its pending steps will not run, and nothing may examine them again.
            blocks::close(state, &Scope::root());
            if let Some(finally) = state.plan.finally {
                blocks::open(state, Scope { block: finally.block, rounds: alloc::vec::Vec::new() });
            }
        }
        (Record::FinallyHalted { .. }, Cleanup::Pending) if state.plan.finally.is_some() => {
            state.end.cleanup = Cleanup::Ended;
            state.end.with_failures = true;
        }
        (Record::FinallyHalted { .. }, Cleanup::Running { .. }) => {
            state.end.cleanup = Cleanup::Halted;
            state.end.with_failures = true;
            set_deadline(state, None);
        }
        (Record::FinallyEnded, Cleanup::Running { .. }) if !has_open_work => {
            state.end.cleanup = Cleanup::Ended;
            set_deadline(state, None);
        }
        _ => return Err(illegal(state, record, "where no cleanup is due, or while something is open")),
    }
    Ok(())
}

fn start(state: &mut State, record: &Record) {
    let Record::Started {
        execution_id,
        workflow_hash,
        plan_hash,
        decide_version,
        policy,
        attempt,
        by,
        input,
        variables,
        context,
        deadline,
        ..
    } = record
    else {
        return;
    };
    let context = known(state, context);
    state.decide_version = *decide_version;
    state.start = Some(Started {
        execution_id: execution_id.clone(),
        workflow_hash: *workflow_hash,
        plan_hash: *plan_hash,
        at: state.now,
        policy: *policy,
        attempt: *attempt,
        by: by.clone(),
        input: known(state, input),
        variables: known(state, variables),
        trigger: context.get("trigger").cloned().unwrap_or_default(),
        workspace: context.get("workspace").and_then(Value::as_text).map(Into::into),
    });
    budgets::begin(state, state.plan.constraints.budget);
    state.counts.memory_bytes += state.start.as_ref().map_or(0, size::of_start);
    set_deadline(state, *deadline);
    blocks::open(state, Scope::root());
}

/// True if nothing has happened since the start.
fn is_untouched(state: &State) -> bool {
    state.steps.is_empty() && state.queue.is_none() && state.end.ending.is_none()
}

fn set_deadline(state: &mut State, deadline: Option<u64>) {
    if let Some(at) = state.end.deadline {
        state.open.timers.remove(&(at, Timer::Deadline));
    }
    state.open.timers.extend(deadline.map(|at| (at, Timer::Deadline)));
    (state.end.deadline, state.end.deadline_held) = (deadline, None);
}

fn apply_to_step(state: &mut State, instance: &Instance, record: &Record) -> Result<(), IllegalTransition> {
    let is_in_plan = (instance.step as usize) < state.plan.steps.len();
    if !is_in_plan || instance.rounds.len() != state.plan.loop_depth(instance.step) {
        return Err(illegal(state, record, "in this plan"));
    }
    let status = state.steps.get(instance).map_or(Status::Pending, |step| step.status);
    let scope = instance.scope(&state.plan);
    let Some(next) = next_status(status, record).filter(|_| state.blocks.scopes.contains_key(&scope)) else {
        return Err(illegal(state, record, &format!("where the step is {}", status.name())));
    };
    check_block(state, instance, record)?;
    let now = state.now;
    let mut step = state.steps.remove(instance).unwrap_or_else(|| pending(now));
    settle_timers(state, instance, &step, record);
    step.status = next;
    change(state, instance, &mut step, record);
    if status == Status::Pending {
        step.is_cleanup =
            next == Status::Running && state.blocks.scopes.get(&scope).is_some_and(|here| here.is_failing);
        blocks::begin_step(state, &scope, instance, next);
        state.counts.uncounted = state.counts.uncounted.saturating_add(u32::from(next.is_final()));
    }
    if next != Status::Waiting {
        state.counts.budgets.leases.waiting.remove(instance);
    }
    if next.is_final() {
        budgets::end_step(state, instance);
        conversations::end_step(state, instance, &step);
        step.times.ended_at = Some(now);
        blocks::end_step(state, &scope, instance, &step, status);
        let_go(state, &mut step);
    }
    track(state, instance, &step, record);
    size::count(state, &mut step, record);
    state.steps.insert(instance.clone(), step);
    blocks::forget_ended_round(state, instance, record);
    Ok(())
}

/// Drops the values of an ended step that are no longer needed. References read only outputs, and in an ending
/// execution nothing reads even those.
fn let_go(state: &State, step: &mut StepState) {
    step.input = Value::Null;
    step.call = CallState::default();
    // The steps of `finally` read them.
    if state.end.ending.is_some() && state.plan.finally.is_none() {
        step.output = Value::Null;
    }
}

/// Checks that the record fits the kind of step, and that the block, round or child that it concerns is in the right
/// state.
fn check_block(state: &State, instance: &Instance, record: &Record) -> Result<(), IllegalTransition> {
    let work = &state.plan.step(instance.step).work;
    let is_legal = match (record, work) {
        (Record::BranchTaken { block: Some(block), .. }, _) => {
            work.branches().iter().any(|(_, inner)| inner == block)
                && !state.blocks.scopes.contains_key(&Scope::inside(instance, *block))
        }
        (Record::RoundStarted { round, .. }, Work::Loop(_)) => state
            .blocks
            .loops
            .get(instance)
            .is_some_and(|rounds| rounds.begun == *round && rounds.count.is_none_or(|count| *round < count)),
        (Record::RoundEnded { round, .. }, Work::Loop(of)) => {
            state.blocks.scopes.get(&Scope::of_round(instance, of.block, *round)).is_some_and(|scope| scope.open == 0)
        }
        (Record::RoundStarted { .. } | Record::RoundEnded { .. }, _) => false,
        (Record::AnswerRejected { .. }, Work::Loop(Loop { over: Over::Turns(_), .. })) => {
            state.blocks.loops.get(instance).is_some_and(|turns| turns.open == 0 && !turns.outputs.is_empty())
        }
        (Record::AnswerRejected { .. }, _) => false,
        (Record::MessagesRead { count, .. }, _) => state
            .conversation_of_agent(instance)
            .is_some_and(|(_, conversation)| (1..=conversation.unread.len()).contains(&(*count as usize))),
        (Record::GateOpened { .. }, _) => {
            state.steps.get(instance).and_then(|step| step.gate.as_ref()).is_none_or(|gate| !gate.is_open)
        }
        (Record::LeaseAwaited { lease, .. }, _) => state.counts.budgets.leases.may_await(*lease),
        // A signal or a sleep has no attempts and no gates.
        (Record::AttemptStarted { .. }, _) => {
            let status = state.steps.get(instance).map(|step| step.status);
            status != Some(Status::Waiting) || state.counts.budgets.leases.waiting.contains_key(instance)
        }
        (Record::ChildWaits { .. } | Record::ExecutionsGiven { .. } | Record::ExecutionsReturned { .. }, _) => {
            state.started_workflow(instance).is_some() && state.open.attempts.contains(instance)
        }
        (Record::AttemptContinued { attempt, .. } | Record::AttemptResumed { attempt, .. }, _) => {
            calls::may_continue(state, instance, *attempt)
        }
        _ => true,
    };
    if is_legal { Ok(()) } else { Err(illegal(state, record, "for this block")) }
}

fn pending(now: u64) -> StepState {
    StepState {
        status: Status::Pending,
        attempt: 0,
        input: Value::Null,
        intent: None,
        output: Value::Null,
        failure: None,
        tolerated: false,
        is_handled: false,
        is_cleanup: false,
        stopping: None,
        gate: None,
        memory_bytes: 0,
        child: ChildState::default(),
        call: CallState::default(),
        times: StepTimes { handed_out_at: now, started_at: now, ..StepTimes::default() },
    }
}

/// Updates the fields of the step instance.
fn change(state: &mut State, instance: &Instance, step: &mut StepState, record: &Record) {
    match record {
        Record::StepStarted { input, intent, .. } => {
            // The calls of an agent have limits of their own.
            let is_visit = state.plan.agent_part(instance.step).is_none();
            state.counts.visits = state.counts.visits.saturating_add(u32::from(is_visit));
            step.attempt = 1;
            step.intent = *intent;
            step.input = known(state, input);
            budgets::begin_step(state, instance);
        }
        Record::BranchTaken { block: Some(block), .. } => blocks::open(state, Scope::inside(instance, *block)),
        Record::RoundStarted { round, .. } => {
            state.counts.uncounted = state.counts.uncounted.saturating_add(1);
            blocks::begin_round(state, instance, *round);
        }
        Record::RoundEnded { round, .. } => blocks::end_round(state, instance, *round),
        Record::AnswerRejected { reason, .. } => {
            let reason = known(state, reason);
            blocks::reject_answer(state, instance, reason);
        }
        Record::MessagesRead { count, .. } => conversations::read(state, instance, *count as usize),
        Record::AttemptStarted { attempt, timeout_at, .. } => {
            begin_attempt(state, instance, step, *attempt, *timeout_at)
        }
        Record::AttemptContinued { handle, .. } => calls::proceed(step, known(state, handle)),
        Record::AttemptResumed { timeout_at, .. } => calls::resume(step, *timeout_at, state.now),
        Record::ChildWaits { count, .. } => step.child.notices = *count,
        Record::ExecutionsGiven { count, .. } => {
            state.counts.executions = state.counts.executions.saturating_add(*count);
            step.child.executions = *count;
        }
        Record::ExecutionsReturned { count, .. } => {
            state.counts.executions = state.counts.executions.saturating_sub(*count);
            step.child.executions = 0;
        }
        Record::AttemptStopping { reason, .. } => step.stopping = Some(*reason),
        Record::AttemptFailed { fault, retry_at, .. } => {
            state.journal.has_erased |= fault.text == Payload::Erased;
            (step.failure, step.times.wake_at, step.times.timeout_at) = (Some(fault.failure()), *retry_at, None);
        }
        Record::WaitStarted { until, .. } => step.times.wake_at = *until,
        Record::LeaseAwaited { .. } => budgets::await_lease(state, instance, step, record),
        Record::GateOpened { .. } => {
            step.gate = Some(gate(state, record));
            step.times.asked_at = Some(state.now);
        }
        Record::GateDecided { by, decision, reason, .. } => {
            decided(step, by.as_deref(), *decision);
            calls::answer(step, *decision, by.as_deref(), reason.value());
        }
        Record::StepCompleted { output, .. } => complete(state, instance, step, output),
        Record::StepFailed { fault, disposition, .. } => {
            state.journal.has_erased |= fault.text == Payload::Erased;
            state.end.with_failures |= *disposition == FailureDisposition::Tolerated;
            (step.tolerated, step.is_handled) =
                (*disposition == FailureDisposition::Tolerated, *disposition == FailureDisposition::Handled);
            count_failure(state, instance, step.attempt, fault);
            step.failure = Some(fault.failure());
        }
        Record::SignalTaken { id, .. } => take_signal(state, id),
        _ => {}
    }
    if matches!(record, Record::StepStarted { .. }) {
        blocks::open_inside(state, instance, &step.input);
        conversations::begin_step(state, instance);
    }
}

fn complete(state: &mut State, instance: &Instance, step: &mut StepState, output: &Payload) {
    step.output = known(state, output);
    step.failure = None;
    if let Some(name) = &state.plan.step(instance.step).output_variable {
        state.counts.memory_bytes += value_size::of_variable(name, &step.output);
        let former = state.outputs.insert(name.clone(), step.output.clone());
        state.counts.memory_bytes -= former.map_or(0, |former| value_size::of_variable(name, &former));
    }
}

fn begin_attempt(state: &mut State, instance: &Instance, step: &mut StepState, attempt: u32, timeout_at: Option<u64>) {
    // An attempt of a function runs in the sandbox and is not counted as a call.
    let goes_out = state.plan.step(instance.step).work.goes_out();
    state.counts.calls = state.counts.calls.saturating_add(u32::from(goes_out));
    (step.attempt, step.times.timeout_at, step.stopping, step.times.wake_at) = (attempt, timeout_at, None, None);
    (step.child.notices, step.child.executions, step.times.handed_out_at) = (0, 0, state.now);
    calls::begin(step);
}

fn take_signal(state: &mut State, id: &str) {
    let Some(place) = state.signals.kept.iter().position(|signal| signal.id == id) else { return };
    let Signal { id, name, payload, .. } = state.signals.kept.remove(place);
    // The deduplication id is kept.
    state.counts.memory_bytes -= value_size::of_signal(&id, &name, &payload) - value_size::of_identity(&id);
}

/// Counts a failure for the failure limits. A step that contains others fails because of an inner step, which is
/// counted already.
fn count_failure(state: &mut State, instance: &Instance, attempt: u32, fault: &Fault) {
    let plan = state.plan.clone();
    let step = plan.step(instance.step);
    // A failed tool call is a result that the model gets.
    if step.work.is_container() || plan.agent_part(instance.step) == Some(AgentPart::Call) {
        return;
    }
    state.counts.node_failures = state.counts.node_failures.saturating_add(1);
    let is_exhausted = step.retry.max_attempts > 1 && attempt >= step.retry.max_attempts;
    state.counts.retries_exhausted += u32::from(is_exhausted && step.retry.wants(&fault.failure()));
}

fn gate(state: &mut State, record: &Record) -> GateState {
    let Record::GateOpened { gate, question, approvers, count, expires_at, on_timeout, purpose, .. } = record else {
        unreachable!("called for gates only");
    };
    let question = known(state, question);
    GateState {
        number: *gate,
        is_open: true,
        prompt: question.get("prompt").and_then(Value::as_text).unwrap_or("(erased)").into(),
        items: question.get("items").cloned().unwrap_or_default(),
        approvers: approvers.clone(),
        count: *count,
        approved_by: alloc::vec::Vec::new(),
        expires_at: *expires_at,
        on_timeout: *on_timeout,
        purpose: *purpose,
    }
}

/// Adds a decision to the gate. A denial, the expiry, or the last approval needed closes it.
fn decided(step: &mut StepState, by: Option<&str>, decision: crate::plan::Decision) {
    let Some(gate) = &mut step.gate else { return };
    if let (Some(by), crate::plan::Decision::Approve) = (by, decision) {
        gate.approved_by.push(by.into());
        gate.is_open = gate.approved_by.len() < gate.count as usize;
    } else {
        gate.is_open = false;
    }
}

/// Removes the timers of the step instance that the record makes obsolete.
fn settle_timers(state: &mut State, instance: &Instance, step: &StepState, record: &Record) {
    let ends_attempt = !matches!(
        record,
        Record::BranchTaken { .. }
            | Record::GateDecided { .. }
            | Record::SignalTaken { .. }
            | Record::StepLogged { .. }
            | Record::ChildWaits { .. }
            | Record::ExecutionsGiven { .. }
            | Record::ExecutionsReturned { .. }
            | Record::RoundStarted { .. }
            | Record::RoundEnded { .. }
            | Record::AnswerRejected { .. }
            | Record::MessagesRead { .. }
            | Record::AttemptContinued { .. }
    );
    if !ends_attempt {
        return;
    }
    if let Some(at) = step.times.timeout_at {
        state.open.timers.remove(&(at, Timer::Attempt(instance.clone(), step.attempt)));
    }
    if let Some(at) = step.times.wake_at {
        state.open.timers.remove(&(at, Timer::Retry(instance.clone(), step.attempt + 1)));
        state.open.timers.remove(&(at, Timer::Sleep(instance.clone())));
    }
    if let Some(gate) = &step.gate {
        state.open.timers.remove(&(gate.expires_at, Timer::Gate(instance.clone(), gate.number)));
    }
}

/// Updates the indexes of the state for the step instance, and adds the timers that the record starts.
fn track(state: &mut State, instance: &Instance, step: &StepState, record: &Record) {
    match record {
        // These records do not change the status of the step.
        Record::StepLogged { .. }
        | Record::AttemptContinued { .. }
        | Record::ExecutionsGiven { .. }
        | Record::ExecutionsReturned { .. } => return,
        Record::ChildWaits { count, .. } => {
            if count % 2 == 1 {
                state.open.held_children.insert(instance.clone());
            } else {
                state.open.held_children.remove(instance);
            }
            return;
        }
        // After any other record of the step, the child is no longer known to wait for approvals.
        _ => drop(state.open.held_children.remove(instance)),
    }
    let is_out = matches!(
        record,
        Record::AttemptStarted { .. } | Record::AttemptResumed { .. } | Record::AttemptStopping { .. }
    );
    if is_out {
        state.open.attempts.insert(instance.clone())
    } else {
        state.open.attempts.remove(instance)
    };
    let waits = matches!(step.status, Status::Retrying | Status::Waiting | Status::WaitingApproval);
    let waited = if waits { !state.open.waits.insert(instance.clone()) } else { state.open.waits.remove(instance) };
    // A step between two attempts still counts against `max_parallel`. Otherwise more attempts than allowed could run
    // when its retry is due.
    let goes_out = state.plan.step(instance.step).work.goes_out();
    let gives_room = !goes_out || state.conversation_of_message(instance.step).is_some();
    if let Some(scope) = state.blocks.scopes.get_mut(&instance.scope(&state.plan)).filter(|_| gives_room) {
        scope.waiting = scope.waiting + u32::from(waits) - u32::from(waited);
    }
    let timer = match record {
        Record::AttemptStarted { attempt, timeout_at: Some(at), .. }
        | Record::AttemptResumed { attempt, timeout_at: Some(at), .. } => {
            (*at, Timer::Attempt(instance.clone(), *attempt))
        }
        Record::AttemptFailed { attempt, retry_at: Some(at), .. } => (*at, Timer::Retry(instance.clone(), attempt + 1)),
        Record::WaitStarted { until: Some(at), .. } => (*at, Timer::Sleep(instance.clone())),
        Record::GateOpened { gate, expires_at, .. } => (*expires_at, Timer::Gate(instance.clone(), *gate)),
        _ => return,
    };
    state.open.timers.insert(timer);
}

fn known(state: &mut State, payload: &Payload) -> Value {
    state.journal.has_erased |= *payload == Payload::Erased;
    payload.value().clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        budget::Usage,
        failure::{Class, Failure},
        plan::Decision,
        record::{Purpose, SkipReason, StopReason},
    };
    use alloc::vec::Vec;

    const STATUSES: [Status; 9] = [
        Status::Pending,
        Status::Running,
        Status::Retrying,
        Status::Waiting,
        Status::WaitingApproval,
        Status::Completed,
        Status::Failed,
        Status::Skipped,
        Status::Cancelled,
    ];

    fn records() -> Vec<(&'static str, Record)> {
        let instance = || Instance::of_step(0);
        let null = || Payload::Known(Value::Null);
        let fault = || Failure::new(Class::Failed, "c", "m").into();
        let question = null();
        let (approvers, count, expires_at) = (Vec::new(), 1, 0);
        let (decision, reason, by) = (Decision::Approve, null(), None);
        let gate = Record::GateOpened {
            instance: instance(),
            gate: 1,
            question,
            approvers,
            count,
            expires_at,
            on_timeout: decision,
            purpose: Purpose::Approval,
        };
        alloc::vec![
            ("skipped", Record::StepSkipped { instance: instance(), reason: SkipReason::ConditionFalse }),
            ("started", Record::StepStarted { instance: instance(), input: null(), intent: None }),
            ("branch", Record::BranchTaken { instance: instance(), block: None }),
            ("logged", Record::StepLogged { instance: instance(), lines: null() }),
            ("child", Record::ChildWaits { instance: instance(), count: 1 }),
            ("given", Record::ExecutionsGiven { instance: instance(), count: 1 }),
            ("returned", Record::ExecutionsReturned { instance: instance(), count: 1 }),
            ("round", Record::RoundStarted { instance: instance(), round: 0 }),
            ("rounded", Record::RoundEnded { instance: instance(), round: 0 }),
            ("attempt", Record::AttemptStarted { instance: instance(), attempt: 1, timeout_at: None }),
            ("continued", Record::AttemptContinued { instance: instance(), attempt: 1, handle: null() }),
            ("resumed", Record::AttemptResumed { instance: instance(), attempt: 1, timeout_at: None }),
            ("stopping", Record::AttemptStopping { instance: instance(), attempt: 1, reason: StopReason::Timeout }),
            ("retry", Record::AttemptFailed { instance: instance(), attempt: 1, fault: fault(), retry_at: Some(0) }),
            ("again", Record::AttemptFailed { instance: instance(), attempt: 1, fault: fault(), retry_at: None }),
            ("wait", Record::WaitStarted { instance: instance(), until: None }),
            ("lease", Record::LeaseAwaited { instance: instance(), attempt: 1, lease: 1, amount: Usage::default() }),
            ("gate", gate),
            ("decided", Record::GateDecided { instance: instance(), gate: 1, decision, by, reason }),
            ("taken", Record::SignalTaken { instance: instance(), id: "s".into() }),
            ("completed", Record::StepCompleted { instance: instance(), output: null() }),
            (
                "failed",
                Record::StepFailed { instance: instance(), fault: fault(), disposition: FailureDisposition::Failed }
            ),
            ("cancelled", Record::StepCancelled { instance: instance(), reason: "r".into() }),
        ]
    }

    /// States the transition table a second time, so that an added or lost transition fails here.
    #[test]
    fn every_transition_is_listed() {
        let picture: Vec<String> = STATUSES
            .into_iter()
            .map(|status| {
                let moves: Vec<String> = records()
                    .iter()
                    .filter_map(|(name, record)| Some(format!("{name}>{}", next_status(status, record)?.name())))
                    .collect();
                format!("{}: {}", status.name(), moves.join(" "))
            })
            .collect();
        assert_eq!(
            picture,
            [
                "pending: skipped>skipped started>running failed>failed",
                "running: branch>running logged>running child>running given>running returned>running round>running rounded>running attempt>running continued>running resumed>running stopping>running retry>retrying again>running wait>waiting lease>waiting gate>waiting_approval taken>running completed>completed failed>failed cancelled>cancelled",
                "retrying: attempt>running lease>waiting gate>waiting_approval completed>completed failed>failed cancelled>cancelled",
                "waiting: attempt>running lease>waiting gate>waiting_approval taken>waiting completed>completed failed>failed cancelled>cancelled",
                "waiting_approval: attempt>running resumed>running lease>waiting gate>waiting_approval decided>waiting_approval completed>completed failed>failed cancelled>cancelled",
                "completed: ",
                "failed: ",
                "skipped: ",
                "cancelled: ",
            ]
        );
    }
}
