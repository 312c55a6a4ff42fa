//! What a node holds of the store, as the engine's rim does it: its word is repeated, its name changes when that is used
//! up, and what is not its own is passed on.

use std::sync::Arc;

use mainspring_engine::{
    clock::Reading,
    lease::Terms,
    member::{Member, Word},
    shard::{Event, Fate, GivenUp},
};
use mainspring_kernel::{effect::Attempt, instance::Instance, key::ExecutionKey};
use mainspring_store::{Store, memory::MemoryStore};

use super::{
    Cluster, Happening,
    line::{Asked, Passing, What},
    misfortune::LEASE_MS,
    node::Inner,
};

/// For how long it is tried to pass on what a call has brought, and the time between two tries: those of the rim.
const TRIES_LAST_MS: u64 = 60_000;
const TRY_AGAIN_MS: u64 = 500;

/// Percent of words that are late when something else just was.
const LATE_AGAIN: u64 = 50;

/// An attempt of which it is to be found out what became of it.
pub(super) type ToAdopt = (ExecutionKey, Instance, Attempt);

impl Cluster {
    /// The node says its next word after so long, whatever was planned before.
    pub(super) fn speak_in(&mut self, node: usize, after_ms: u64) {
        let life = self.nodes[node].life;
        self.nodes[node].speaks_at = Some(self.now + after_ms);
        self.at(after_ms, Happening::Node(node, life, Inner::Speak));
    }

    /// One word at a time is on its way.
    pub(super) fn speak(&mut self, node: usize) {
        let place = &mut self.nodes[node];
        let (Some(at), Some(member)) = (place.speaks_at, place.member.clone()) else { return };
        if at > self.now {
            return;
        }
        place.speaks_at = None;
        let (given_up, is_leaving, sent_at) = (place.giving_up.clone(), place.is_draining, place.clocks.read(self.now));
        self.ask_store(node, What::Speak { member, given_up, is_leaving, sent_at });
    }

    pub(super) fn spoken(&mut self, node: usize, given_up: &GivenUp, word: Word) {
        let mut pause = Terms { lease_ms: LEASE_MS }.beat_every_ms();
        match word {
            Word::Heard(heard) => {
                self.nodes[node].giving_up.remove(given_up);
                self.handle(node, Event::Heard(heard));
                if !self.nodes[node].giving_up.fences.is_empty() {
                    pause = 0;
                }
            }
            // The same process and the same shard: its calls go on until they have stopped, and nothing is its own any more.
            Word::Lapsed => {
                pause = 0;
                self.nodes[node].giving_up = GivenUp::default();
                self.nodes[node].call_anew(node, Arc::new(self.store.clone()));
                self.handle(node, Event::Lapsed);
            }
            Word::Unheard(_) => {}
        }
        self.speak_in(node, pause);
    }

    /// Others wait for it: it is said at once, unless a word is on its way.
    pub(super) fn given_up(&mut self, node: usize, given_up: GivenUp) {
        self.handed_over += given_up.running.len() as u64;
        self.nodes[node].giving_up.extend(given_up);
        if self.nodes[node].speaks_at.is_some() {
            self.speak_in(node, 0);
        }
    }

    /// A word reaches the store, which does not ask whether whoever said it still lives. Whatever the node does after the
    /// store has heard it, it does when the answer is there: a clock that is read then shows that time.
    pub(super) fn hear_word(
        &mut self,
        (node, life): (usize, u32),
        member: &Member,
        (given_up, is_leaving): (GivenUp, bool),
        sent_at: Reading,
    ) -> Result<(), String> {
        let is_late = self.is_word_late(node);
        let delay = match self.holds_word_up(node) {
            true => self.hold_up(node),
            false if is_late => self.dice.below(LEASE_MS),
            false => self.delay_of_answer(),
        };
        let answered_at = self.nodes[node].clocks.read(self.now + delay);
        let (store, now) = (self.store.clone(), self.now);
        // Of two words in one millisecond the second cannot be told from the first.
        let was_heard = has_heard(&store, member.name(), now);
        let is_after = || !was_heard && has_heard(&store, member.name(), now);
        let word = member.speak(&given_up, is_leaving, || if is_after() { answered_at } else { sent_at });
        if let Word::Heard(heard) = &word {
            self.check_taking(member.name(), heard, is_leaving)?;
            self.ledger.took(&heard.name, &heard.taken)?;
        }
        self.at(delay, Happening::Node(node, life, Inner::Spoken(given_up, word)));
        Ok(())
    }

