//! Reading what waits in the store: messages of the inbox, and executions that are due. Whatever was heard of them, it is
//! read again every now and then: what is missed once is found later.
//!
//! Messages are read in passes of pages. A pass reads either those behind the last one that was taken in, or all of them;
//! of each kind at most one is under way, and whoever asks meanwhile has the next pass follow at once. A page is read,
//! decoded and given its plans on a thread that may wait for the store. The driver takes it in a little at a time, and
//! asks for the next page only then, so that a backlog of any length takes the memory of two pages.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
};

use mainspring_kernel::{effect::Attempt, instance::Instance, key::ExecutionKey};
use mainspring_store::{Arrived, Most, StoreError};
use tokio::{net::UnixDatagram, time::Instant};

use super::{Command, LOOK_FOR_LETTERS, Rim, failing};
use crate::{
    engine::now_ms,
    inbox::{self, Untaken},
    intake::Intake,
    limits::{HELD_UP_EACH_BYTES_MAX, HELD_UP_EACH_MAX},
    shard::Event,
};

/// How far ahead timers are taken from the store.
const WINDOW_MS: u64 = 60_000;

/// Messages and timers read at a time.
const ROWS_AT_A_TIME: usize = 10_000;

/// Messages read at a time, by count and by bytes.
const LETTERS_AT_A_TIME: Most = Most::of(ROWS_AT_A_TIME);

/// Messages taken in for one turn of the driver. Each may begin an execution, whose first turn takes up to some
/// milliseconds: with more of them, commits and commands would wait for seconds.
const MESSAGES_AT_A_TIME: usize = 256;

/// A pass over all messages is followed by a pause of this many times as long as it took: a backlog is not read again and
/// again by a node that has nothing else to read from its store.
const PAUSE_PER_PASS: u32 = 4;

/// Which messages a pass reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Those behind the last one that was taken in.
    New,
    /// All. Where others write as well, a message may come to light behind one that was seen before.
    All,
}

/// An attempt of which it is to be found out what became of it.
pub(super) type ToAdopt = (ExecutionKey, Instance, Attempt);

/// What the driver knows of the inbox.
#[derive(Default)]
pub(super) struct Inbox {
    /// All up to this number are taken in, as far as they had come to light.
    seen: u64,
    /// Messages that were taken in and are perhaps still in the inbox, with their partitions.
    out: BTreeMap<u64, u32>,
    new: Reader,
    all: Reader,
    /// Changes when messages are forgotten: what was read before is of no use then.
    generation: u64,
    /// Pages that were read and not taken in yet.
    pages: VecDeque<Page>,
    /// Before this, a pass over all messages begins only for a reason.
    pause_until: Option<Instant>,
    /// Attempts of which it is to be found out what became of them, when the inbox has been read.
    pub(super) to_adopt: Vec<ToAdopt>,
    /// Messages that were taken in and of which nothing is durable yet.
    taken: Intake,
    /// The part of them that is for executions which cannot take them in yet.
    held_up: Intake,
    /// Executions of which a message was left in the inbox by a pass over the newest ones, with the number of passes over
    /// all that had begun by then. What follows waits for a pass over all.
    left: BTreeMap<ExecutionKey, u64>,
    passes_over_all: u64,
    /// Partitions whose due executions are read behind the next page of all messages.
    due_in: BTreeSet<u32>,
    due: Due,
}

/// The passes of one scope.
#[derive(Default)]
struct Reader {
    pass: Option<Pass>,
    is_wanted_again: bool,
}

/// A pass over the inbox.
struct Pass {
    began: Instant,
    /// The number of the last message that was read.
    after: u64,
    /// Executions of which a message cannot be taken in yet. What follows has to wait as well, or the inputs of an execution
    /// came out of order.
    waiting: BTreeSet<ExecutionKey>,
    /// Whether one of them keeps the pass from going on behind it the next time.
    is_held_back: bool,
    /// Attempts that are adopted when the pass is complete.
    asked: Vec<ToAdopt>,
}

