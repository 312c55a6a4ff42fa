//! Admission at a node: passes starts and ends to the state machines of [`admission`](crate::admission) and
//! [`live`](crate::live), and requests the reads and notifications that they need.

use std::collections::BTreeSet;

use mainspring_kernel::{
    decide::QUEUES_SINCE,
    failure::{Class, Failure},
    input::{Input, ORGANIZATION_IN_TRIGGER},
    key::ExecutionKey,
    record::Record,
    value::Value,
};

use super::{
    page::Opened,
    protocol::{NodeEvent, NodeOutput, Report},
    state::Node,
};
use crate::{
    admission::{self, AdmissionActions, Found, partition_of_organization},
    clock::MonotonicMs,
    shard::{CommittedFrame, Event, NewExecution, PendingInput, ShardError, Ticket},
};

impl Node {
    /// Passes an event to the shard. A start may be queued or refused by admission first.
    pub(super) fn enter(&mut self, event: Event) {
        let knows_queues = self.shard.decide_version() >= QUEUES_SINCE;
        let Event::Start(new_execution) = event else { return self.handle(event) };
        let Some(new_execution) = self.within_bound(new_execution) else { return };
        let is_here =
            admission::organization_of(&new_execution.start).is_none_or(|organization| self.counts(organization));
        let begins = match &mut self.admission {
            Some(admission) if knows_queues => admission.machine.start(new_execution, is_here),
            _ => Some(new_execution),
        };
        if let Some(new_execution) = begins {
            self.handle(Event::Start(new_execution));
        }
        self.start_wanted_reads();
    }

    /// Returns false for a detached start while its organization is at its bound: its message stays in the inbox.
    pub(super) fn has_place(&mut self, opened: &Opened) -> bool {
        let (Opened::Event(event), Some(admission)) = (opened, &mut self.admission) else { return true };
        let Event::Start(new_execution) = &**event else { return true };
        let is_awaited = new_execution.start.lineage.as_ref().is_some_and(|lineage| lineage.parent.is_some());
        let organization = new_execution.start.trigger.get(ORGANIZATION_IN_TRIGGER).and_then(Value::as_text);
        let Some(organization) = organization.filter(|_| !is_awaited && !self.shard.has(new_execution.execution))
        else {
            return true;
        };
        let (has_room, is_due) = admission.unfinished.has_room(organization, self.now.monotonic);
        if is_due {
            let organization = organization.to_owned();
            self.count_live(organization);
        }
        has_room
    }

    /// Returns the start unless its organization has reached its bound of unfinished executions. At the bound a caller
    /// is refused, and a step that waits for the child fails. The step cannot wait for room, since the executions that
    /// would make room may wait for the step.
    fn within_bound(&mut self, new_execution: Box<NewExecution>) -> Option<Box<NewExecution>> {
        let organization = new_execution.start.trigger.get(ORGANIZATION_IN_TRIGGER).and_then(Value::as_text);
        let (Some(admission), Some(organization)) = (&mut self.admission, organization) else {
            return Some(new_execution);
        };
        if self.shard.has(new_execution.execution) {
            return Some(new_execution);
        }
        let (answer, is_due) = admission.unfinished.begin(organization, self.now.monotonic);
        if is_due {
            let organization = organization.to_owned();
            self.count_live(organization);
        }
        let Err(most) = answer else { return Some(new_execution) };
        if let Some(ticket) = new_execution.ticket {
            self.outputs.push_back(NodeOutput::Reply(ticket, Err(ShardError::TooMany(most))));
            return None;
        }
        // A detached start was checked by `has_place`. It starts even if others have started since.
        if new_execution.start.lineage.as_ref().is_none_or(|lineage| lineage.parent.is_none()) {
            return Some(new_execution);
        }
        let message = format!(
            "{most} executions of the organization have not ended, and no other may begin: wait for some to end, or start \
             fewer at a time"
        );
        let failure = Failure::new(Class::Policy, format!("organization_executions_exceeded:{most}"), message);
        self.handle(Event::TurnAway(new_execution, failure));
        None
    }

    fn count_live(&mut self, organization: String) {
        self.outputs.push_back(NodeOutput::CountUnfinished(organization));
    }

    pub(super) fn counted_live(&mut self, organization: &str, found: Option<(u32, u64)>) {
        if let Some(admission) = &mut self.admission {
            admission.unfinished.counted(organization, found);
        }
    }

    /// True if this node counts the running executions of an organization.
    fn counts(&self, organization: &str) -> bool {
        let partition = partition_of_organization(organization, self.shard.partitions());
        self.is_alone() || self.shard.held().any(|held| held == partition)
    }

    fn start_wanted_reads(&mut self) {
        let Some(admission) = &mut self.admission else { return };
        for organization in admission.machine.take_wanted_reads() {
            let over = admission.machine.drained(&organization);
            self.outputs.push_back(NodeOutput::ReadOrganization(organization, over));
        }
    }

    pub(super) fn found(&mut self, organization: &str, found: Found) {
        if !self.counts(organization) {
            return self.forget_organizations();
        }
        if let Err(why) = &found {
            self.report(Report::OrganizationUnread(organization.to_owned(), why.clone()));
        }
        if let Some(admission) = &mut self.admission {
            let shard = &self.shard;
            let actions = admission.machine.on_read(organization, found, |execution| shard.has(execution));
            self.run_actions(actions);
        }
        self.start_wanted_reads();
    }

