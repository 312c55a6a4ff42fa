//! Polls of the inbox and of due executions. Polls repeat regardless of notifications, so a lost notification only
//! delays the work. The shard processes the messages.
//!
//! Messages are read in passes of pages. A pass reads the messages behind the last received one, or all of them. At
//! most one pass of each kind is in progress, and a request in the meantime starts another pass right after it. A page
//! is read, decoded and combined with its plans on a thread that can wait for the store. The node receives its messages
//! one at a time and requests the next page only after the last one, so a backlog of any length takes the memory of two
//! pages.

use std::collections::{BTreeMap, BTreeSet};

use mainspring_kernel::key::ExecutionKey;

use super::{
    page::{Opened, Page, PageRequest, Pass, ROWS_AT_A_TIME, ReceivedMessage},
    protocol::{NodeOutput, Report},
    state::{INBOX_POLL_INTERVAL_MS, Node, events::organization_of, inbox::Progress, recovery::ToReconcile},
};
use crate::{
    clock::MonotonicMs,
    limits::SHARED_GATHERED_MAX,
    shard::{Event, tenants::Tenant},
};

/// Span of time, from now on, whose timers are read from the store.
const WINDOW_MS: u64 = 60_000;

/// After a pass over all messages, the next one waits this many times as long as the pass took, so that an idle node
/// does not reread a backlog constantly.
const PAUSE_PER_PASS: u64 = 4;

impl Node {
    /// Polls for timers, in addition to notifications: recovery is level-triggered.
    pub(super) fn poll_timers(&mut self) {
        self.read_due(self.shard.held().collect());
    }

    /// Reads new messages.
    pub(super) fn poll_inbox(&mut self) {
        self.read_inbox(Pass::New);
    }

    /// The periodic poll: all messages in a shared store, otherwise the new ones.
    pub(super) fn rescan_inbox(&mut self) {
        if self.is_alone() {
            // Repeats a recovery whose pass could not start.
            self.scan_before_reconciling();
            return self.poll_inbox();
        }
        let is_pausing = self.inbox.pause_until.is_some_and(|until| until > self.now.monotonic);
        if self.inbox.all.pass.is_none() && (!is_pausing || self.recovery.is_waiting()) {
            self.inbox.due_in.extend(self.shard.held());
            self.read_inbox(Pass::All);
        }
    }

    /// Resets the cursor, since received messages may have to be received again. Pages that were read are discarded.
    pub fn reset_inbox_cursor(&mut self) {
        self.inbox.generation += 1;
        self.inbox.seen = 0;
        self.inbox.out.clear();
    }

    /// Reads all messages of acquired partitions, and then their due executions.
    pub(super) fn scan_acquired(&mut self, partitions: &[u32]) {
        self.inbox.out.retain(|_, partition| !partitions.contains(partition));
        self.inbox.due_in.extend(partitions);
        self.read_inbox(Pass::All);
    }

    /// Starts a pass, or schedules one behind the pass in progress.
    pub(super) fn read_inbox(&mut self, pass: Pass) {
        if self.shard.held().next().is_none() {
            return;
        }
        let (seen, began) = (self.inbox.seen, self.now.monotonic);
        let reader = self.inbox.reader(pass);
        if reader.pass.is_some() {
            reader.is_wanted_again = true;
            return;
        }
        let after = if pass == Pass::New { seen } else { 0 };
        reader.is_wanted_again = false;
        reader.pass = Some(Progress { began, after, waiting: BTreeSet::new(), is_held_back: false, asked: Vec::new() });
        if pass == Pass::All {
            self.inbox.passes_over_all += 1;
            let asked = self.recovery.take_settled();
            self.inbox.all.pass.iter_mut().for_each(|pass| pass.asked.clone_from(&asked));
        }
        self.request_page(pass);
    }