/// Reads of executions that are due.
#[derive(Default)]
struct Due {
    is_underway: bool,
    /// Partitions to be read behind the read that is under way.
    again: BTreeSet<u32>,
}

/// Some messages, as they were read.
pub(crate) struct Page {
    scope: Scope,
    generation: u64,
    /// The largest number that was taken in when the page was asked for.
    until: u64,
    numbers: BTreeSet<u64>,
    messages: VecDeque<Message>,
    /// Whether there may be more behind it; an error if it could not be read.
    end: Result<bool, StoreError>,
}

/// A message, decoded.
struct Message {
    number: u64,
    partition: u32,
    execution: ExecutionKey,
    byte_count: usize,
    opened: Opened,
}

pub(super) enum Opened {
    Event(Box<Event>),
    /// It can never be taken in, and its execution is set aside: why, and the organization in which that counts.
    SetAside(String, Option<String>),
    /// It was not written with the installation's key. By its id it is taken out of the inbox; with the parent that it names.
    Forged(String, Option<ExecutionKey>),
    /// It is read again at the next pass.
    Waits,
}

impl Inbox {
    fn reader(&mut self, scope: Scope) -> &mut Reader {
        match scope {
            Scope::New => &mut self.new,
            Scope::All => &mut self.all,
        }
    }

    /// Whether pages wait to be taken in, and there is room for their next message.
    pub(super) fn can_take(&self) -> bool {
        let next = self.pages.front().map(|page| page.messages.front().map_or(0, |message| message.byte_count));
        next.is_some_and(|byte_count| self.taken.has_room(byte_count))
    }

    /// Whether there is no room for another message to an execution that cannot take it in yet: it has so many messages and
    /// bytes already.
    fn is_full_for(&self, (count, bytes): (usize, usize), byte_count: usize) -> bool {
        count >= HELD_UP_EACH_MAX
            || bytes.saturating_add(byte_count) > HELD_UP_EACH_BYTES_MAX && count > 0
            || !self.held_up.has_room_beside(byte_count) && count > 0
    }

    /// A message that was taken in for another partition is read again: the store was repartitioned, and what was taken
    /// in was lost with the old partition.
    fn has_taken(&self, number: u64, partition: u32, is_alone: bool) -> bool {
        is_alone && number <= self.seen || self.out.get(&number) == Some(&partition)
    }

    /// What was taken in between the place where a page began and its end, and is not in it, has left the inbox.
    fn forget_consumed(&mut self, from: u64, page: &Page) {
        let last = match page.end {
            Ok(false) => page.until,
            _ => page.numbers.last().copied().unwrap_or(from).min(page.until),
        };
        if last > from {
            let is_gone = |number: &u64| !page.numbers.contains(number);
            let gone: Vec<u64> = self.out.range(from + 1..=last).map(|(number, _)| *number).filter(is_gone).collect();
            for number in gone {
                self.out.remove(&number);
            }
        }
    }
}

impl Rim {
    pub(super) fn look_for_timers(&mut self) {
        self.read_due(self.shard.held().collect());
    }

    /// Messages that came since the last ones.
    pub(super) fn look_for_letters(&mut self) {
        self.read_inbox(Scope::New);
    }

    /// Called every now and then: all messages where others write as well, else those that came since the last ones.
    pub(super) fn look_for_all_letters(&mut self) {
        if self.member.is_none() {
            // Where the last look for them could not be made.
            self.look_before_adopting();
            return self.look_for_letters();
        }
        let is_pausing = self.inbox.pause_until.is_some_and(|until| until > Instant::now());
        if self.inbox.all.pass.is_none() && (!is_pausing || !self.inbox.to_adopt.is_empty()) {
            self.inbox.due_in.extend(self.shard.held());
            self.read_inbox(Scope::All);
        }
    }

    /// Messages that were taken in may have to be taken in again. Pages that were read before begin anew.
    pub(super) fn forget_letters(&mut self) {
        self.inbox.generation += 1;
        self.inbox.seen = 0;
        self.inbox.out.clear();
    }