    fn run_actions(&mut self, actions: AdmissionActions) {
        let AdmissionActions { begin, refuse, admit } = actions;
        for new_execution in begin {
            self.handle(Event::Start(Box::new(new_execution)));
        }
        for (ticket, why) in refuse {
            self.outputs.push_back(NodeOutput::Reply(ticket, Err(ShardError::Store(why))));
        }
        self.admit(admit);
    }

    /// Queues the admissions, since each may produce outputs of its own.
    fn admit(&mut self, executions: Vec<ExecutionKey>) {
        let (here, mut elsewhere): (Vec<_>, Vec<_>) = executions.into_iter().partition(|key| self.shard.holds(*key));
        for execution in here {
            self.receive(NodeEvent::Shard(Event::Take(execution, PendingInput::without_reply(Input::Admit))));
        }
        if let Some(admission) = &mut self.admission {
            elsewhere.retain(|execution| admission.sent.add(*execution, self.now.monotonic));
        }
        // A node of an older release would quarantine the execution, since it does not know this input.
        if !elsewhere.is_empty() && self.shard.decide_version() >= QUEUES_SINCE {
            self.outputs.push_back(NodeOutput::Admit(elsewhere));
        }
    }

    pub(super) fn answered(&mut self, ticket: Ticket, has_begun: bool) {
        let Some(admission) = &mut self.admission else { return };
        let admit = admission.machine.answered(ticket, has_begun);
        self.admit(admit);
        self.start_wanted_reads();
    }

    /// Notifies the counting node of an execution that is queued or has ended.
    pub(super) fn count(&mut self, frame: &CommittedFrame) {
        if matches!(frame.records.last(), Some(Record::Ended { .. })) {
            self.free_place(frame.execution);
        }
        // A child in the slot of its parent is not announced: the next read of the counting node removes it.
        if let Some(organization) = &frame.place_of {
            self.notify_counting_node(organization);
        }
    }

    /// Stops counting a quarantined execution.
    pub(super) fn count_out(&mut self, execution: ExecutionKey, organization: Option<String>) {
        self.free_place(execution);
        if let Some(organization) = organization {
            self.notify_counting_node(&organization);
        }
    }

    /// True if this engine enforces limits.
    pub(super) fn counts_places(&self) -> bool {
        self.admission.is_some()
    }

    fn free_place(&mut self, execution: ExecutionKey) {
        let Some(admission) = &mut self.admission else { return };
        let admit = admission.machine.ended(execution);
        self.admit(admit);
        self.start_wanted_reads();
    }

    fn notify_counting_node(&mut self, organization: &str) {
        if self.admission.is_some() && !self.counts(organization) {
            let partition = partition_of_organization(organization, self.shard.partitions());
            self.outputs.push_back(NodeOutput::NotifyNodes(vec![partition]));
        }
    }

    pub(super) fn want_reads_of(&mut self, organizations: &BTreeSet<String>) {
        let counted: Vec<_> = organizations.iter().filter(|organization| self.counts(organization)).collect();
        if let Some(admission) = &mut self.admission {
            admission.is_searching_queues = false;
            counted.into_iter().for_each(|organization| admission.machine.want(organization));
        }
        self.start_wanted_reads();
    }

    pub(super) fn bounds_changed(&mut self, organization: &str) {
        if let Some(admission) = &mut self.admission {
            admission.machine.bounds_changed(organization);
        }
        self.start_wanted_reads();
    }

    /// A notification about organizations of these partitions. It names partitions, so it may concern others in them.
    pub(super) fn on_organizations_notified(&mut self, partitions: &[u32]) {
        let Some(admission) = &mut self.admission else { return };
        admission.notifications.add(partitions, self.now.monotonic);
        self.follow_notifications();
    }

    /// Reads the organizations of notifications whose time has come.
    pub(super) fn follow_notifications(&mut self) {
        let (spread, now) = (self.shard.partitions(), self.now.monotonic);
        let Some(admission) = &mut self.admission else { return };
        let Some(partitions) = admission.notifications.follow(now) else { return };
        let is_meant = |organization: &str| partitions.contains(&partition_of_organization(organization, spread));
        admission.machine.want_those_of(is_meant);
        self.start_wanted_reads();
        self.search_queues();
    }

    /// The time at which the next notifications are followed.
    pub(super) fn next_notifications(&self) -> Option<MonotonicMs> {
        self.admission.as_ref()?.notifications.follow_at
    }

    /// Compares the counts with the store periodically and finds queued executions.
    pub(super) fn refresh_organizations(&mut self) {
        if let Some(admission) = &mut self.admission {
            admission.machine.want_all();
            admission.unfinished.forget_unused();
        }
        self.start_wanted_reads();
        self.search_queues();
    }

    /// Finds executions that other nodes have queued without a notification.
    pub(super) fn search_queues_of_others(&mut self) {
        if !self.is_alone() {
            self.search_queues();
        }
    }

    pub(super) fn search_queues(&mut self) {
        let Some(admission) = self.admission.as_mut().filter(|admission| !admission.is_searching_queues) else {
            return;
        };
        admission.is_searching_queues = true;
        self.outputs.push_back(NodeOutput::ReadQueues);
    }

    /// Stops counting the organizations that another node counts from now on.
    pub(super) fn forget_organizations(&mut self) {
        let Some(mut admission) = self.admission.take() else { return };
        let begin = admission.machine.keep(|organization| self.counts(organization));
        self.admission = Some(admission);
        for new_execution in begin {
            // Queued behind the outputs that are being performed.
            self.receive(NodeEvent::Shard(Event::Start(Box::new(new_execution))));
        }
    }
}
