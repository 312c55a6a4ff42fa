//! The node of a run: the shard's events and outputs, its crashes and recoveries.

use mainspring_engine::{
    lease::Leases,
    shard::{AttemptRecovery, Event, Output, PendingInput, Shard, ShardError, Ticket},
};
use mainspring_kernel::{effect::Attempt, input::Input, instance::Instance, key::ExecutionKey};
use mainspring_store::prelude::*;
use mainspring_store::{Batch, CommitError, Fence, ReadLimit, memory::MemoryStore};

use crate::{
    faults::{self, CommitFault},
    fixture::{SIMULATED_PARTITION, keys},
    world::Stage,
};

use super::{Run, arrivals::TRIES_MAX};

/// Maximum number of executions and messages that a node reads when it recovers: more than any case has.
const ROWS_MAX: usize = 10_000;

/// Memory for a few short journals.
const CROWDED_BYTES: usize = 2048;

/// Makes a node without memory, under a new lease.
pub(super) fn fresh(store: &MemoryStore, injector: &mut faults::FaultInjector) -> Result<Shard, String> {
    let epoch = store.claim(SIMULATED_PARTITION, "simulated").map_err(|error| error.to_string())?;
    // Idle executions stay in memory, are never cached, or compete for the cache.
    let idle_bytes_max = [usize::MAX, 0, CROWDED_BYTES][injector.below(3) as usize];
    let leases = Leases::alone(1, [Fence { partition: SIMULATED_PARTITION, epoch }]);
    Ok(Shard::new(leases, keys(), idle_bytes_max))
}

/// The end of processing: all done, or a crash.
#[derive(PartialEq, Eq)]
enum Pumped {
    Quiet,
    Crashed,
}