    /// Of partitions that are held from now on all messages are read, and then what is due.
    pub(super) fn look_at_gained(&mut self, partitions: &[u32]) {
        self.inbox.out.retain(|_, partition| !partitions.contains(partition));
        self.inbox.due_in.extend(partitions);
        self.read_inbox(Scope::All);
    }

    /// Begins a pass, or has one follow the pass that is under way.
    pub(super) fn read_inbox(&mut self, scope: Scope) {
        if self.shard.held().next().is_none() {
            return;
        }
        let seen = self.inbox.seen;
        let reader = self.inbox.reader(scope);
        if reader.pass.is_some() {
            reader.is_wanted_again = true;
            return;
        }
        let after = if scope == Scope::New { seen } else { 0 };
        reader.is_wanted_again = false;
        reader.pass = Some(Pass {
            began: Instant::now(),
            after,
            waiting: BTreeSet::new(),
            is_held_back: false,
            asked: Vec::new(),
        });
        if scope == Scope::All {
            self.inbox.passes_over_all += 1;
            let asked = self.take_to_adopt();
            self.inbox.all.pass.iter_mut().for_each(|pass| pass.asked.clone_from(&asked));
        }
        self.read_page(scope);
    }

    /// Reads the next page of a pass on a thread that may wait for the store.
    fn read_page(&mut self, scope: Scope) {
        let generation = self.inbox.generation;
        let until = self.inbox.out.last_key_value().map_or(0, |(number, _)| *number);
        let Some(after) = self.inbox.reader(scope).pass.as_ref().map(|pass| pass.after) else { return };
        // What is taken in already is not decoded again, unless it was taken in for another partition.
        let known: BTreeMap<u64, u32> = self.inbox.out.range(after + 1..).take(ROWS_AT_A_TIME).map(copied).collect();
        let partitions: Vec<u32> = self.shard.held().collect();
        let (loader, commands, meters) = (self.loader.clone(), self.commands.clone(), self.meters.inbox.clone());
        let (is_first, counts) = (scope == Scope::All && after == 0 || scope == Scope::New, self.counts_places());
        tokio::task::spawn_blocking(move || {
            let read = || -> Result<(BTreeSet<u64>, VecDeque<Message>, bool), StoreError> {
                let arrived = loader.store().inbox(&partitions, after, LETTERS_AT_A_TIME)?;
                if is_first {
                    meters.look(&arrived, now_ms());
                }
                let is_last = !LETTERS_AT_A_TIME.is_met_by(&arrived);
                let numbers = arrived.iter().map(|arrived| arrived.number).collect();
                let new = arrived
                    .into_iter()
                    .filter(|Arrived { number, letter }| known.get(number) != Some(&letter.partition));
                Ok((numbers, new.map(|arrived| open(&loader, arrived, counts)).collect(), is_last))
            };
            // A read that nobody hears of any more would be the last one.
            let read = catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|panic| {
                Err(StoreError::Unavailable(format!("reading the inbox panicked: {}", failing::text(&*panic))))
            });
            let (numbers, messages, end) = match read {
                Ok((numbers, messages, is_last)) => (numbers, messages, Ok(!is_last)),
                Err(error) => (BTreeSet::new(), VecDeque::new(), Err(error)),
            };
            let page = Page { scope, generation, until, numbers, messages, end };
            let _ = commands.send(Command::Letters(Box::new(page)));
        });
    }

    /// A page was read.
    pub(super) fn take_page(&mut self, page: Page) {
        self.inbox.pages.push_back(page);
    }

    /// Takes some of the messages in that were read: the driver does what else is due between two calls.
    pub(super) fn take_messages(&mut self) {
        let began = Instant::now();
        for _ in 0..MESSAGES_AT_A_TIME {
            self.keep_alive();
            if self.has_used_round(began) {
                return;
            }
            let generation = self.inbox.generation;
            if !self.inbox.can_take() && !self.draining {
                return;
            }
            let Some(page) = self.inbox.pages.front_mut() else { return };
            if self.draining || page.generation != generation {
                page.messages.clear();
            }
            let scope = page.scope;
            match page.messages.pop_front() {
                Some(message) => self.take_message(scope, message),
                None => {
                    let page = self.inbox.pages.pop_front();
                    page.into_iter().for_each(|page| self.end_page(page));
                }
            }
        }
    }

    fn take_message(&mut self, scope: Scope, message: Message) {
        let Message { number, partition, execution, byte_count, opened } = message;
        let is_taken = self.inbox.has_taken(number, partition, self.member.is_none());
        let is_cancel = matches!(&opened, Opened::Event(event) if event.is_cancel()) && self.shard.has(execution);
        let Some(pass) = &mut self.inbox.reader(scope).pass else { return };
        let is_waiting =
            pass.waiting.contains(&execution) || scope == Scope::New && self.inbox.left.contains_key(&execution);
        if is_taken || is_waiting && !is_cancel {
            return;
        }
        let (held_up, has_place) = (self.shard.held_up(execution), self.has_place(&opened));
        let is_full = held_up.is_some_and(|held_up| !is_cancel && self.inbox.is_full_for(held_up, byte_count));
        let is_unread = matches!(opened, Opened::Waits);
        let waits = is_unread || is_full || !has_place;
        let is_alone = self.member.is_none();
        let Some(pass) = &mut self.inbox.reader(scope).pass else { return };
        if waits {
            pass.waiting.insert(execution);
            // Where there are nodes, all messages are read again every now and then, also those before the last one.
            pass.is_held_back |= is_unread || is_alone;
            if !pass.is_held_back && scope == Scope::New {
                self.inbox.left.insert(execution, self.inbox.passes_over_all);
            }
        }
        let Some(pass) = &mut self.inbox.reader(scope).pass else { return };
        // Those behind one that waits are read again with it, and known by their numbers.
        let is_next = !pass.is_held_back;
        self.reach.extend(execution);
        match opened {
            _ if waits => {}
            Opened::Event(mut event) => {
                self.inbox.out.insert(number, partition);
                self.meters.inbox.taken.increment(1);
                if let Some(message) = event.message_mut() {
                    message.charge = Some(self.inbox.taken.take(byte_count));
                    message.held_up = held_up.map(|_| self.inbox.held_up.take(byte_count));
                }
                self.enter(*event);
            }
            Opened::SetAside(why, organization) => {
                self.inbox.out.insert(number, partition);
                self.see_quarantine(execution, &why);
                self.count_out(execution, organization);
                self.handle(Event::SetAside(execution, why));
                self.quarantined(execution);
            }
            Opened::Forged(id, parent) => {
                tracing::error!(%execution, message = id, "an inbox message was not written with the installation's key; it is discarded");
                self.meters.inbox.forged.increment(1);
                self.inbox.out.insert(number, partition);
                self.enter(Event::Discard(execution, id));
                self.unbegun(execution, parent);
            }
            Opened::Waits => {}
        }
        if is_next {
            self.inbox.seen = self.inbox.seen.max(number);
        }
    }

    /// All of a page is taken in: the pass goes on with the next page, or is complete.
    fn end_page(&mut self, page: Page) {
        let Page { scope, generation, ref numbers, ref end, .. } = page;
        let is_stale = generation != self.inbox.generation;
        let Some(pass) = &mut self.inbox.reader(scope).pass else { return };
        let from = pass.after;
        pass.after = numbers.last().copied().unwrap_or(from).max(from);
        let (is_read, has_more) = (end.is_ok(), matches!(end, Ok(true)) && !numbers.is_empty());
        if is_stale || !is_read {
            return self.break_off(scope, is_stale);
        }
        if scope == Scope::All {
            self.inbox.forget_consumed(from, &page);
            let partitions = std::mem::take(&mut self.inbox.due_in);
            self.read_due(partitions);
        }
        if has_more && !self.draining {
            return self.read_page(scope);
        }
        self.end_pass(scope);
    }

    fn end_pass(&mut self, scope: Scope) {
        let Some(pass) = self.inbox.reader(scope).pass.take() else { return };
        if self.member.is_none() {
            self.inbox.out = self.inbox.out.split_off(&self.inbox.seen.saturating_add(1));
        }
        if scope == Scope::All {
            let begun = self.inbox.passes_over_all;
            self.inbox.left.retain(|_, before| *before >= begun);
            self.inbox.left.extend(pass.waiting.into_iter().map(|execution| (execution, begun - 1)));
            let pause = (pass.began.elapsed() * PAUSE_PER_PASS).max(LOOK_FOR_LETTERS / 2);
            self.inbox.pause_until = Some(Instant::now() + pause);
        }
        for (execution, instance, attempt) in pass.asked {
            self.adopt(execution, instance, attempt);
        }
        if std::mem::take(&mut self.inbox.reader(scope).is_wanted_again) {
            self.read_inbox(scope);
        }
    }

    /// What was read is of no use, or could not be read: nothing is adopted on the strength of it. A store that does not
    /// answer is asked again at the next time of reading, everything else at once.
    fn break_off(&mut self, scope: Scope, is_at_once: bool) {
        let pass = self.inbox.reader(scope).pass.take();
        self.inbox.to_adopt.extend(pass.into_iter().flat_map(|pass| pass.asked));
        if is_at_once {
            self.read_inbox(scope);
        } else if scope == Scope::All {
            self.inbox.pause_until = None;
        }
    }

    /// Partitions in which executions are due, for one read at a time.
    fn read_due(&mut self, partitions: BTreeSet<u32>) {
        if partitions.is_empty() {
            return;
        }
        if std::mem::replace(&mut self.inbox.due.is_underway, true) {
            return self.inbox.due.again.extend(partitions);
        }
        let (store, commands) = (self.store.clone(), self.commands.clone());
        tokio::task::spawn_blocking(move || {
            let partitions: Vec<u32> = partitions.into_iter().collect();
            // To the end, in pages: what is out of reach may fill one, or many.
            let read = || {
                let (until, mut after) = (now_ms() + WINDOW_MS, None);
                while let Ok(due) = store.due(&partitions, until, after, ROWS_AT_A_TIME)
                    && let Some(last) = due.last()
                {
                    after = Some(*last);
                    if commands.send(Command::Due(due)).is_err() {
                        return;
                    }
                }
            };
            // Another read follows all the same.
            let _ = catch_unwind(AssertUnwindSafe(read));
            let _ = commands.send(Command::DueRead);
        });
    }

    pub(super) fn due_read(&mut self) {
        self.inbox.due.is_underway = false;
        let again = std::mem::take(&mut self.inbox.due.again);
        self.read_due(again);
    }

    /// Bound where the folder's path is short enough for a socket; without it letters are found by looking.
    pub(super) fn bell(&self) -> Option<UnixDatagram> {
        let path = self.home.as_ref()?.0.bell();
        let _ = std::fs::remove_file(&path);
        UnixDatagram::bind(path).ok()
    }
}

