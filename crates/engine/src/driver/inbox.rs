//! Polls of the inbox and of due executions. Polls repeat regardless of notifications, so a lost notification only
//! delays the work. The shard processes the messages.
//!
//! Messages are read in passes of pages. A pass reads the messages behind the last received one, or all of them. At
//! most one pass of each kind is in progress, and a request in the meantime starts another pass right after it. A page
//! is read, decoded and combined with its plans on a thread that can wait for the store. The driver receives its
//! messages in small batches and requests the next page only after the last one, so a backlog of any length takes the
//! memory of two pages.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
};

use mainspring_kernel::{effect::Attempt, instance::Instance, key::ExecutionKey};
use mainspring_store::{InboxEntry, ReadLimit, StoreError};
use tokio::{net::UnixDatagram, time::Instant};

use super::{Command, Driver, INBOX_POLL_INTERVAL, failures};
use crate::{
    clock::now_ms,
    inbox::{self, MessageError},
    intake::Intake,
    limits::{HELD_UP_EACH_BYTES_MAX, HELD_UP_EACH_MAX, SHARED_GATHERED_MAX},
    shard::Event,
};

/// Span of time, from now on, whose timers are read from the store.
const WINDOW_MS: u64 = 60_000;

/// Rows of a page of messages or timers.
const ROWS_AT_A_TIME: usize = 10_000;

/// Bound of a page of messages, by count and by bytes.
const MESSAGES_PER_PAGE: ReadLimit = ReadLimit::of(ROWS_AT_A_TIME);

/// Messages received in one iteration of the driver. Each can start an execution, whose first turn takes up to some
/// milliseconds: with more of them, commits and commands would wait for seconds.
const MESSAGES_AT_A_TIME: usize = 256;

/// After a pass over all messages, the next one waits this many times as long as the pass took, so that an idle node
/// does not reread a backlog constantly.
const PAUSE_PER_PASS: u32 = 4;

/// Selects the messages of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Messages behind the last received one.
    New,
    /// All messages. In a shared store, a message can become visible after one with a larger number.
    All,
}

/// An open attempt whose outcome is to be recovered.
pub(super) type ToReconcile = (ExecutionKey, Instance, Attempt);

/// State of the inbox in the driver.
#[derive(Default)]
pub(super) struct Inbox {
    /// The inbox cursor: all messages up to this number that were visible are received.
    seen: u64,
    /// Received messages that may still be in the inbox, with their partitions.
    out: BTreeMap<u64, u32>,
    new: Reader,
    all: Reader,
    /// Changes when the cursor is reset. Pages of an earlier generation are discarded.
    generation: u64,
    /// Pages that were read and whose messages are not received yet.
    pages: VecDeque<Page>,
    /// Until this time, a pass over all messages starts only on request.
    pause_until: Option<Instant>,
    /// Attempts to recover after the inbox has been read.
    pub(super) to_reconcile: Vec<ToReconcile>,
    /// Received messages without a durable result.
    taken: Intake,
    /// The part of them for executions that cannot process input at present.
    held_up: Intake,
    /// Executions with a message that a pass over new messages skipped, with the number of full passes started by that
    /// time. Later messages of these executions wait for a full pass.
    left: BTreeMap<ExecutionKey, u64>,
    passes_over_all: u64,
    /// Partitions whose due executions are read after the next page of a full pass.
    due_in: BTreeSet<u32>,
    due: Due,
}

/// The passes of one kind.
#[derive(Default)]
struct Reader {
    pass: Option<Pass>,
    is_wanted_again: bool,
}

/// A pass over the inbox.
struct Pass {
    began: Instant,
    /// Number of the last message that was read.
    after: u64,
    /// Executions with a message that cannot be received yet. Their later messages wait as well, since the inputs of an
    /// execution keep their order.
    waiting: BTreeSet<ExecutionKey>,
    /// A skipped message holds the cursor back, so that the next pass reads it again.
    is_held_back: bool,
    /// Attempts to recover when the pass is complete.
    asked: Vec<ToReconcile>,
}

/// Reads of due executions.
#[derive(Default)]
struct Due {
    is_underway: bool,
    /// Partitions to read after the read in progress.
    again: BTreeSet<u32>,
}

