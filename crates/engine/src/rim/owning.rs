//! Ownership of partitions: sends heartbeats, hands partitions off, and forwards receipts to executions of other nodes.
//! The shard and `lease` decide which partitions change their owner.

use std::{
    collections::{BTreeSet, btree_map::Entry},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use mainspring_effects::AttemptName;
use mainspring_kernel::{effect::Attempt, input::Input, instance::Instance, key::ExecutionKey};
use mainspring_store::{CommitError, PartOutcome, RemoteAttempt, Store, StoreError};
use tokio::time::Instant;

use super::{
    Command, Rim, failing,
    looking::{Scope, ToAdopt},
};
use crate::{
    inbox,
    lease::Tick,
    member::{Word, reading, tick},
    shard::{Event, Fate, GivenUp},
};

/// The partitions of this node, as callers of the engine see them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Owned {
    pub(crate) partitions: u32,
    pub(crate) held: BTreeSet<u32>,
    /// The condition that keeps the node from working, if any.
    pub(crate) trouble: Option<Trouble>,
}

/// A condition that keeps a node from working: a component for readers who may not see the reason, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// `store`, `clock` or `machine`.
    pub component: &'static str,
    /// The reason, which can name addresses and files of the store.
    pub why: String,
}

impl Trouble {
    pub(super) fn of(component: &'static str, why: impl Into<String>) -> Self {
        Self { component, why: why.into() }
    }
}

/// Time for which a receipt is forwarded again and again while the store does not answer. At its end, the owner of the
/// execution has marked the attempt as interrupted. It is a duration and not a number of tries: a try at a silent
/// server takes minutes, and a draining node waits for the last one.
const TRIES_LAST: Duration = Duration::from_secs(60);
const TRY_AGAIN: Duration = Duration::from_millis(500);

impl Rim {
    /// Sends a heartbeat. At most one is in progress.
    pub(super) fn speak(&mut self) {
        self.speak_at = None;
        let Some(member) = self.member.clone() else { return };
        let lease_ms = member.terms().lease_ms;
        if !self.shard.has_to_write() {
            self.writing.forget();
        }
        if !self.is_unheard
            && !self.draining
            && let Some(silence) = self.writing.silence(tick(), lease_ms)
        {
            return self.fall_silent(silence);
        }
        let (given_up, is_leaving, words) = (self.giving_up.clone(), self.draining, self.words.0.clone());
        let speak = move || {
            let say = || member.speak(&given_up, is_leaving, reading);
            // After a panic the next heartbeat is sent all the same.
            let word = catch_unwind(AssertUnwindSafe(say)).unwrap_or_else(|panic| {
                Word::Unheard(StoreError::Unavailable(format!("the heartbeat panicked: {}", failing::text(&*panic))))
            });
            let _ = words.send((given_up, word));
        };
        // Uses a thread of its own: behind blocking tasks of the runtime, the lease would expire first.
        if let Err(error) = std::thread::Builder::new().name("word".into()).spawn(speak) {
            self.trouble = Some(Trouble::of("machine", format!("the heartbeat thread cannot be started: {error}")));
            self.publish();
            self.speak_at = Some(Instant::now() + TRY_AGAIN);
        }
    }

    /// Sends the heartbeat when it is due, and handles the result of the last one. It is called between any two steps
    /// of the driver, so that neither waits behind other commands.
    pub(super) fn keep_alive(&mut self) {
        if self.member.is_none() {
            return;
        }
        if self.speak_at.is_some_and(|at| at <= Instant::now()) {
            self.speak();
        }
        while let Ok((given_up, word)) = self.words.1.try_recv() {
            self.spoken(&given_up, word);
        }
    }

