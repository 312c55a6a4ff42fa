//! Journal.
use super::MemoryStore;
use crate::{
    AuditedNotes, Batch, CommitError, Due, Expected, HeadRow, Journal, LateReceipt, PartOutcome, ReadLimit, StoreError,
    StoredExecutorKey,
};
use mainspring_kernel::{hash::Hash, key::ExecutionKey, note::Note, note::Subject, stored_frame::StoredFrame};
use std::sync::Arc;

impl Journal for MemoryStore {
    fn commit(&self, batch: &Batch) -> Result<Vec<PartOutcome>, CommitError> {
        let mut state = self.state();
        let mut answers = Vec::new();
        for part in &batch.parts {
            answers.push(match state.refusal(batch, part) {
                Some(refusal) => PartOutcome::Refused(refusal),
                None => {
                    state.take(part);
                    PartOutcome::Durable
                }
            });
        }
        let written = batch.parts.iter().zip(&answers).filter(|(_, answer)| **answer == PartOutcome::Durable);
        written.clone().flat_map(|(part, _)| &part.messages).for_each(|message| _ = state.enqueue(message));
        state.catalogue.note(&batch.sealing, written.flat_map(|(part, _)| &part.audit));
        Ok(answers)
    }

    fn head(&self, execution: ExecutionKey) -> Result<Option<HeadRow>, StoreError> {
        Ok(self.state().heads.get(&execution).cloned())
    }

    fn frames(&self, execution: ExecutionKey, from: u64, bound: ReadLimit) -> Result<Vec<StoredFrame>, StoreError> {
        let state = self.state();
        let frames = state.frames.get(&execution).into_iter().flatten().filter(|frame| frame.sequence >= from);
        Ok(bound.take(frames, |frame| frame.byte_count()).into_iter().cloned().collect())
    }

    fn due(&self, partitions: &[u32], until_ms: u64, after: Option<Due>, limit: usize) -> Result<Vec<Due>, StoreError> {
        let state = self.state();
        let waking =
            state.heads.iter().filter(|(_, row)| partitions.contains(&row.partition) && row.quarantined.is_none());
        let mut due: Vec<Due> =
            waking.filter_map(|(key, row)| row.wake_at.map(|wake_at| Due { execution: *key, wake_at })).collect();
        let place = |due: &Due| (due.wake_at, due.execution);
        due.retain(|due| due.wake_at <= until_ms && after.is_none_or(|after| place(due) > place(&after)));
        due.sort_by_key(place);
        due.truncate(limit);
        Ok(due)
    }

    fn set_wake_at(&self, execution: ExecutionKey, head: Expected, wake_at: Option<u64>) -> Result<bool, StoreError> {
        let mut state = self.state();
        let is_so =
            |row: &&mut HeadRow| !row.ended && Expected { sequence: row.head.sequence, hash: row.head.hash } == head;
        let found = state.heads.get_mut(&execution).filter(is_so);
        Ok(found.map(|row| row.wake_at = wake_at).is_some())
    }

    fn plan(&self, hash: Hash) -> Result<Option<Arc<[u8]>>, StoreError> {
        Ok(self.state().plans.get(&hash).cloned())
    }

    fn late_receipts(&self, execution: ExecutionKey) -> Result<Vec<LateReceipt>, StoreError> {
        Ok(self.state().receipts.late.get(&execution).cloned().unwrap_or_default())
    }

    fn receipt_proofs(
        &self,
        execution: ExecutionKey,
        from: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        let state = self.state();
        let proofs = state.receipts.proofs.range((execution, from)..=(execution, u64::MAX));
        Ok(proofs.map(|((_, sequence), proof)| (*sequence, proof.clone())).take(limit).collect())
    }

    fn executor_key(&self, id: Hash) -> Result<Option<StoredExecutorKey>, StoreError> {
        Ok(self.state().receipts.executor_keys.get(&id).cloned())
    }

    fn executor_keys(&self, after: Option<Hash>, limit: usize) -> Result<Vec<StoredExecutorKey>, StoreError> {
        let state = self.state();
        let keys = state.receipts.executor_keys.values().filter(|key| after.is_none_or(|after| key.id > after));
        Ok(keys.take(limit).cloned().collect())
    }

    fn notes(&self, execution: ExecutionKey) -> Result<Vec<Note>, StoreError> {
        let state = self.state();
        Ok(state.notes.values().filter(|note| note.execution == execution).cloned().collect())
    }

    fn erase(&self, execution: ExecutionKey, audited: &AuditedNotes<'_>) -> Result<usize, StoreError> {
        let state = &mut *self.state();
        let mut count = 0;
        for note in audited.notes {
            let Subject::Erased { sequence, place } = note.subject else { continue };
            let mut frames = state.frames.get_mut(&note.execution).into_iter().flatten();
            let frame = frames.find(|frame| frame.sequence == sequence);
            let value = frame.and_then(|frame| frame.values.get_mut(usize::try_from(place).ok()?));
            let Some(value) = value.filter(|value| value.body.is_some()) else { continue };
            (value.body, value.salt) = (None, [0; 16]);
            state.notes.entry((note.execution, note.subject)).or_insert_with(|| note.clone());
            count += 1;
        }
        let late = state.receipts.late.get_mut(&execution).into_iter().flatten();
        for late in late.filter(|late| !late.body.is_empty()) {
            late.body.clear();
            late.proof = None;
            count += 1;
        }
        if count > 0 {
            state.catalogue.note(&audited.sealing, audited.audit);
        }
        Ok(count)
    }
}