/// A page of messages as read.
pub(crate) struct Page {
    scope: Scope,
    generation: u64,
    /// The largest received number when the page was requested.
    until: u64,
    numbers: BTreeSet<u64>,
    messages: VecDeque<DecodedMessage>,
    /// True if more messages may follow. An error if the page could not be read.
    end: Result<bool, StoreError>,
}

/// A message with the event that it contains.
struct DecodedMessage {
    number: u64,
    partition: u32,
    execution: ExecutionKey,
    byte_count: usize,
    opened: Opened,
}

pub(super) enum Opened {
    Event(Box<Event>),
    /// Can never be received, and its execution is quarantined: the reason, and the organization that the execution
    /// counted for.
    Quarantined(String, Option<String>),
    /// Not sealed with the installation's key: the id, by which it is deleted from the inbox, and the parent that it
    /// names.
    Forged(String, Option<ExecutionKey>),
    /// Read again in the next pass.
    Waits,
}

impl Inbox {
    fn reader(&mut self, scope: Scope) -> &mut Reader {
        match scope {
            Scope::New => &mut self.new,
            Scope::All => &mut self.all,
        }
    }

    /// True if the next message of a page fits the bound of received messages.
    pub(super) fn can_take(&self) -> bool {
        let next = self.pages.front().map(|page| page.messages.front().map_or(0, |message| message.byte_count));
        next.is_some_and(|byte_count| self.taken.has_room(byte_count))
    }

    /// True if an execution that cannot process input has no room for another message, by count or by bytes.
    fn is_full_for(&self, (count, bytes): (usize, usize), byte_count: usize) -> bool {
        count >= HELD_UP_EACH_MAX
            || bytes.saturating_add(byte_count) > HELD_UP_EACH_BYTES_MAX && count > 0
            || !self.held_up.has_room_beside(byte_count) && count > 0
    }

    /// A message received for another partition is read again: the store was repartitioned, and the message was lost
    /// with the former partition.
    fn has_taken(&self, number: u64, partition: u32, is_alone: bool) -> bool {
        is_alone && number <= self.seen || self.out.get(&number) == Some(&partition)
    }

    /// Forgets received messages that the page should contain and does not: they were consumed.
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

impl Driver {
    pub(super) fn poll_timers(&mut self) {
        self.read_due(self.shard.held().collect());
    }

    /// Reads new messages.
    pub(super) fn poll_inbox(&mut self) {
        self.read_inbox(Scope::New);
    }

    /// The periodic poll: all messages in a shared store, otherwise the new ones.
    pub(super) fn rescan_inbox(&mut self) {
        if self.session.is_none() {
            // Repeats a recovery whose pass could not start.
            self.scan_before_reconciling();
            return self.poll_inbox();
        }
        let is_pausing = self.inbox.pause_until.is_some_and(|until| until > Instant::now());
        if self.inbox.all.pass.is_none() && (!is_pausing || !self.inbox.to_reconcile.is_empty()) {
            self.inbox.due_in.extend(self.shard.held());
            self.read_inbox(Scope::All);
        }
    }

    /// Resets the cursor, since received messages may have to be received again. Pages that were read are discarded.
    pub(super) fn reset_inbox_cursor(&mut self) {
        self.inbox.generation += 1;
        self.inbox.seen = 0;
        self.inbox.out.clear();
    }

    /// Reads all messages of acquired partitions, and then their due executions.
    pub(super) fn scan_acquired(&mut self, partitions: &[u32]) {
        self.inbox.out.retain(|_, partition| !partitions.contains(partition));
        self.inbox.due_in.extend(partitions);
        self.read_inbox(Scope::All);
    }