    /// Where words are ever late, those are that follow a late one or a slow commit: what is slow stays so for a while. What
    /// is given up when such a commit lands is given up amid a word, and the next one tells of it.
    fn is_word_late(&mut self, node: usize) -> bool {
        let is_slow = self.nodes[node].was_late || self.nodes[node].is_commit_slow;
        let percent = if is_slow && self.misfortune.late_words > 0 { LATE_AGAIN } else { self.misfortune.late_words };
        self.nodes[node].was_late = self.strikes(percent);
        self.nodes[node].was_late
    }

    /// What could not be passed on is tried again: for as long as others believe that it goes on here, if they do.
    pub(super) fn pass_on_again(&mut self, (node, life): (usize, u32), passing: Passing) {
        let place = &self.nodes[node];
        if !place.is_life(life) {
            return;
        }
        let is_awaited = passing.remote.is_some() && place.name() == passing.name && !place.is_draining;
        if self.now >= passing.since + TRIES_LAST_MS && !is_awaited {
            self.calls.let_go(passing.execution, &passing.input);
            return self.at(0, Happening::Node(node, life, Inner::PassedOn(passing.execution)));
        }
        let stands_still_ms = place.paused_until.saturating_sub(self.now);
        let what = What::PassOn(passing);
        self.at(TRY_AGAIN_MS.max(stands_still_ms), Happening::Store(Asked { node, life, what }));
    }

    pub(super) fn passed_on(&mut self, node: usize, execution: ExecutionKey) {
        let passing_on = &mut self.nodes[node].passing_on;
        if let Some(left) = passing_on.get_mut(&execution) {
            *left -= 1;
        }
        passing_on.retain(|_, left| *left > 0);
        self.look_before_adopting(node);
    }

    /// What an attempt has brought back may wait in the inbox: that is looked at before it is called interrupted. One that
    /// was begun here, before its partition was lost and came back, may not have ended yet.
    pub(super) fn adopt_behind_letters(&mut self, node: usize, to_adopt: ToAdopt) {
        let life = self.nodes[node].life;
        let name = (to_adopt.0, to_adopt.1.clone(), to_adopt.2.number);
        if self.calls.of(node, life).contains(&name) {
            let inner = Inner::Adopted(name.0, name.1, name.2, Fate::RunsOn);
            return self.at(0, Happening::Node(node, life, inner));
        }
        self.nodes[node].to_adopt.push(to_adopt);
        self.look_before_adopting(node);
    }

    /// One look for all that has gathered while the last one was on its way. What is still being posted from here comes
    /// first.
    fn look_before_adopting(&mut self, node: usize) {
        let place = &mut self.nodes[node];
        if place.is_looking_to_adopt {
            return;
        }
        let is_settled = |asked: &mut ToAdopt| !place.passing_on.contains_key(&asked.0);
        let asked: Vec<ToAdopt> = place.to_adopt.extract_if(.., is_settled).collect();
        if asked.is_empty() {
            return;
        }
        place.is_looking_to_adopt = true;
        let (partitions, generation) = (place.holds(), place.generation);
        self.ask_store(node, What::LookToAdopt(partitions, generation, asked));
    }

    pub(super) fn looked(&mut self, node: usize, asked: Vec<ToAdopt>, is_read: bool) {
        let place = &mut self.nodes[node];
        let life = place.life;
        place.is_looking_to_adopt = false;
        if !is_read {
            place.to_adopt.extend(asked);
        } else if !place.is_draining {
            for (execution, instance, attempt) in asked {
                let fate = super::work::adopt(&self.nodes[node].executors, &attempt);
                // What was left running is ended before the answer, and takes its time.
                let after = if self.strikes(self.misfortune.long_calls) { LEASE_MS } else { 20 };
                let (after, inner) =
                    (self.dice.below(after), Inner::Adopted(execution, instance, attempt.number, fate));
                self.at(after, Happening::Node(node, life, inner));
            }
        }
        self.look_before_adopting(node);
    }
}

/// Whether the store has heard a node at this very moment: only then is it alive for all of its lease from now on.
fn has_heard(store: &MemoryStore, name: &str, now: u64) -> bool {
    store.set_now(now + LEASE_MS - 1);
    let is_alive = store.table().is_ok_and(|table| table.nodes.iter().any(|node| node.name == name));
    store.set_now(now);
    is_alive
}