    pub(super) fn spoken(&mut self, given_up: &GivenUp, word: Word) {
        self.see_word(&word);
        let Some(member) = &self.member else { return };
        let mut pause = Duration::from_millis(member.terms().beat_every_ms());
        self.trouble = None;
        match word {
            Word::Heard(heard) => {
                self.giving_up.remove(given_up);
                self.end_what_ended_early();
                self.trouble = heard.clock.apart().map(|apart| Trouble::of("clock", apart.to_string()));
                self.handle(Event::Heard(heard));
                if !self.giving_up.fences.is_empty() {
                    pause = Duration::ZERO;
                }
            }
            Word::Lapsed => {
                pause = Duration::ZERO;
                self.giving_up = GivenUp::default();
                self.ended_early.clear();
                self.life.end();
                self.life = Arc::default();
                match member.reborn() {
                    Ok(reborn) => self.member = Some(reborn),
                    Err(error) => return self.stop(error.to_string()),
                }
                self.writing.forget();
                self.handle(Event::Lapsed);
            }
            // Another release has upgraded the store. It would not understand the frames of this release.
            Word::Unheard(error @ StoreError::Newer { .. }) => return self.stop(error.to_string()),
            // The lease expires by itself.
            Word::Unheard(error) => self.trouble = Some(Trouble::of("store", error.to_string())),
        }
        self.publish();
        self.speak_at = Some(Instant::now() + pause);
    }

    /// Drops all partitions of a node whose heartbeats succeed but whose commits fail, and sends no heartbeat until its
    /// lease has expired, so that other nodes acquire them.
    fn fall_silent(&mut self, silence: Duration) {
        let why = "the store hears this node and takes no commit of it: others take its partitions";
        tracing::error!(silent_for_ms = silence.as_millis() as u64, why, "the node releases its partitions");
        self.trouble = Some(Trouble::of("store", why));
        self.handle(Event::Lapsed);
        self.publish();
        self.speak_at = Some(Instant::now() + silence);
    }

    /// Sets the condition that readiness reports.
    pub(super) fn set_trouble(&mut self, trouble: Option<Trouble>) {
        self.trouble = trouble;
        self.publish();
    }

    /// Publishes the owned partitions to callers of the engine.
    pub(super) fn publish(&self) {
        let (partitions, held) = (self.shard.partitions(), self.shard.held().collect());
        self.meters.partitions.held.set(self.shard.held().count() as f64);
        let owned = Owned { partitions, held, trouble: self.trouble.clone() };
        *self.owned.lock().unwrap_or_else(PoisonError::into_inner) = owned;
    }

    pub(super) fn lost(&mut self, partitions: &[u32]) {
        self.see_partitions("lost", partitions);
        self.publish();
        self.forget_organizations();
    }

    pub(super) fn gained(&mut self, partitions: Vec<u32>) {
        self.see_partitions("gained", &partitions);
        self.publish();
        self.look_at_gained(&partitions);
        self.want_quarantined();
    }

    /// Sends a heartbeat at once, since other nodes wait for the partitions, unless one is in progress.
    pub(super) fn given_up(&mut self, given_up: GivenUp) {
        let partitions: Vec<u32> = given_up.fences.iter().map(|fence| fence.partition).collect();
        self.see_partitions("given up", &partitions);
        self.meters.handed_over.increment(given_up.running.len() as u64);
        self.publish();
        self.giving_up.extend(given_up);
        if self.speak_at.is_some() {
            self.speak_at = Some(Instant::now());
        }
        self.forget_organizations();
    }

    pub(super) fn listen(&self) {
        if self.member.is_some() {
            let commands = self.commands.clone();
            let heard = move |partitions: &[u32]| drop(commands.send(Command::Hint(partitions.to_vec())));
            self.store.subscribe(Box::new(heard));
        }
    }

    pub(super) fn hear(&mut self, partitions: &[u32]) {
        if self.shard.held().any(|held| partitions.contains(&held)) {
            self.look_for_letters();
            self.hear_of_organizations(partitions);
        }
    }

    pub(super) fn letters_posted(&mut self, partitions: &BTreeSet<u32>) {
        let held: BTreeSet<u32> = self.shard.held().collect();
        let elsewhere: Vec<u32> = partitions.difference(&held).copied().collect();
        if !elsewhere.is_empty() {
            self.store.notify(&elsewhere);
        }
        if !partitions.is_disjoint(&held) {
            self.look_for_letters();
        }
    }