    /// Requests the next page of a pass.
    fn request_page(&mut self, pass: Pass) {
        let generation = self.inbox.generation;
        let until = self.inbox.out.last_key_value().map_or(0, |(number, _)| *number);
        let Some(after) = self.inbox.reader(pass).pass.as_ref().map(|progress| progress.after) else { return };
        let known: BTreeMap<u64, u32> = self.inbox.out.range(after + 1..).take(ROWS_AT_A_TIME).map(copied).collect();
        let partitions: Vec<u32> = self.shard.held().collect();
        let counts = self.counts_places();
        let request = PageRequest { pass, generation, after, until, known, partitions, counts };
        self.outputs.push_back(NodeOutput::ReadInbox(request));
    }

    /// Queues a page that was read.
    pub(super) fn take_page(&mut self, page: Page) {
        self.inbox.pages.push_back(page);
    }

    /// True if a message waits, and there is room for it.
    pub(super) fn can_take_messages(&self) -> bool {
        self.inbox.can_take() && !is_backlogged(self.shard.is_shared(), self.shard.gathered())
    }

    /// Receives the next message of the read pages, or completes a page. False if there is none, or no room for it.
    pub(super) fn take_next_message(&mut self) -> bool {
        if !self.can_take_messages() && !self.status.is_draining {
            return false;
        }
        let generation = self.inbox.generation;
        let Some(page) = self.inbox.pages.front_mut() else { return false };
        if self.status.is_draining || page.generation != generation {
            page.messages.clear();
        }
        let pass = page.pass;
        match page.messages.pop_front() {
            Some(message) => self.take_message(pass, message),
            None => {
                let page = self.inbox.pages.pop_front();
                page.into_iter().for_each(|page| self.end_page(page));
            }
        }
        true
    }

    /// The organization of the next message of the read pages.
    pub(super) fn next_message_tenant(&self) -> Option<Tenant> {
        let message = self.inbox.pages.front()?.messages.front()?;
        let named = match &message.opened {
            Opened::Event(event) => organization_of(event),
            _ => None,
        };
        Some(named.map_or_else(|| self.shard.tenant_key(message.execution), Tenant::of))
    }

    fn take_message(&mut self, pass: Pass, message: ReceivedMessage) {
        let ReceivedMessage { number, partition, execution, byte_count, opened } = message;
        let is_taken = self.inbox.has_taken(number, partition, self.is_alone());
        let is_cancel = matches!(&opened, Opened::Event(event) if event.is_cancel()) && self.shard.has(execution);
        let Some(progress) = &mut self.inbox.reader(pass).pass else { return };
        let is_waiting =
            progress.waiting.contains(&execution) || pass == Pass::New && self.inbox.left.contains_key(&execution);
        if is_taken || is_waiting && !is_cancel {
            return;
        }
        let (held_up, has_place) = (self.shard.held_up(execution), self.has_place(&opened));
        let is_full = held_up.is_some_and(|held_up| !is_cancel && self.inbox.is_full_for(held_up, byte_count));
        let is_unread = matches!(opened, Opened::Waits);
        let waits = is_unread || is_full || !has_place;
        let is_alone = self.is_alone();
        let Some(progress) = &mut self.inbox.reader(pass).pass else { return };
        if waits {
            progress.waiting.insert(execution);
            // In a shared store, full passes read earlier messages again, so the cursor need not wait.
            progress.is_held_back |= is_unread || is_alone;
            if pass == Pass::All || !progress.is_held_back {
                self.inbox.left.insert(execution, self.inbox.passes_over_all);
            }
        }
        let Some(progress) = &mut self.inbox.reader(pass).pass else { return };
        // The cursor stays before a skipped message. The messages behind it are read again and recognized by their
        // numbers.
        let is_next = !progress.is_held_back;
        self.scope.extend(execution);
        if !waits {
            self.inbox.out.insert(number, partition);
            self.open_message(execution, byte_count, held_up.is_some(), opened);
        }
        if is_next {
            self.inbox.seen = self.inbox.seen.max(number);
        }
    }

