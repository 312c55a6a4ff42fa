//! Inbox messages.
use super::MemoryStore;
use crate::{EnqueueRequest, Inbox, InboxEntry, InboxMessage, ReadLimit, StoreError};

impl Inbox for MemoryStore {
    fn enqueue(&self, request: &EnqueueRequest<'_>) -> Result<bool, StoreError> {
        let mut state = self.state();
        if state.partitions != request.partitions {
            return Ok(false);
        }
        state.put_plans(request.plans);
        if state.enqueue(request.message) {
            state.catalogue.note(&request.sealing, request.audit);
        }
        Ok(true)
    }

    fn inbox(&self, partitions: &[u32], after: u64, bound: ReadLimit) -> Result<Vec<InboxEntry>, StoreError> {
        let state = self.state();
        let is_asked = |message: &InboxMessage| partitions.contains(&message.partition);
        let waiting = state.inbox.iter().filter(|(number, message)| **number > after && is_asked(message));
        let messages = bound.take(waiting, |(_, message)| message.byte_count());
        Ok(messages
            .into_iter()
            .map(|(number, message)| InboxEntry { number: *number, message: message.clone() })
            .collect())
    }
}