    /// Sends a receipt to the inbox of an execution that another node owns. The owner decides if it still counts. The
    /// receipt of a recorded remote attempt is retried for as long as other nodes consider the attempt running.
    pub(super) fn pass_on(&mut self, execution: ExecutionKey, input: Input, remote: Option<RemoteAttempt>) {
        let (store, commands, life) = (self.store.clone(), self.commands.clone(), self.life.clone());
        let node = self.member.as_ref().map_or_else(String::new, |member| member.name().to_owned());
        let [posted, abandoned] = self.meters.passed_on.clone();
        *self.passing_on.entry(execution).or_default() += 1;
        let (receipt, of) = (Arc::new(input), remote.clone());
        // The attempt's end is recorded after the message is enqueued: a node that sees the end finds the receipt. If
        // recording fails, the message itself ends the attempt.
        let key = *self.loader.key();
        let post = move |store: &dyn Store, input: &Input| {
            let is_posted = inbox::post(store, None, &key, (execution, input), None).is_ok();
            let _ = of.as_ref().filter(|_| is_posted).map(|of| store.end_remote(&node, std::slice::from_ref(of)));
            is_posted
        };
        let post = Arc::new(post);
        tokio::spawn(async move {
            let began = Instant::now();
            loop {
                let (post, store, receipt) = (post.clone(), store.clone(), receipt.clone());
                // After a panic it is unknown if the message was enqueued.
                if tokio::task::spawn_blocking(move || post(&*store, &receipt)).await.unwrap_or(false) {
                    posted.increment(1);
                    break;
                }
                let is_awaited = remote.is_some() && !life.is_over() && !life.is_leaving();
                if began.elapsed() >= TRIES_LAST && !is_awaited {
                    abandoned.increment(1);
                    tracing::error!(%execution, "a receipt for an execution that others hold could not be posted");
                    break;
                }
                // Sleeps without a blocking thread, since waiting tasks would occupy all of them.
                tokio::time::sleep(TRY_AGAIN).await;
            }
            let _ = commands.send(Command::PassedOn(execution, remote));
        });
    }

    /// Removes the process record of the attempt here, since the owner of the execution has none.
    pub(super) fn passed_on(&mut self, execution: ExecutionKey, remote: Option<RemoteAttempt>) {
        if let Entry::Occupied(mut left) = self.passing_on.entry(execution) {
            *left.get_mut() -= 1;
            if *left.get() == 0 {
                left.remove();
            }
        }
        self.look_before_adopting();
        let Some(remote) = remote else { return };
        let RemoteAttempt { execution, step, number } = &remote;
        self.executors.forget(AttemptName { execution: *execution, step, number: *number });
        // Ended after the heartbeat that records it as running: the row would otherwise be written after its end and
        // remain.
        if self.giving_up.running.contains(&remote) {
            self.ended_early.push(remote);
        }
    }

    /// Records the end of attempts that the store lists as running here although they have ended.
    fn end_what_ended_early(&mut self) {
        let told = self.ended_early.extract_if(.., |attempt| !self.giving_up.running.contains(attempt));
        let (ended, store): (Vec<_>, _) = (told.collect(), self.store.clone());
        let Some(member) = self.member.as_ref().filter(|_| !ended.is_empty()) else { return };
        let node = member.name().to_owned();
        tokio::task::spawn_blocking(move || store.end_remote(&node, &ended));
    }

    /// Requests that another node stops an attempt. A lost request is repeated with the next heartbeat.
    pub(super) fn stop_remote(&self, attempt: RemoteAttempt) {
        let store = self.store.clone();
        tokio::task::spawn_blocking(move || store.stop_remote(&attempt));
    }

    /// Recovers an attempt that the shard does not know to be running here. Another node may have enqueued its receipt,
    /// or the receipt arrived while the execution was quarantined, so the inbox is read first. An attempt that still
    /// runs here, from before its partition was lost or its execution quarantined, is awaited.
    pub(super) fn adopt_behind_letters(&mut self, execution: ExecutionKey, instance: Instance, attempt: Attempt) {
        let name = (execution, instance, attempt.number);
        if self.running.contains_key(&name) {
            let (execution, instance, attempt) = name;
            let adopted = Event::Adopted { execution, instance, attempt, fate: Fate::RunsOn };
            // Enqueued, since it may produce outputs of its own.
            let _ = self.commands.send(Command::Event(adopted));
            return;
        }
        let (execution, instance, _) = name;
        self.inbox.to_adopt.push((execution, instance, attempt));
        self.look_before_adopting();
    }