impl Run<'_> {
    /// Delivers an input until it is acknowledged, like a sender that retries after crashes and lost responses.
    pub(super) fn deliver(&mut self, execution: ExecutionKey, input: Input) -> Result<(), String> {
        self.log.push((execution, input.clone()));
        self.delivering = Some((execution, input.clone()));
        for _ in 0..TRIES_MAX {
            self.ticket = Ticket(self.ticket.0 + 1);
            self.reply = None;
            self.hand_over(execution, input.clone(), Some(self.ticket));
            if self.injector.draws(self.injector.faults.deliver_twice) {
                self.hand_over(execution, input.clone(), None);
            }
            self.settle()?;
            match self.reply.take() {
                Some(Ok(_)) => {
                    self.delivering = None;
                    if self.injector.draws(self.injector.faults.deliver_again) {
                        self.repeat(execution, input)?;
                    }
                    return Ok(());
                }
                // A start whose commit was lost fails, and its sender starts again.
                Some(Err(ShardError::Store(_))) if matches!(input, Input::Start(_)) => {}
                Some(Err(error)) => return Err(format!("an input was refused: {error:?}")),
                None => {}
            }
        }
        Err(format!("an input was not acknowledged in {TRIES_MAX} tries: {input:?}"))
    }

    /// Repeats an input that was accepted before. It must have no effect.
    pub(super) fn repeat(&mut self, execution: ExecutionKey, input: Input) -> Result<(), String> {
        let frames = self.tree.frame_count();
        self.hand_over(execution, input.clone(), None);
        self.settle()?;
        if self.tree.frame_count() == frames {
            return Ok(());
        }
        Err(format!("an input that was delivered again has changed the journal: {input:?}"))
    }

    pub(super) fn hand_in(&mut self, event: Event) -> Result<(), String> {
        self.node.handle(self.node_now, event);
        self.settle()
    }

    fn hand_over(&mut self, execution: ExecutionKey, input: Input, ticket: Option<Ticket>) {
        let event = match input {
            Input::Start(_) if execution == self.fixture.key => Event::Start(Box::new(self.fixture.submission(ticket))),
            input => Event::Take(execution, PendingInput { input, message: None, ticket, audit: None }),
        };
        self.node.handle(self.node_now, event);
    }

    fn settle(&mut self) -> Result<(), String> {
        match self.pump()? {
            Pumped::Quiet => Ok(()),
            // The input in delivery is delivered again, before anything else that is due at this time.
            Pumped::Crashed => self.recover(self.settled_at),
        }
    }

    /// Crashes the node and recovers it: the new one has only the contents of the store, and processes everything due
    /// by a time.
    pub(super) fn recover(&mut self, by: u64) -> Result<(), String> {
        for _ in 0..TRIES_MAX {
            self.node = fresh(&self.store, &mut self.injector)?;
            self.stalls = 0;
            let due = self.store.due(&[SIMULATED_PARTITION], u64::MAX, None, ROWS_MAX);
            let due = due.map_err(|error| error.to_string())?;
            self.node_now = by;
            self.node.handle(by, Event::Due(due));
            self.inbox_cursor = 0;
            let pumped = self.receive_messages().and_then(|()| self.pump());
            self.node_now = self.now;
            if pumped? == Pumped::Quiet {
                return Ok(());
            }
        }
        Err(format!("the node did not come back in {TRIES_MAX} tries"))
    }

    fn pump(&mut self) -> Result<Pumped, String> {
        loop {
            self.fixture.allowance.check(self.tree.stored_bytes())?;
            self.node.flush();
            let Some(output) = self.node.next_output() else {
                if self.node.has_split() {
                    self.node.handle(self.node_now, Event::Wake);
                    continue;
                }
                return Ok(Pumped::Quiet);
            };
            match output {
                Output::Commit { commit_id, batch } => {
                    if self.commit(commit_id, &batch)? == Pumped::Crashed {
                        return Ok(Pumped::Crashed);
                    }
                }
                Output::Load(execution, number) => {
                    let answer = Box::new(self.loader.load(execution));
                    self.node.handle(self.node_now, Event::Loaded(execution, number, answer));
                }
                Output::Perform { instance, attempt, .. } => self.world.perform(self.now, &instance, &attempt)?,
                Output::Stop { execution, instance, attempt } | Output::Kill { execution, instance, attempt } => {
                    self.world.stop(self.now, execution, &instance, attempt)?;
                }
                Output::Reconcile { instance, attempt, .. } => self.adopt(instance, &attempt)?,
                Output::Evaluate { execution, evaluation, suspended } => {
                    let finished = Box::new(suspended.finish(&*self.fixture.sandbox.0, &mut || false));
                    self.node.handle(self.node_now, Event::Evaluated { execution, evaluation, finished });
                }
                Output::Lease(wanted) => {
                    return Err(format!(
                        "{} asks for a lease, and no scenario has budgets of a period",
                        wanted.execution
                    ));
                }
                Output::MessagesEnqueued(_) => self.receive_messages()?,
                Output::RescanInbox => {
                    self.inbox_cursor = 0;
                    self.receive_messages()?;
                }
                // Every simulated node works on all executions.
                Output::Activate(_) => {}
                Output::Forget { execution, step, attempt } => self.check_forgotten(execution, &step, attempt)?,
                Output::Reply(ticket, reply) if ticket == self.ticket => self.reply = Some(reply),
                Output::Reply(..) => {}
                Output::Notify(moment) if moment.sequence >= self.frames_of(moment.execution) => {
                    return Err(format!("frame {} is published and is not durable", moment.sequence));
                }
                Output::Notify(_) => {}
                Output::Stalled(_) if self.stalls > 0 => self.stalls -= 1,
                Output::Stalled(why) => return Err(format!("the node has stalled: {why}")),
                Output::Lost(_) => return Err("the node has lost what nobody else wants".into()),
                Output::Acquired(_) | Output::Handoff(_) | Output::PassOn(..) | Output::StopRemote(_) => {
                    return Err("a node that has its store to itself shares nothing".into());
                }
                Output::Quarantine(_, why) => return Err(format!("the execution was quarantined: {why}")),
                Output::Fatal(why) => return Err(format!("the node has stopped: {why}")),
            }
        }
    }

    fn commit(&mut self, commit_id: u64, batch: &Batch) -> Result<Pumped, String> {
        let fault = self.injector.of_commit(batch.parts.iter().any(|part| !part.frames.is_empty()));
        let is_written =
            !matches!(fault, CommitFault::CrashBefore | CommitFault::UnknownNotWritten | CommitFault::NotWritten);
        let mut answer = if is_written { self.store.commit(batch) } else { Ok(Vec::new()) };
        let new = self.tree.catch_up(&self.store, &mut self.world)?;
        let has_written = !new.is_empty();
        self.note_new_frames(&new);
        match fault {
            CommitFault::CrashBefore => return Ok(Pumped::Crashed),
            // A commit that was rejected would be made and rejected again forever.
            CommitFault::CrashAfter if has_written => return Ok(Pumped::Crashed),
            CommitFault::UnknownWritten | CommitFault::UnknownNotWritten => {
                answer = Err(CommitError::Unknown("the answer was lost".into()));
            }
            CommitFault::NotWritten => {
                self.stalls += 1;
                answer = Err(CommitError::NotWritten("the disk is full".into()));
            }
            CommitFault::CrashAfter | CommitFault::None => {}
        }
        self.node.handle(self.node_now, Event::Committed { commit_id, answer });
        Ok(Pumped::Quiet)
    }

    /// Logs inputs that were not delivered from outside too: a fired timer, the end of an abandoned attempt, a message.
    fn note_new_frames(&mut self, new: &[(ExecutionKey, usize)]) {
        for (execution, place) in new {
            let Some(member) = self.tree.member(*execution) else { continue };
            let input = (*execution, member.frames[*place].input.clone());
            if self.delivering.as_ref() != Some(&input) {
                self.log.push(input);
            }
            self.inbox.watch(&self.fixture.plan, *execution, member, *place);
        }
    }

    fn frames_of(&self, execution: ExecutionKey) -> u64 {
        self.tree.member(execution).map_or(0, |member| member.frames.len() as u64)
    }

    /// Delivers the messages between executions at once.
    fn receive_messages(&mut self) -> Result<(), String> {
        let error = |error: mainspring_store::StoreError| error.to_string();
        let messages =
            self.store.inbox(&[SIMULATED_PARTITION], self.inbox_cursor, ReadLimit::of(ROWS_MAX)).map_err(error)?;
        for arrived in messages {
            self.inbox_cursor = self.inbox_cursor.max(arrived.number);
            let times = if self.injector.draws(self.injector.faults.deliver_twice) { 2 } else { 1 };
            for _ in 0..times {
                let event = mainspring_engine::inbox::event_of(&self.store, &keys().sealing, arrived.message.clone());
                let event =
                    event.map_err(|message_error| format!("a message cannot be received: {message_error:?}"))?;
                if let Event::Start(submission) = &event {
                    self.tree.add(submission.execution, submission.plan.clone());
                }
                self.node.handle(self.node_now, event);
            }
        }
        Ok(())
    }

    /// Recovers a call that another node has left: one that was never made, one that still runs and will respond, or
    /// one that was killed.
    fn adopt(&mut self, instance: Instance, attempt: &Attempt) -> Result<(), String> {
        let number = attempt.number;
        let execution = attempt.execution;
        let recovery = match self.world.stage(execution, &instance, number) {
            Some(Stage::Written) => AttemptRecovery::NeverStarted,
            Some(Stage::Killed) => AttemptRecovery::Interrupted,
            Some(Stage::Answered | Stage::Out(_)) => AttemptRecovery::StillRunning,
            None => return Err(format!("attempt {number} of `{}` is adopted and never began", attempt.step)),
        };
        self.node.handle(self.node_now, Event::AttemptRecovered { execution, instance, attempt: number, recovery });
        Ok(())
    }

    fn check_forgotten(&self, execution: ExecutionKey, step: &str, number: u32) -> Result<(), String> {
        let Some(member) = self.tree.member(execution) else { return Ok(()) };
        let state = member.state();
        let mut open = state.open.attempts.iter().filter_map(|instance| Some((instance, state.steps.get(instance)?)));
        match open.any(|(instance, open)| instance.name(&state.plan) == step && open.attempt == number) {
            true => Err(format!("attempt {number} of `{step}` is forgotten before its receipt is durable")),
            false => Ok(()),
        }
    }
}
