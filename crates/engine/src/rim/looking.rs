//! Looking for what waits in the store: letters and timers. Whatever was heard of them, it is looked at again every now
//! and then: what is missed once is found later.

use std::collections::BTreeSet;

use mainspring_store::{Arrived, Most};
use tokio::net::UnixDatagram;

use super::{Command, LOOK_FOR_LETTERS, Rim};
use crate::{
    engine::now_ms,
    inbox::{self, Untaken},
};

/// How far ahead timers are taken from the store.
const WINDOW_MS: u64 = 60_000;

/// Letters and timers read at a time.
const ROWS_AT_A_TIME: usize = 10_000;

/// Letters read at a time, by count and by bytes.
const LETTERS_AT_A_TIME: Most = Most::of(ROWS_AT_A_TIME);

impl Rim {
    pub(super) fn look_for_timers(&self) {
        self.look_at(self.shard.held().collect(), false);
    }

    /// Letters that came since the last ones.
    pub(super) fn look_for_letters(&self) {
        let (partitions, after): (Vec<u32>, _) = (self.shard.held().collect(), self.letters_seen);
        if partitions.is_empty() {
            return;
        }
        let (store, commands) = (self.store.clone(), self.commands.clone());
        let meters = self.meters.inbox.clone();
        tokio::task::spawn_blocking(move || {
            if let Ok(letters) = store.inbox(&partitions, after, LETTERS_AT_A_TIME) {
                meters.look(&letters, now_ms());
                if !letters.is_empty() {
                    let _ = commands.send(Command::Letters(letters, false));
                }
            }
        });
    }

    /// Where others write as well, a letter may come to light behind one that was seen before: all are looked at.
    pub(super) fn look_for_all_letters(&mut self) {
        if self.member.is_some() {
            self.look_at(self.shard.held().collect(), true);
        } else {
            self.look_for_letters();
        }
    }

    /// What waits in partitions: letters first, if they are asked for, so that what brings a receipt is known before
    /// anybody asks what became of the attempt; then what is due.
    pub(super) fn look_at(&self, partitions: Vec<u32>, with_letters: bool) {
        if partitions.is_empty() {
            return;
        }
        let (store, commands) = (self.store.clone(), self.commands.clone());
        let meters = self.meters.inbox.clone();
        tokio::task::spawn_blocking(move || {
            if with_letters {
                let Ok(letters) = store.inbox(&partitions, 0, LETTERS_AT_A_TIME) else { return };
                meters.look(&letters, now_ms());
                let is_all = !LETTERS_AT_A_TIME.is_met_by(&letters);
                let _ = commands.send(Command::Letters(letters, is_all));
            }
            // To the end, in pages: what is out of reach may fill one, or many.
            let (until, mut after) = (now_ms() + WINDOW_MS, None);
            while let Ok(due) = store.due(&partitions, until, after, ROWS_AT_A_TIME)
                && let Some(last) = due.last()
            {
                after = Some(*last);
                if commands.send(Command::Due(due)).is_err() {
                    return;
                }
            }
        });
    }

    /// Reads the whole inbox of what is held, and then says whether it could be read.
    pub(super) fn look_at_inbox(&self, then: impl FnOnce(bool) -> Command + Send + 'static) {
        let partitions: Vec<u32> = self.shard.held().collect();
        let (store, commands) = (self.store.clone(), self.commands.clone());
        tokio::task::spawn_blocking(move || {
            let mut after = 0;
            let is_read = loop {
                let Ok(letters) = store.inbox(&partitions, after, LETTERS_AT_A_TIME) else { break false };
                let is_last = !LETTERS_AT_A_TIME.is_met_by(&letters);
                after = letters.last().map_or(after, |arrived| arrived.number);
                let _ = commands.send(Command::Letters(letters, false));
                if is_last {
                    break true;
                }
            };
            if !is_read {
                std::thread::sleep(LOOK_FOR_LETTERS);
            }
            let _ = commands.send(then(is_read));
        });
    }

    pub(super) fn take_letters(&mut self, letters: Vec<Arrived>, is_all: bool) {
        if self.draining {
            return;
        }
        if is_all {
            let waiting: BTreeSet<u64> = letters.iter().map(|arrived| arrived.number).collect();
            self.letters_out.retain(|number| waiting.contains(number));
        }
        let mut waiting = BTreeSet::new();
        let mut seen = self.letters_seen;
        for arrived in letters {
            let (number, execution) = (arrived.number, arrived.letter.execution);
            // What follows a letter that waits has to wait as well, or an execution had its inputs out of order.
            if self.has_taken(number) || waiting.contains(&execution) {
                continue;
            }
            self.reach.extend(execution);
            let id = arrived.letter.id.clone();
            match inbox::event_of(&*self.store, self.loader.key(), arrived.letter) {
                Ok(event) => {
                    if self.member.is_some() {
                        self.letters_out.insert(number);
                    }
                    self.meters.inbox.taken.increment(1);
                    self.enter(event);
                }
                Err(Untaken::Forged) => {
                    tracing::error!(%execution, message = id, "an inbox message was not written with the installation's key; it is discarded");
                    self.meters.inbox.forged.increment(1);
                    if self.member.is_some() {
                        self.letters_out.insert(number);
                    }
                    self.enter(crate::shard::Event::Discard(execution, id));
                }
                Err(Untaken::Unreadable(why)) if self.store.quarantine(execution, &why).is_ok() => {
                    self.see_quarantine(execution, &why);
                    self.count_out(execution);
                }
                Err(_) => drop(waiting.insert(execution)),
            }
            // Letters behind one that waits come again with it: the second of the same changes nothing.
            if waiting.is_empty() {
                seen = seen.max(number);
            }
        }
        self.letters_seen = seen;
    }

    fn has_taken(&self, number: u64) -> bool {
        if self.member.is_some() { self.letters_out.contains(&number) } else { number <= self.letters_seen }
    }

    /// Letters that were taken in may have to be taken in again.
    pub(super) fn forget_letters(&mut self) {
        self.letters_seen = 0;
        self.letters_out.clear();
    }

    /// Bound where the folder's path is short enough for a socket; without it letters are found by looking.
    pub(super) fn bell(&self) -> Option<UnixDatagram> {
        let path = self.home.as_ref()?.0.bell();
        let _ = std::fs::remove_file(&path);
        UnixDatagram::bind(path).ok()
    }
}
