//! Who may begin: the rim carries what the machine of [`admission`](crate::admission) asks for and says.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use mainspring_kernel::{decide::QUEUES_SINCE, input::Input, key::ExecutionKey, record::Record};

use super::{Command, Rim};
use crate::{
    admission::{self, Admission, Found, Limits, Turnout, partition_of_organization},
    inbox,
    member::tick,
    shard::{Event, Moment, Queued, ShardError, Ticket},
};

/// What the rim needs for it.
pub(super) struct Admitting {
    machine: Admission,
    limits: Arc<dyn Limits>,
    is_looking_for_queues: bool,
    /// When a hint was last followed.
    heard_at: Option<Instant>,
}

/// Hints are of letters, too, which come all the time: what one of them is not followed for is found by looking anyway.
const PAUSE_OF_HEARING: Duration = Duration::from_millis(200);

impl Admitting {
    pub(super) fn new(limits: Arc<dyn Limits>) -> Self {
        Self { machine: Admission::default(), limits, is_looking_for_queues: false, heard_at: None }
    }
}

impl Rim {
    /// A start may have to wait; everything else goes on to the shard.
    pub(super) fn enter(&mut self, event: Event) {
        let knows_queues = self.shard.decide_version() >= QUEUES_SINCE;
        let Event::Submit(submission) = event else { return self.handle(event) };
        let is_here = admission::counted(&submission.start).is_none_or(|organization| self.counts(organization));
        let begins = match &mut self.admitting {
            Some(admitting) if knows_queues => admitting.machine.start(submission, is_here),
            _ => Some(submission),
        };
        if let Some(submission) = begins {
            self.handle(Event::Submit(submission));
        }
        self.look_where_wanted();
    }

    /// Whether this node counts what runs of an organisation.
    fn counts(&self, organization: &str) -> bool {
        let partition = partition_of_organization(organization, self.shard.partitions());
        self.member.is_none() || self.shard.held().any(|held| held == partition)
    }

    fn look_where_wanted(&mut self) {
        let Some(admitting) = &mut self.admitting else { return };
        for organization in admitting.machine.looks() {
            let (store, limits, commands) = (self.store.clone(), admitting.limits.clone(), self.commands.clone());
            let loads = self.loads.clone();
            tokio::spawn(async move {
                // Nobody closes it.
                let permit = loads.acquire_owned().await;
                tokio::task::spawn_blocking(move || {
                    let look = || admission::find(&*store, &*limits, &organization);
                    // Whoever waits for a look that broke off would wait for ever.
                    let found =
                        catch_unwind(AssertUnwindSafe(look)).unwrap_or_else(|_| Err("the look broke off".into()));
                    drop(permit);
                    let _ = commands.send(Command::Found(organization, found));
                });
            });
        }
    }

    pub(super) fn found(&mut self, organization: &str, found: Found) {
        self.shard.expire(tick());
        if !self.counts(organization) {
            return self.forget_organizations();
        }
        if let Err(why) = &found {
            tracing::warn!(organization, why, "how much of an organization runs could not be found out");
        }
        if let Some(admitting) = &mut self.admitting {
            let shard = &self.shard;
            let turnout = admitting.machine.looked(organization, found, |execution| shard.has(execution));
            self.turn_out(turnout);
        }
        self.look_where_wanted();
    }

    fn turn_out(&mut self, turnout: Turnout) {
        let Turnout { begin, refuse, admit } = turnout;
        for submission in begin {
            self.handle(Event::Submit(Box::new(submission)));
        }
        for (ticket, why) in refuse {
            self.waiting.remove(&ticket).map(|sender| sender.send(Err(ShardError::Store(why))));
        }
        self.admit(admit);
    }

