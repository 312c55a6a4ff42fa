//! The queue of events.

use std::collections::BTreeSet;

use super::{MemoryStore, State};
use crate::{DueSubscription, DueTimes, EventCursor, EventQueue, Part, RECORDING_KEY, SUBSCRIPTION_KIND, StoreError};

impl State {
    /// Adds the frames of a part to the queues of the subscriptions of its organization.
    pub(super) fn record_events(&mut self, part: &Part) {
        let Some((first, last)) = part.frames.first().zip(part.frames.last()) else { return };
        let execution = part.execution;
        let Some(organization) = self.rows.get(&execution).and_then(|row| row.organization.clone()) else { return };
        for subscription in self.catalogue.with_key(SUBSCRIPTION_KIND, &organization, RECORDING_KEY) {
            let new = EventCursor {
                subscription: subscription.clone(),
                execution,
                organization: organization.clone(),
                sequence: first.sequence,
                position: 0,
                newest: last.sequence,
                due_at: 0,
                attempts: 0,
                failing_since: None,
            };
            let row = self.catalogue.event_cursors.entry((subscription, execution)).or_insert(new);
            row.newest = last.sequence;
        }
    }
}

impl EventQueue for MemoryStore {
    fn due_subscriptions(&self, due: DueTimes) -> Result<Vec<DueSubscription>, StoreError> {
        let state = self.state();
        let rows = state.catalogue.event_cursors.values().filter(|row| due.includes(row.due_at));
        let of_row = |row: &EventCursor| DueSubscription {
            id: row.subscription.clone(),
            organization: row.organization.clone(),
        };
        let mut found: Vec<DueSubscription> = rows.map(of_row).collect();
        found.dedup();
        Ok(found)
    }

    fn due_events(&self, subscription: &str, due: DueTimes, limit: usize) -> Result<Vec<EventCursor>, StoreError> {
        let state = self.state();
        let is_due = |row: &&EventCursor| row.subscription == subscription && due.includes(row.due_at);
        let mut found: Vec<EventCursor> = state.catalogue.event_cursors.values().filter(is_due).cloned().collect();
        found.sort_by_key(|row| (row.due_at, row.execution));
        found.truncate(limit);
        Ok(found)
    }

    fn count_events(&self, subscription: &str, most: usize) -> Result<usize, StoreError> {
        let state = self.state();
        let own = state.catalogue.event_cursors.values().filter(|row| row.subscription == subscription);
        Ok(own.take(most).count())
    }

    fn move_events(&self, read: &EventCursor, to: &EventCursor) -> Result<bool, StoreError> {
        let mut state = self.state();
        let place = (read.subscription.clone(), read.execution);
        let at = |row: &EventCursor| (row.sequence, row.position, row.attempts);
        let Some(row) = state.catalogue.event_cursors.get_mut(&place).filter(|row| at(row) == at(read)) else {
            return Ok(false);
        };
        if row.newest < to.sequence {
            state.catalogue.event_cursors.remove(&place);
        } else {
            *row = EventCursor { newest: row.newest, organization: row.organization.clone(), ..to.clone() };
        }
        Ok(true)
    }

    fn retry_events(&self, subscription: &str) -> Result<(), StoreError> {
        let mut state = self.state();
        for row in state.catalogue.event_cursors.values_mut().filter(|row| row.subscription == subscription) {
            (row.due_at, row.attempts, row.failing_since) = (0, 0, None);
        }
        Ok(())
    }

    fn remove_events(&self, subscription: &str) -> Result<(), StoreError> {
        let mut state = self.state();
        let organizations: BTreeSet<String> = state
            .catalogue
            .event_cursors
            .values()
            .filter(|row| row.subscription == subscription)
            .map(|row| row.organization.clone())
            .collect();
        let is_recording = |organization: &String| {
            let recording = state.catalogue.with_key(SUBSCRIPTION_KIND, organization, RECORDING_KEY);
            recording.iter().any(|id| id == subscription)
        };
        if !organizations.iter().any(is_recording) {
            state.catalogue.event_cursors.retain(|(own, _), _| own != subscription);
        }
        Ok(())
    }
}
