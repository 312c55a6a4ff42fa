//! Invariants of every state between two turns, for every workflow and under all faults.

use mainspring_kernel::{
    input::Timer,
    instance::Instance,
    limits::FINALLY_STEPS_MAX,
    plan::{Order, Work},
    record::Ending,
    state::{State, Status, StepState},
};

/// Returns a violated invariant, if there is one.
pub(crate) fn check(state: &State) -> Result<(), String> {
    check_steps(state)?;
    check_scopes(state)?;
    check_timers(state)?;
    check_bounds(state)?;
    check_end(state)
}

fn name(state: &State, instance: &Instance) -> String {
    instance.name(&state.plan)
}

/// The indexes agree with the steps.
fn check_steps(state: &State) -> Result<(), String> {
    for (instance, step) in &state.steps {
        let goes_out = state.plan.step(instance.step).work.goes_out();
        let is_out = goes_out && step.status == Status::Running && !state.journal.is_split;
        if is_out != state.open.attempts.contains(instance) && !state.journal.is_split {
            return Err(format!(
                "`{}` is {} and its attempt counts as out: {}",
                name(state, instance),
                step.status.name(),
                !is_out
            ));
        }
        let waits = matches!(step.status, Status::Retrying | Status::Waiting | Status::WaitingApproval);
        if waits != state.open.waits.contains(instance) {
            return Err(format!(
                "`{}` is {} and counts as waiting: {}",
                name(state, instance),
                step.status.name(),
                !waits
            ));
        }
        if step.status.is_final() != step.times.ended_at.is_some() {
            return Err(format!(
                "`{}` is {} and ended at {:?}",
                name(state, instance),
                step.status.name(),
                step.times.ended_at
            ));
        }
    }
    Ok(())
}

/// A block's count of open steps is right, a sequence starts its steps in order, and the branches in flight respect the
/// limit.
fn check_scopes(state: &State) -> Result<(), String> {
    let max_parallel = state.start.as_ref().map_or(u32::MAX, |start| start.policy.max_parallel);
    for (scope, here) in &state.blocks.scopes {
        let block = state.plan.block(scope.block);
        let steps: Vec<Option<&StepState>> =
            block.steps.iter().map(|step| state.steps.get(&scope.instance(*step))).collect();
        let open = steps.iter().flatten().filter(|step| !step.status.is_final()).count();
        let owner = block.owner.map_or("the workflow", |owner| state.plan.id(owner));
        if open != here.open as usize {
            return Err(format!("{owner} counts {} open steps and has {open}", here.open));
        }
        for (place, step) in steps.iter().enumerate() {
            if step.is_some() == here.pending.contains(&(place as u32)) {
                return Err(format!("{owner} has lost track of its step number {place}"));
            }
        }
        match &block.order {
            Order::Sequence if open > 1 => return Err(format!("{owner} is a sequence and has {open} steps open")),
            Order::Parallel if open > max_parallel as usize => {
                return Err(format!("{owner} has {open} branches open and may have {max_parallel}"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Every timer belongs to something that waits for it, and everything that waits for a time has its timer.
fn check_timers(state: &State) -> Result<(), String> {
    let mut expected = Vec::new();
    for (instance, step) in &state.steps {
        let is_out = state.open.attempts.contains(instance) && step.stopping.is_none();
        match step.status {
            Status::Running if is_out => {
                expected.extend(step.times.timeout_at.map(|at| (at, Timer::Attempt(instance.clone(), step.attempt))));
            }
            Status::Retrying => {
                expected.extend(step.times.wake_at.map(|at| (at, Timer::Retry(instance.clone(), step.attempt + 1))));
            }
            Status::Waiting => expected.extend(step.times.wake_at.map(|at| (at, Timer::Sleep(instance.clone())))),
            _ => {}
        }
        let gate = step.gate.as_ref().filter(|gate| gate.is_open && step.status == Status::WaitingApproval);
        expected.extend(gate.map(|gate| (gate.expires_at, Timer::Gate(instance.clone(), gate.number))));
    }
    expected.sort();
    let timers: Vec<_> = state.open.timers.iter().filter(|(_, timer)| *timer != Timer::Deadline).cloned().collect();
    if timers == expected { Ok(()) } else { Err(format!("the timers are {timers:?} and should be {expected:?}")) }
}

fn check_bounds(state: &State) -> Result<(), String> {
    let Some(start) = &state.start else { return Ok(()) };
    let of_finally = if state.plan.finally.is_some() { FINALLY_STEPS_MAX } else { 0 };
    if state.counts.visits > start.policy.max_steps.saturating_add(of_finally) {
        return Err(format!("{} steps were visited and {} may be", state.counts.visits, start.policy.max_steps));
    }
    let has_deadline = state.open.timers.iter().any(|(_, timer)| *timer == Timer::Deadline);
    let runs = state.end.ending.is_none() && start.policy.timeout_ms.is_some();
    if runs && has_deadline == state.end.deadline_held.is_some() {
        return Err("the execution's time neither runs nor stands still".into());
    }
    Ok(())
}

/// An execution that has ended has nothing open, and its outcome agrees with its steps.
fn check_end(state: &State) -> Result<(), String> {
    if state.end.ended_at.is_none() {
        return Ok(());
    }
    if let Some((instance, step)) = state.steps.iter().find(|(_, step)| !step.status.is_final()) {
        return Err(format!("the execution has ended and `{}` is {}", name(state, instance), step.status.name()));
    }
    if !state.open.timers.is_empty() || !state.open.waits.is_empty() || !state.open.attempts.is_empty() {
        return Err("the execution has ended and something of it is open".into());
    }
    let failed =
        state.steps.iter().find(|(instance, step)| step.status == Status::Failed && !is_tolerated(state, instance));
    let is_completed = matches!(state.end.ending, Some(Ending::Completed { .. }));
    if let Some((instance, _)) = failed.filter(|_| is_completed) {
        return Err(format!("the execution has completed and `{}` has failed", name(state, instance)));
    }
    let denied = state.steps.iter().find(|(instance, step)| {
        let is_approval = matches!(state.plan.step(instance.step).work, Work::Approval(_));
        is_approval && step.status == Status::Failed && step.attempt > 0
    });
    match denied {
        Some((instance, _)) => {
            Err(format!("the approval `{}` has failed; it can only be decided", name(state, instance)))
        }
        None => Ok(()),
    }
}

/// Returns whether a failure was tolerated or handled, by the failed step or by a step that contains it.
fn is_tolerated(state: &State, instance: &Instance) -> bool {
    let mut place = Some(instance.clone());
    while let Some(instance) = place {
        if state.steps.get(&instance).is_some_and(|step| step.tolerated || step.is_handled) {
            return true;
        }
        place = instance.scope(&state.plan).owner(&state.plan);
    }
    false
}