    fn open_message(&mut self, execution: ExecutionKey, byte_count: usize, is_held_up: bool, opened: Opened) {
        match opened {
            Opened::Event(mut event) => {
                self.inbox.received += 1;
                if let Some(message) = event.message_mut() {
                    message.charge = Some(self.inbox.intake.taken.take(byte_count));
                    message.held_up = is_held_up.then(|| self.inbox.intake.held_up.take(byte_count));
                }
                self.enter(*event);
            }
            Opened::Quarantined(why, organization) => {
                self.report(Report::Quarantined(execution, why.clone()));
                self.count_out(execution, organization);
                self.handle(Event::Quarantined(execution, why));
                self.quarantined(execution);
            }
            Opened::Forged(id, parent) => {
                self.report(Report::Forged(execution, id.clone()));
                self.enter(Event::Discard(execution, id));
                self.not_started(execution, parent);
            }
            Opened::Waits => {}
        }
    }

    /// Requests the next page after all messages of a page are received, or completes the pass.
    fn end_page(&mut self, page: Page) {
        let Page { pass, generation, ref numbers, ref end, .. } = page;
        let is_stale = generation != self.inbox.generation;
        let Some(progress) = &mut self.inbox.reader(pass).pass else { return };
        let from = progress.after;
        progress.after = numbers.last().copied().unwrap_or(from).max(from);
        let (is_read, has_more) = (end.is_ok(), matches!(end, Ok(true)) && !numbers.is_empty());
        if is_stale || !is_read {
            return self.break_off(pass, is_stale);
        }
        if pass == Pass::All {
            self.inbox.forget_consumed(from, &page);
            let partitions = std::mem::take(&mut self.inbox.due_in);
            self.read_due(partitions);
        }
        if has_more && !self.status.is_draining {
            return self.request_page(pass);
        }
        self.end_pass(pass);
    }

    fn end_pass(&mut self, pass: Pass) {
        let Some(mut progress) = self.inbox.reader(pass).pass.take() else { return };
        // A skipped message may be the receipt of an attempt to recover, so its execution waits for the next pass.
        let is_skipped = |(execution, ..): &mut ToReconcile| progress.waiting.contains(execution);
        self.recovery.put_back(progress.asked.extract_if(.., is_skipped));
        if self.is_alone() {
            self.inbox.out = self.inbox.out.split_off(&self.inbox.seen.saturating_add(1));
        }
        if pass == Pass::All {
            let begun = self.inbox.passes_over_all;
            self.inbox.left.retain(|_, before| *before >= begun);
            self.inbox.left.extend(progress.waiting.into_iter().map(|execution| (execution, begun - 1)));
            let took_ms = self.now.monotonic.0.saturating_sub(progress.began.0);
            let pause_ms = (took_ms * PAUSE_PER_PASS).max(INBOX_POLL_INTERVAL_MS / 2);
            self.inbox.pause_until = Some(MonotonicMs(self.now.monotonic.0 + pause_ms));
        }
        for asked in progress.asked {
            self.reconcile(asked);
        }
        if std::mem::take(&mut self.inbox.reader(pass).is_wanted_again) {
            self.read_inbox(pass);
        }
    }

    /// Ends a pass that is outdated or could not be read, and recovers no attempt based on it. An outdated pass is
    /// repeated at once, a failed one at the next poll.
    fn break_off(&mut self, pass: Pass, is_at_once: bool) {
        let progress = self.inbox.reader(pass).pass.take();
        self.recovery.put_back(progress.into_iter().flat_map(|progress| progress.asked));
        if is_at_once {
            self.read_inbox(pass);
        } else if pass == Pass::All {
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
        let until_ms = self.now.wall_ms.saturating_add(WINDOW_MS);
        self.outputs.push_back(NodeOutput::ReadDue(partitions.into_iter().collect(), until_ms));
    }

    pub(super) fn due_read(&mut self) {
        self.inbox.due.is_underway = false;
        let again = std::mem::take(&mut self.inbox.due.again);
        self.read_due(again);
    }

    /// The number of messages received since the last call.
    pub fn take_received(&mut self) -> u64 {
        std::mem::take(&mut self.inbox.received)
    }
}

fn copied((number, partition): (&u64, &u32)) -> (u64, u32) {
    (*number, *partition)
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
