//! The order of the work of a node. A round handles the due work, then events, then inbox messages, and then the outputs
//! of the shard, so that many turns share a commit. While several organizations share the node, each part of a round has
//! a time limit.

use std::time::Duration;

use mainspring_kernel::key::ExecutionKey;

use super::{
    protocol::{NodeEvent, Step},
    state::{
        INBOX_POLL_INTERVAL_MS, Node, TIMER_POLL_INTERVAL_MS,
        events::organization_of,
        round::{Phase, Progress},
    },
};
use crate::{
    clock::{Clock, MonotonicMs},
    shard::{Event, Output, tenants::Tenant},
};

/// Events handled before the outputs of the shard. It bounds the size of a commit.
const EVENTS_AT_A_TIME: usize = 1_024;

/// Messages received in one round. Each can start an execution, whose first turn takes up to some milliseconds: with
/// more of them, commits and events would wait for seconds.
const MESSAGES_AT_A_TIME: usize = 256;

/// With this many executions waiting for a commit, the result of the last commit is handled before the remaining events.
/// Below it, one larger commit costs less than two.
const WORTH_A_COMMIT: usize = 512;

/// Time limit of each part of a round: queued events, messages, and outputs. New events, timers and the next commit are
/// delayed by three of them and one event at most.
const ROUND: Duration = Duration::from_micros(500);

impl Node {
    /// Does the next piece of work.
    pub fn step(&mut self, clock: &dyn Clock) -> Step {
        self.now = clock.reading();
        self.shard.expire(self.now);
        if self.keep_alive() {
            return self.first_output().unwrap_or(Step::Worked);
        }
        if let Some(step) = self.first_output() {
            return step;
        }
        if self.takes_commit_result()
            && let Some((commit_id, answer)) = self.commits.answer.take()
        {
            self.committed(commit_id, answer);
            if self.round.current.phase != Phase::Due {
                self.round.interrupted = Some(self.round.current);
                self.begin(Phase::Outputs, clock);
            }
            return Step::Worked;
        }
        if self.shard.is_shared() && self.run_preceding(clock) {
            return Step::Worked;
        }
        match self.round.current.phase {
            Phase::Due => self.run_due_work(clock),
            Phase::Arrived => self.handle_arrived(clock),
            Phase::Queued => self.handle_queued(clock),
            Phase::Messages => self.receive_message(clock),
            Phase::Outputs => return self.run_outputs(clock),
        }
        Step::Worked
    }

    /// True if the next step returns an output of the shard, or performs it.
    pub fn is_performing(&self) -> bool {
        self.round.current.phase == Phase::Outputs && self.round.current.has_begun && self.shard.has_outputs()
    }

    fn first_output(&mut self) -> Option<Step> {
        self.outputs.pop_front().map(Step::Perform)
    }

    /// The result of a commit is handled at the start of a round and before the messages. In the midst of events and
    /// messages it is handled while several organizations share the node, or when the next commit is large.
    fn takes_commit_result(&self) -> bool {
        let is_awaited = || self.shard.is_shared() || self.shard.gathered() >= WORTH_A_COMMIT;
        match self.round.current.phase {
            Phase::Due => true,
            Phase::Arrived | Phase::Queued => is_awaited(),
            Phase::Messages => !self.round.current.has_begun || self.shard.is_shared(),
            Phase::Outputs => false,
        }
    }

    /// Sorts new events, and handles one that precedes the next message: its organization has used less of the driver. The
    /// event counts as a message, so that events which cause each other do not extend the round without end.
    fn run_preceding(&mut self, clock: &dyn Clock) -> bool {
        if self.round.current.phase != Phase::Messages || self.round.current.left == 0 || self.has_used_round(clock) {
            return false;
        }
        let is_run = self.handle_preceding(clock);
        self.round.current.left -= usize::from(is_run);
        is_run
    }

    fn handle_preceding(&mut self, clock: &dyn Clock) -> bool {
        while self.events.arrived() > 0 {
            if let Some(event) = self.next_arrived() {
                self.handle_command(event);
                return true;
            }
        }
        let message = self.next_message_tenant();
        message.is_some_and(|tenant| self.is_preceded(tenant)) && self.handle_next_queued(clock)
    }

    /// True if an event waits of an organization that has used less of the driver than this one.
    fn is_preceded(&self, tenant: Tenant) -> bool {
        self.schedule.shares.precedes(self.events.tenants(), tenant)
    }

    /// Records the processor time of work for an organization.
    fn record_used(&mut self, tenant: Tenant, before: Duration, clock: &dyn Clock) {
        self.schedule.shares.record(tenant, clock.processor_time().saturating_sub(before));
    }

    fn begin(&mut self, phase: Phase, clock: &dyn Clock) {
        let left = match phase {
            Phase::Arrived => self.events.arrived().min(EVENTS_AT_A_TIME),
            Phase::Messages => MESSAGES_AT_A_TIME,
            Phase::Due | Phase::Queued | Phase::Outputs => usize::MAX,
        };
        self.round.current = Progress { phase, began: clock.elapsed(), left, has_begun: false };
    }