    /// Starts a pass, or schedules one behind the pass in progress.
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
            let asked = self.take_to_reconcile();
            self.inbox.all.pass.iter_mut().for_each(|pass| pass.asked.clone_from(&asked));
        }
        self.read_page(scope);
    }

    /// Reads the next page of a pass on a thread that can wait for the store.
    fn read_page(&mut self, scope: Scope) {
        let generation = self.inbox.generation;
        let until = self.inbox.out.last_key_value().map_or(0, |(number, _)| *number);
        let Some(after) = self.inbox.reader(scope).pass.as_ref().map(|pass| pass.after) else { return };
        // Received messages are not decoded again, unless they were received for another partition.
        let known: BTreeMap<u64, u32> = self.inbox.out.range(after + 1..).take(ROWS_AT_A_TIME).map(copied).collect();
        let partitions: Vec<u32> = self.shard.held().collect();
        let (loader, commands, metrics) = (self.loader.clone(), self.commands.clone(), self.metrics.inbox.clone());
        let (is_first, counts) = (scope == Scope::All && after == 0 || scope == Scope::New, self.counts_places());
        tokio::task::spawn_blocking(move || {
            let read = || -> Result<(BTreeSet<u64>, VecDeque<DecodedMessage>, bool), StoreError> {
                let arrived = loader.store().inbox(&partitions, after, MESSAGES_PER_PAGE)?;
                if is_first {
                    metrics.record_poll(&arrived, now_ms());
                }
                let is_last = !MESSAGES_PER_PAGE.is_reached_by(&arrived);
                let numbers = arrived.iter().map(|arrived| arrived.number).collect();
                let new = arrived
                    .into_iter()
                    .filter(|InboxEntry { number, message }| known.get(number) != Some(&message.partition));
                Ok((numbers, new.map(|arrived| open(&loader, arrived, counts)).collect(), is_last))
            };
            // A panic without an answer would prevent all further reads.
            let read = catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|panic| {
                Err(StoreError::Unavailable(format!("reading the inbox panicked: {}", failures::text(&*panic))))
            });
            let (numbers, messages, end) = match read {
                Ok((numbers, messages, is_last)) => (numbers, messages, Ok(!is_last)),
                Err(error) => (BTreeSet::new(), VecDeque::new(), Err(error)),
            };
            let page = Page { scope, generation, until, numbers, messages, end };
            let _ = commands.send(Command::InboxPage(Box::new(page)));
        });
    }

    /// Queues a page that was read.
    pub(super) fn take_page(&mut self, page: Page) {
        self.inbox.pages.push_back(page);
    }

    /// True if a message waits, and there is room for it.
    pub(super) fn can_take_messages(&self) -> bool {
        self.inbox.can_take() && !is_backlogged(self.shard.is_shared(), self.shard.gathered())
    }

    /// Receives some messages of the read pages. The driver does its other due work between two calls.
    pub(super) fn take_messages(&mut self) {
        let began = Instant::now();
        for _ in 0..MESSAGES_AT_A_TIME {
            self.keep_alive();
            if self.shard.is_shared() {
                self.receive_commit_answer();
            }
            if self.has_used_round(began) {
                return;
            }
            let generation = self.inbox.generation;
            if !self.can_take_messages() && !self.draining {
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

    fn take_message(&mut self, scope: Scope, message: DecodedMessage) {
        let DecodedMessage { number, partition, execution, byte_count, opened } = message;
        let is_taken = self.inbox.has_taken(number, partition, self.session.is_none());
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
        let is_alone = self.session.is_none();
        let Some(pass) = &mut self.inbox.reader(scope).pass else { return };
        if waits {
            pass.waiting.insert(execution);
            // In a shared store, full passes read earlier messages again, so the cursor need not wait.
            pass.is_held_back |= is_unread || is_alone;
            if !pass.is_held_back && scope == Scope::New {
                self.inbox.left.insert(execution, self.inbox.passes_over_all);
            }
        }
        let Some(pass) = &mut self.inbox.reader(scope).pass else { return };
        // The cursor stays before a skipped message. The messages behind it are read again and recognized by their
        // numbers.
        let is_next = !pass.is_held_back;
        self.scope.extend(execution);
        match opened {
            _ if waits => {}
            Opened::Event(mut event) => {
                self.inbox.out.insert(number, partition);
                self.metrics.inbox.taken.increment(1);
                if let Some(message) = event.message_mut() {
                    message.charge = Some(self.inbox.taken.take(byte_count));
                    message.held_up = held_up.map(|_| self.inbox.held_up.take(byte_count));
                }
                self.enter(*event);
            }
            Opened::Quarantined(why, organization) => {
                self.inbox.out.insert(number, partition);
                self.record_quarantine(execution, &why);
                self.count_out(execution, organization);
                self.handle(Event::Quarantined(execution, why));
                self.quarantined(execution);
            }
            Opened::Forged(id, parent) => {
                tracing::error!(%execution, message = id, "an inbox message was not written with the installation's key; it is discarded");
                self.metrics.inbox.forged.increment(1);
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

    /// Requests the next page after all messages of a page are received, or completes the pass.
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
        if self.session.is_none() {
            self.inbox.out = self.inbox.out.split_off(&self.inbox.seen.saturating_add(1));
        }
        if scope == Scope::All {
            let begun = self.inbox.passes_over_all;
            self.inbox.left.retain(|_, before| *before >= begun);
            self.inbox.left.extend(pass.waiting.into_iter().map(|execution| (execution, begun - 1)));
            let pause = (pass.began.elapsed() * PAUSE_PER_PASS).max(INBOX_POLL_INTERVAL / 2);
            self.inbox.pause_until = Some(Instant::now() + pause);
        }
        for (execution, instance, attempt) in pass.asked {
            self.reconcile(execution, instance, attempt);
        }
        if std::mem::take(&mut self.inbox.reader(scope).is_wanted_again) {
            self.read_inbox(scope);
        }
    }

    /// Ends a pass that is outdated or could not be read, and recovers no attempt based on it. An outdated pass is
    /// repeated at once, a failed one at the next poll.
    fn break_off(&mut self, scope: Scope, is_at_once: bool) {
        let pass = self.inbox.reader(scope).pass.take();
        self.inbox.to_reconcile.extend(pass.into_iter().flat_map(|pass| pass.asked));
        if is_at_once {
            self.read_inbox(scope);
        } else if scope == Scope::All {
            self.inbox.pause_until = None;
        }
    }

    /// Reads the due executions of some partitions, one read at a time.
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
            // Reads all pages: executions outside the scope can fill many of them.
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
            // Another read follows even after a panic.
            let _ = catch_unwind(AssertUnwindSafe(read));
            let _ = commands.send(Command::DueRead);
        });
    }

    pub(super) fn due_read(&mut self) {
        self.inbox.due.is_underway = false;
        let again = std::mem::take(&mut self.inbox.due.again);
        self.read_due(again);
    }

    /// Binds the wake-up socket. A path that is too long for a socket leaves `None`, and messages are found by polling.
    pub(super) fn wakeup_socket(&self) -> Option<UnixDatagram> {
        let path = self.data_dir.as_ref()?.0.wakeup_socket();
        let _ = std::fs::remove_file(&path);
        UnixDatagram::bind(path).ok()
    }
}

fn copied((number, partition): (&u64, &u32)) -> (u64, u32) {
    (*number, *partition)
}

/// Decodes a message, on a thread that can wait for the store.
fn open(loader: &crate::journal_loader::Loader, arrived: InboxEntry, counts: bool) -> DecodedMessage {
    let byte_count = arrived.byte_count();
    let InboxEntry { number, message } = arrived;
    let (partition, execution, id) = (message.partition, message.execution, message.id.clone());
    // A message whose decoding panics does not affect the other messages of its page.
    let event = catch_unwind(AssertUnwindSafe(|| inbox::event_from(loader, message)));
    let event = event.unwrap_or_else(|panic| {
        let why = format!("decoding a message panicked; this is a fault of the engine: {}", failures::text(&*panic));
        Err(MessageError::Unreadable(why))
    });
    let opened = match event {
        Ok(event) => Opened::Event(Box::new(event)),
        Err(MessageError::Unavailable) => Opened::Waits,
        Err(MessageError::Forged(parent)) => Opened::Forged(id, parent),
        Err(MessageError::Unreadable(why)) => {
            match failures::store_quarantine(&**loader.store(), execution, &why, counts) {
                Ok(organization) => Opened::Quarantined(why, organization),
                Err(_) => Opened::Waits,
            }
        }
    };
    DecodedMessage { number, partition, execution, byte_count, opened }
}
/// True if executions that wait for a commit keep messages in the inbox.
fn is_backlogged(is_shared: bool, gathered: usize) -> bool {
    is_shared && gathered >= SHARED_GATHERED_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_keeps_messages_in_the_inbox_while_organizations_share() {
        assert!(!is_backlogged(true, SHARED_GATHERED_MAX - 1));
        assert!(is_backlogged(true, SHARED_GATHERED_MAX));
        assert!(!is_backlogged(false, SHARED_GATHERED_MAX));
    }
}
