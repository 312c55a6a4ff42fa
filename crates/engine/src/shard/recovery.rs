//! Recovery of open attempts after a load, and the actions of a durable turn. An attempt is started, awaited on another
//! node, or its outcome is recovered.

use mainspring_kernel::{
    decide::{Action, child_key},
    effect::Outcome,
    input::Input,
    instance::Instance,
    key::ExecutionKey,
    state::State,
    value::Value,
};
use mainspring_store::RemoteAttempt;

use crate::period_budgets::WantedLease;

use super::{
    AttemptRecovery, ExecutionEntry, Output, PendingInput, Shard,
    attempts::{AttemptId, AttemptState},
};

impl Shard {
    /// Continues the open work of a loaded state: recovery consists of this alone. `remote` contains attempts on other
    /// nodes.
    pub(super) fn continue_work(&mut self, execution: ExecutionKey, remote: &[(RemoteAttempt, String)]) {
        let Some(ExecutionEntry::Loaded(loaded)) = self.executions.get(&execution) else { return };
        for instance in &loaded.state.open.attempts {
            if let Some(child) = child_of(&loaded.state, instance) {
                self.outputs.push_back(Output::Activate(child));
                continue;
            }
            let Some(attempt) = mainspring_kernel::decide::open_attempt(&loaded.state, instance) else { continue };
            let is_stopping = loaded.state.steps.get(instance).is_some_and(|step| step.stopping.is_some());
            let number = attempt.number;
            let id = AttemptId::new(execution, instance.clone(), number);
            if self.attempts.take_detached(&id).is_some() {
                self.attempts.run(id.clone(), attempt.step.clone());
            }
            let at = remote.iter().find(|(remote, _)| remote.number == number && remote.step == attempt.step);
            if self.attempts.is_running(&id) {
                if is_stopping {
                    self.outputs.push_back(Output::Stop { execution, instance: instance.clone(), attempt: number });
                }
            } else if let Some((remote, node)) = at {
                self.attempts.set(id, AttemptState::Remote(node.clone()));
                if is_stopping {
                    self.outputs.push_back(Output::StopRemote(remote.clone()));
                }
            } else if self.attempts.is_recovered(&id) || self.attempts.recover_not_started(&id) {
                // Applied after the inputs that waited for the journal.
            } else if self.attempts.begin_reconciling(id) {
                self.outputs.push_back(Output::Reconcile { execution, instance: instance.clone(), attempt });
            }
        }
        // The store returns the same grant again if the first answer was lost.
        let leases = &loaded.state.counts.budgets.leases;
        if let Some(amount) = leases.requested.filter(|_| loaded.state.end.ended_at.is_none()) {
            let (root, number, at_ms) = (loaded.state.root(), leases.last, loaded.state.now);
            self.outputs.push_back(Output::Lease(WantedLease { execution, root, number, amount, at_ms }));
        }
        self.reschedule(execution);
        self.queue_split(execution);
    }

    /// Handles the recovered outcome of an attempt: it starts if it never started, is awaited if it still runs, and is
    /// interrupted otherwise.
    pub(super) fn attempt_recovered(
        &mut self,
        now: u64,
        execution: ExecutionKey,
        instance: Instance,
        number: u32,
        recovery: AttemptRecovery,
    ) {
        // An outdated answer: the partition was lost and acquired again since the request, and the attempt may have
        // started.
        if self.attempts.end_reconciling(&AttemptId::new(execution, instance, number), recovery) {
            self.apply_recoveries(now, execution);
        }
    }

    /// Applies the recovered outcomes of the attempts of an execution while its state is in the shard. Each may suspend
    /// the execution, and the others wait for the end of its evaluation then.
    pub(super) fn apply_recoveries(&mut self, now: u64, execution: ExecutionKey) {
        while matches!(self.executions.get(&execution), Some(ExecutionEntry::Loaded(_))) {
            let Some((id, recovery)) = self.attempts.take_recovered(execution) else { return };
            self.apply_recovery(now, execution, id.instance, id.number, recovery);
        }
    }

    fn apply_recovery(
        &mut self,
        now: u64,
        execution: ExecutionKey,
        instance: Instance,
        number: u32,
        recovery: AttemptRecovery,
    ) {
        // The timer of the attempt may have become due during its recovery, when it was ignored.
        self.reschedule(execution);
        let Some(ExecutionEntry::Loaded(loaded)) = self.executions.get(&execution) else { return };
        let is_open = loaded.state.open.attempts.contains(&instance);
        let Some(step) = loaded.state.steps.get(&instance).filter(|step| is_open && step.attempt == number) else {
            return;
        };
        let is_stopping = step.stopping.is_some();
        let attempt = mainspring_kernel::decide::open_attempt(&loaded.state, &instance);
        match (recovery, attempt) {
            (AttemptRecovery::NeverStarted, Some(attempt)) if !is_stopping => {
                self.perform(execution, instance, attempt)
            }
            (AttemptRecovery::StillRunning, _) => {
                let step = instance.name(&loaded.state.plan);
                self.attempts.run(AttemptId::new(execution, instance.clone(), number), step);
                if is_stopping {
                    self.outputs.push_back(Output::Stop { execution, instance, attempt: number });
                }
            }
            (recovery, _) => {
                // An attempt that never started counts as stopped if it was to be stopped.
                let was_started = recovery == AttemptRecovery::Interrupted;
                let outcome = if was_started { Outcome::Interrupted } else { Outcome::Stopped(Value::Null) };
                let input = Input::Receipt { instance, attempt: number, outcome };
                self.turn(now, execution, PendingInput::without_reply(input));
            }
        }
    }

    fn perform(&mut self, execution: ExecutionKey, instance: Instance, attempt: mainspring_kernel::effect::Attempt) {
        self.attempts.run(AttemptId::new(execution, instance.clone(), attempt.number), attempt.step.clone());
        self.outputs.push_back(Output::Perform { execution, instance, attempt });
    }

    pub(super) fn act(&mut self, execution: ExecutionKey, action: Action) {
        match action {
            Action::Perform { instance, attempt } => self.perform(execution, instance, *attempt),
            Action::Lease { lease, amount, root, at } => {
                let wanted = WantedLease { execution, root, number: lease, amount, at_ms: at };
                self.outputs.push_back(Output::Lease(wanted));
            }
            Action::Stop { instance, attempt } => {
                let id = AttemptId::new(execution, instance, attempt);
                let is_remote = matches!(self.attempts.get(&id), Some(AttemptState::Remote(_)));
                let remote = is_remote.then(|| self.remote_attempt(&id)).flatten();
                let AttemptId { execution, instance, number: attempt } = id;
                self.outputs.push_back(match remote {
                    Some(remote) => Output::StopRemote(remote),
                    None => Output::Stop { execution, instance, attempt },
                });
            }
        }
    }
}

/// The key of the child execution that an attempt waits for.
fn child_of(state: &State, instance: &Instance) -> Option<ExecutionKey> {
    let is_child = state.started_workflow(instance).is_some();
    let attempt = state.steps.get(instance)?.attempt;
    is_child.then(|| child_key(state, instance, attempt))
}