    /// Runs the work whose time has come.
    fn run_due_work(&mut self, clock: &dyn Clock) {
        let now = self.now.monotonic;
        self.forward_again();
        self.follow_notifications();
        let began = clock.elapsed();
        let part = self.schedule.pace.next(began, self.shard.split_tenants());
        if let Some((tenant, _)) = part.filter(|(tenant, at)| *at <= began && !self.is_preceded(*tenant)) {
            let used = clock.processor_time();
            self.shard.put_split_first(tenant);
            self.handle(Event::Wake);
            let used = clock.processor_time().saturating_sub(used);
            self.schedule.pace.record_part(tenant, (began, clock.elapsed()), used);
            self.schedule.shares.record(tenant, used);
        } else if self.shard.next_time().is_some_and(|at| at <= self.shard.now(self.now)) {
            self.handle(Event::Due(Vec::new()));
        }
        if self.schedule.inbox_at <= now {
            self.schedule.inbox_at = MonotonicMs(now.0 + INBOX_POLL_INTERVAL_MS);
            self.rescan_inbox();
            self.search_queues_of_others();
        }
        if self.schedule.timers_at <= now {
            self.schedule.timers_at = MonotonicMs(now.0 + TIMER_POLL_INTERVAL_MS);
            self.poll_timers();
            self.read_quarantined();
            self.refresh_organizations();
        }
        if self.events.arrived() > 0 {
            self.schedule.pace.command(clock.elapsed());
        }
        self.begin(Phase::Arrived, clock);
    }

    fn handle_arrived(&mut self, clock: &dyn Clock) {
        if self.round.current.left == 0 {
            return self.begin(Phase::Queued, clock);
        }
        self.round.current.left -= 1;
        if let Some(event) = self.next_arrived() {
            self.handle_command(event);
        }
    }

    fn handle_queued(&mut self, clock: &dyn Clock) {
        let is_over = self.round.current.has_begun && self.has_used_round(clock);
        if !is_over && self.handle_next_queued(clock) {
            self.round.current.has_begun = true;
        } else {
            self.begin(Phase::Messages, clock);
        }
    }

    /// Handles an event of the organization that has used the least. False if none waits.
    fn handle_next_queued(&mut self, clock: &dyn Clock) -> bool {
        let Some(tenant) = self.schedule.shares.first(self.events.tenants()) else { return false };
        let Some(event) = self.events.pop(tenant) else { return false };
        let before = clock.processor_time();
        self.handle_command(event);
        self.record_used(tenant, before, clock);
        true
    }

    fn receive_message(&mut self, clock: &dyn Clock) {
        if self.round.current.left == 0 || self.has_used_round(clock) {
            return self.begin_outputs(clock);
        }
        self.round.current.left -= 1;
        self.round.current.has_begun = true;
        let tenant = self.next_message_tenant().filter(|_| self.shard.is_shared());
        let before = tenant.map(|_| clock.processor_time());
        let is_taken = self.take_next_message();
        if let Some((tenant, before)) = tenant.zip(before) {
            self.record_used(tenant, before, clock);
        }
        if !is_taken {
            self.begin_outputs(clock);
        }
    }

    fn begin_outputs(&mut self, clock: &dyn Clock) {
        self.begin(Phase::Outputs, clock);
    }

    /// Submits the pending commit and returns the released outputs until none is left. The lease is checked before each,
    /// so that no output is performed or shown after it has expired, however long this process was paused.
    fn run_outputs(&mut self, clock: &dyn Clock) -> Step {
        if self.status.is_over {
            return self.run_stops();
        }
        if !std::mem::replace(&mut self.round.current.has_begun, true) {
            self.shard.flush();
            return Step::Worked;
        }
        if self.round.current.left < usize::MAX && self.has_used_round(clock) {
            return self.end_outputs();
        }
        self.round.current.left -= 1;
        match self.shard.next_output() {
            None => self.end_outputs(),
            Some(output) => self.translate(output).map_or(Step::Worked, Step::Perform),
        }
    }

    /// Performs the stops and kills of an expired session. Without its lease, another node may start the same attempts,
    /// so they end at once. Other outputs are dropped.
    fn run_stops(&mut self) -> Step {
        while let Some(output) = self.shard.next_output() {
            if matches!(output, Output::Stop { .. } | Output::Kill { .. })
                && let Some(stop) = self.translate(output)
            {
                return Step::Perform(stop);
            }
        }
        self.end_outputs()
    }

    fn end_outputs(&mut self) -> Step {
        match self.round.interrupted.take() {
            Some(interrupted) => {
                self.round.current = interrupted;
                Step::Worked
            }
            None => {
                self.round.current = Progress::default();
                Step::RoundOver
            }
        }
    }

    /// True if other work has waited for a round.
    fn has_used_round(&self, clock: &dyn Clock) -> bool {
        self.shard.is_shared() && clock.elapsed().saturating_sub(self.round.current.began) >= ROUND
    }

    /// Returns the next arrived event to handle at once. While several organizations share the node, the events of their
    /// executions wait for their turns instead.
    fn next_arrived(&mut self) -> Option<NodeEvent> {
        let event = self.events.arrived.pop_front()?;
        let is_queued = self.shard.is_shared() || !self.events.turns.is_empty();
        match self.subject(&event).filter(|_| is_queued) {
            Some((execution, tenant)) => {
                self.events.push(execution, tenant, event);
                None
            }
            None => Some(event),
        }
    }

    /// The execution that an event concerns, and its organization if known.
    fn subject(&self, event: &NodeEvent) -> Option<(ExecutionKey, Tenant)> {
        let (execution, organization) = match event {
            NodeEvent::Ask(_, event) => (event.execution(), organization_of(event)),
            NodeEvent::Shard(event) if event.is_of_execution() => (event.execution(), organization_of(event)),
            NodeEvent::Ended(execution, ..) | NodeEvent::Activate(execution) => (*execution, None),
            _ => return None,
        };
        Some((execution, organization.map_or_else(|| self.shard.tenant_key(execution), Tenant::of)))
    }
}
