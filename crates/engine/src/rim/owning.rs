//! What the node holds of a shared store: its word is repeated, its share taken, and what is not its own passed on.

use std::{collections::BTreeSet, sync::PoisonError, time::Duration};

use mainspring_kernel::{input::Input, key::ExecutionKey};
use mainspring_store::Fence;
use tokio::time::Instant;

use super::{Command, Rim};
use crate::{
    inbox,
    member::{Word, tick},
    shard::Event,
};

/// What a node holds, for those who ask from outside.
#[derive(Debug, Clone, Default)]
pub(crate) struct Owned {
    pub(crate) partitions: u32,
    pub(crate) held: BTreeSet<u32>,
    /// Why the store did not hear the last word, if it did not.
    pub(crate) trouble: Option<String>,
}

/// Tries to pass on what an effect has brought back, for a store that does not answer: a minute in all. After that the
/// node that holds the execution has long called the attempt interrupted.
const TRIES_TO_PASS_ON: u32 = 120;
const TRY_AGAIN: Duration = Duration::from_millis(500);

impl Rim {
    /// Says to the store that this node is alive. One word at a time is on its way.
    pub(super) fn speak(&mut self) {
        self.speak_at = None;
        let Some(member) = self.member.clone() else { return };
        let (given_up, is_leaving, commands) = (self.giving_up.clone(), self.draining, self.commands.clone());
        tokio::task::spawn_blocking(move || {
            let word = member.speak(&given_up, is_leaving, tick);
            let _ = commands.send(Command::Spoken(given_up, word));
        });
    }

    pub(super) fn spoken(&mut self, given_up: &[Fence], word: Word) {
        self.see_word(&word);
        let Some(member) = &self.member else { return };
        let mut pause = Duration::from_millis(member.terms().beat_every_ms());
        self.trouble = None;
        match word {
            Word::Heard(heard) => {
                self.giving_up.retain(|fence| !given_up.contains(fence));
                self.handle(Event::Heard(heard));
            }
            Word::Lapsed => {
                pause = Duration::ZERO;
                self.giving_up.clear();
                match member.reborn() {
                    Ok(reborn) => self.member = Some(reborn),
                    Err(error) => return self.stop(error.to_string()),
                }
                self.handle(Event::Lapsed);
            }
            // What is held runs out by itself.
            Word::Unheard(error) => self.trouble = Some(error.to_string()),
        }
        self.publish();
        self.speak_at = Some(Instant::now() + pause);
    }

    /// Tells those outside what is held.
    pub(super) fn publish(&self) {
        let (partitions, held) = (self.shard.partitions(), self.shard.held().collect());
        self.meters.partitions.held.set(self.shard.held().count() as f64);
        let owned = Owned { partitions, held, trouble: self.trouble.clone() };
        *self.owned.lock().unwrap_or_else(PoisonError::into_inner) = owned;
    }

    pub(super) fn lost(&mut self, partitions: &[u32]) {
        self.see_partitions("lost", partitions);
        self.publish();
    }

    pub(super) fn gained(&mut self, partitions: Vec<u32>) {
        self.see_partitions("gained", &partitions);
        self.publish();
        self.forget_letters();
        self.look_at(partitions, true);
    }

    /// Others wait for it: it is said at once, unless a word is on its way.
    pub(super) fn given_up(&mut self, fences: Vec<Fence>) {
        let partitions: Vec<u32> = fences.iter().map(|fence| fence.partition).collect();
        self.see_partitions("given up", &partitions);
        self.publish();
        self.giving_up.extend(fences);
        if self.speak_at.is_some() {
            self.speak_at = Some(Instant::now());
        }
    }

    pub(super) fn listen(&self) {
        if self.member.is_some() {
            let commands = self.commands.clone();
            let heard = move |partitions: &[u32]| drop(commands.send(Command::Hint(partitions.to_vec())));
            self.store.listen(Box::new(heard));
        }
    }

    pub(super) fn hear(&mut self, partitions: &[u32]) {
        if self.shard.held().any(|held| partitions.contains(&held)) {
            self.look_for_letters();
        }
    }

    pub(super) fn letters_posted(&mut self, partitions: &BTreeSet<u32>) {
        let held: BTreeSet<u32> = self.shard.held().collect();
        let elsewhere: Vec<u32> = partitions.difference(&held).copied().collect();
        if !elsewhere.is_empty() {
            self.store.hint(&elsewhere);
        }
        if !partitions.is_disjoint(&held) {
            self.look_for_letters();
        }
    }

    /// What an effect of ours brought back for an execution that is not ours any more. Whoever has it decides whether it
    /// still counts.
    pub(super) fn pass_on(&mut self, execution: ExecutionKey, input: Input) {
        let (store, [posted, abandoned]) = (self.store.clone(), self.meters.passed_on.clone());
        tokio::task::spawn_blocking(move || {
            for _ in 0..TRIES_TO_PASS_ON {
                if inbox::post(&*store, None, execution, &input).is_ok() {
                    return posted.increment(1);
                }
                std::thread::sleep(TRY_AGAIN);
            }
            abandoned.increment(1);
            tracing::error!(%execution, "a receipt for an execution that others hold could not be posted");
        });
    }

    /// What this node held is free at once.
    pub(super) async fn leave(self) {
        if let Some(member) = self.member {
            let _ = tokio::task::spawn_blocking(move || member.leave()).await;
        }
    }
}