fn copied((number, partition): (&u64, &u32)) -> (u64, u32) {
    (*number, *partition)
}

/// Decodes a message, on a thread that may wait for the store.
fn open(loader: &crate::load::Loader, arrived: Arrived, counts: bool) -> Message {
    let byte_count = arrived.byte_count();
    let Arrived { number, letter } = arrived;
    let (partition, execution, id) = (letter.partition, letter.execution, letter.id.clone());
    // One message that cannot be decoded without a panic keeps nothing from the others of its page.
    let event = catch_unwind(AssertUnwindSafe(|| inbox::event_from(loader, letter)));
    let event = event.unwrap_or_else(|panic| {
        let why = format!("decoding a message panicked; this is a fault of the engine: {}", failing::text(&*panic));
        Err(Untaken::Unreadable(why))
    });
    let opened = match event {
        Ok(event) => Opened::Event(Box::new(event)),
        Err(Untaken::Unavailable) => Opened::Waits,
        Err(Untaken::Forged(parent)) => Opened::Forged(id, parent),
        Err(Untaken::Unreadable(why)) => match failing::set_aside(&**loader.store(), execution, &why, counts) {
            Ok(organization) => Opened::SetAside(why, organization),
            Err(_) => Opened::Waits,
        },
    };
    Message { number, partition, execution, byte_count, opened }
}