    /// Behind what is being carried out: it may give outputs of its own.
    fn admit(&self, executions: Vec<ExecutionKey>) {
        let (here, elsewhere): (Vec<_>, Vec<_>) = executions.into_iter().partition(|key| self.shard.holds(*key));
        for execution in here {
            let queued = Queued::silent(Input::Admit);
            let _ = self.commands.send(Command::Event(Event::Take(execution, queued)));
        }
        if elsewhere.is_empty() {
            return;
        }
        // A word that is not heard is said again at the next look.
        let store = self.store.clone();
        tokio::task::spawn_blocking(move || {
            elsewhere
                .into_iter()
                .try_for_each(|execution| inbox::post(&*store, None, execution, &Input::Admit).map(drop))
        });
    }

    pub(super) fn answered(&mut self, ticket: Ticket, has_begun: bool) {
        let Some(admitting) = &mut self.admitting else { return };
        let (elsewhere, admit) = admitting.machine.answered(ticket, has_begun);
        if let Some(organization) = elsewhere {
            self.store.hint(&[partition_of_organization(&organization, self.shard.partitions())]);
        }
        self.admit(admit);
    }

    pub(super) fn count_end(&mut self, moment: &Moment) {
        let has_ended = matches!(moment.records.last(), Some(Record::Ended { .. }));
        let Some(admitting) = self.admitting.as_mut().filter(|_| has_ended) else { return };
        let admit = admitting.machine.ended(moment.execution);
        self.admit(admit);
    }

    pub(super) fn want_to_look_at(&mut self, organizations: &BTreeSet<String>) {
        let counted: Vec<_> = organizations.iter().filter(|organization| self.counts(organization)).collect();
        if let Some(admitting) = &mut self.admitting {
            admitting.is_looking_for_queues = false;
            counted.into_iter().for_each(|organization| admitting.machine.want(organization));
        }
        self.look_where_wanted();
    }

    pub(super) fn bounds_changed(&mut self, organization: &str) {
        if let Some(admitting) = &mut self.admitting {
            admitting.machine.bounds_changed(organization);
        }
        self.look_where_wanted();
    }

    /// Somebody says that there is something new about organisations of these partitions, or about others in them.
    pub(super) fn hear_of_organizations(&mut self, partitions: &[u32]) {
        let (spread, now) = (self.shard.partitions(), Instant::now());
        let Some(admitting) = &mut self.admitting else { return };
        if admitting.heard_at.is_none_or(|at| now.duration_since(at) >= PAUSE_OF_HEARING) {
            admitting.heard_at = Some(now);
            let is_meant = |organization: &str| partitions.contains(&partition_of_organization(organization, spread));
            admitting.machine.want_those_of(is_meant);
            self.look_where_wanted();
            self.look_for_queues();
        }
    }

    /// What is known is compared with the store every now and then, and what waits there is found.
    pub(super) fn look_at_organizations(&mut self) {
        if let Some(admitting) = &mut self.admitting {
            admitting.machine.want_all();
        }
        self.look_where_wanted();
        self.look_for_queues();
    }

    /// What others put into queues nobody here is told of.
    pub(super) fn look_for_queues_of_others(&mut self) {
        if self.member.is_some() {
            self.look_for_queues();
        }
    }

    pub(super) fn look_for_queues(&mut self) {
        let Some(admitting) = self.admitting.as_mut().filter(|admitting| !admitting.is_looking_for_queues) else {
            return;
        };
        admitting.is_looking_for_queues = true;
        let (store, commands) = (self.store.clone(), self.commands.clone());
        tokio::task::spawn_blocking(move || {
            let look = || admission::queues(&*store).unwrap_or_default();
            let found = catch_unwind(AssertUnwindSafe(look)).unwrap_or_default();
            let _ = commands.send(Command::Organizations(found));
        });
    }

    /// What was counted here and is others' to count from now on.
    pub(super) fn forget_organizations(&mut self) {
        let Some(mut admitting) = self.admitting.take() else { return };
        let begin = admitting.machine.keep(|organization| self.counts(organization));
        self.admitting = Some(admitting);
        for submission in begin {
            // Behind what is being carried out.
            let _ = self.commands.send(Command::Event(Event::Submit(Box::new(submission))));
        }
    }
}