    /// Starts one pass for all attempts that gathered during the last one. Attempts of an execution whose receipts are
    /// still being enqueued here wait for that.
    pub(super) fn look_before_adopting(&mut self) {
        if self.inbox.to_adopt.iter().any(|asked| self.is_settled(asked)) {
            self.read_inbox(Scope::All);
        }
    }

    /// Takes the attempts to recover after a pass from the start of the inbox.
    pub(super) fn take_to_adopt(&mut self) -> Vec<ToAdopt> {
        let all = std::mem::take(&mut self.inbox.to_adopt);
        let (asked, later) = all.into_iter().partition(|asked| self.is_settled(asked));
        self.inbox.to_adopt = later;
        asked
    }

    fn is_settled(&self, (execution, ..): &ToAdopt) -> bool {
        !self.passing_on.contains_key(execution)
    }

    /// Releases all partitions at once.
    pub(super) async fn leave(self) {
        self.life.end();
        if let Some(member) = self.member {
            let _ = tokio::task::spawn_blocking(move || member.leave()).await;
        }
    }
}

/// Tracks how long a node with pending writes has written nothing.
#[derive(Debug, Default)]
pub(super) struct Writing {
    /// Time of the first failed commit since the last answered one.
    fails_since: Option<Tick>,
    /// Consecutive times at which the node dropped all partitions for this reason.
    silences: u32,
}

/// Longest silence of a node that cannot write, in leases. The silence doubles each time, since the node acquires
/// partitions again afterwards.
const SILENT_LEASES_MAX: u64 = 8;

impl Writing {
    /// Handles the result of a commit. A commit refused for its content shows that the store works.
    pub(super) fn answered(&mut self, now: Tick, answer: &Result<Vec<PartOutcome>, CommitError>) {
        match answer {
            Ok(_) => *self = Self::default(),
            Err(CommitError::Refused(_)) => self.fails_since = None,
            Err(_) => {
                self.fails_since.get_or_insert(now);
            }
        }
    }

    /// Returns the duration of the silence, if nothing was written for the length of a lease.
    fn silence(&mut self, now: Tick, lease_ms: u64) -> Option<Duration> {
        self.fails_since.take_if(|since| now.0 >= since.0.saturating_add(lease_ms))?;
        let leases = (2 << self.silences.min(8)).min(SILENT_LEASES_MAX);
        self.silences += 1;
        Some(Duration::from_millis(lease_ms.saturating_mul(leases)))
    }

    /// Resets the failure time: no write is pending, or the node has joined again.
    fn forget(&mut self) {
        self.fails_since = None;
    }
}

/// Liveness of the node, for threads that work for it.
#[derive(Debug, Default)]
pub(super) struct Life {
    is_leaving: AtomicBool,
    is_over: AtomicBool,
}

impl Life {
    pub(super) fn leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
    }

    fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Relaxed)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_writes_nothing_for_a_lease_falls_silent_and_longer_each_time() {
        let failed = || Err(CommitError::NotWritten("it may only read".into()));
        let mut writing = Writing::default();
        let seconds = |seconds: u64| Some(Duration::from_secs(seconds));
        assert_eq!(writing.silence(Tick(99_000), 10_000), None, "nothing to write is no failure");
        writing.answered(Tick(100_000), &failed());
        writing.answered(Tick(105_000), &failed());
        assert_eq!(writing.silence(Tick(109_999), 10_000), None);
        assert_eq!(writing.silence(Tick(110_000), 10_000), seconds(20));
        for (round, expected) in [(2, 40), (3, 80), (4, 80), (100, 80)] {
            writing.answered(Tick(round * 100_000), &failed());
            assert_eq!(writing.silence(Tick(round * 100_000 + 10_000), 10_000), seconds(expected));
        }
        writing.answered(Tick(1), &failed());
        writing.answered(Tick(2), &Err(CommitError::Refused("duplicate key".into())));
        assert_eq!(
            writing.silence(Tick(99_000), 10_000),
            None,
            "what is refused for its content is no store that fails"
        );
        writing.answered(Tick(3), &Ok(vec![]));
        writing.answered(Tick(4), &failed());
        assert_eq!(
            writing.silence(Tick(10_004), 10_000),
            seconds(20),
            "a commit that is written begins the count anew"
        );
    }
}
