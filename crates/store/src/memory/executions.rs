//! Executions.
use super::{MemoryStore, start};
use crate::{
    AuditedNotes, AwaitingParent, ExecutionRow, Executions, Expected, FORCED_END, Filter, GateRow, HeadRow, Origin,
    OtherDefinitions, QuarantineRelease, QuarantinedRow, ReleaseOutcome, RolloutRow, StoreError,
};
use mainspring_kernel::key::ExecutionKey;
use std::cmp::Reverse;
use std::collections::BTreeSet;

impl Executions for MemoryStore {
    fn execution(&self, execution: ExecutionKey) -> Result<Option<ExecutionRow>, StoreError> {
        Ok(self.state().rows.get(&execution).cloned())
    }

    fn execution_by_id(&self, id: &str) -> Result<Option<ExecutionRow>, StoreError> {
        let state = self.state();
        Ok(state.ids.get(id).and_then(|key| state.rows.get(key)).cloned())
    }

    fn execution_by_idempotency_key(&self, of: &Origin<'_>, key: &str) -> Result<Option<ExecutionRow>, StoreError> {
        let state = self.state();
        Ok(state.idempotency_keys.get(&start(of, key)).and_then(|key| state.rows.get(key)).cloned())
    }

    fn executions(
        &self,
        filter: &Filter,
        before: Option<ExecutionKey>,
        limit: usize,
    ) -> Result<Vec<ExecutionRow>, StoreError> {
        let state = self.state();
        let older = state.rows.values().rev().filter(|row| before.is_none_or(|before| row.key < before));
        let is = |asked: &Option<String>, found: &Option<String>| asked.is_none() || asked == found;
        let matching = older.filter(|row| {
            is(&filter.workflow, &row.workflow)
                && is(&filter.organization, &row.organization)
                && is(&filter.workflow_id, &row.workflow_id)
                && is(&filter.initiator, &row.initiator_user_id)
                && (filter.statuses.is_empty() || filter.statuses.contains(&row.status))
                && !(filter.excludes_quarantined && state.is_quarantined(row.key))
        });
        Ok(matching.take(limit).cloned().collect())
    }

    fn count_executions(&self, organization: &str, statuses: &[&str], most: usize) -> Result<usize, StoreError> {
        let state = self.state();
        let is_counted = |row: &&ExecutionRow| {
            row.organization.as_deref() == Some(organization)
                && statuses.contains(&row.status.as_str())
                && !state.is_quarantined(row.key)
        };
        Ok(state.rows.values().filter(is_counted).take(most).count())
    }

    fn count_other_definitions(&self, of: &OtherDefinitions<'_>, most: usize) -> Result<usize, StoreError> {
        let state = self.state();
        let is_counted = |row: &&ExecutionRow| {
            row.organization.as_deref() == Some(of.organization)
                && row.workflow_id.as_deref() == Some(of.workflow_id)
                && row.completed_at.is_none()
                && !of.hashes.contains(&row.workflow_hash)
                && !state.is_quarantined(row.key)
        };
        Ok(state.rows.values().filter(is_counted).take(most).count())
    }

    fn rollout_executions(&self, rollout: &str, limit: usize) -> Result<Vec<RolloutRow>, StoreError> {
        let state = self.state();
        let rows = state.rows.values().rev().filter(|row| row.names.rollout.as_deref() == Some(rollout));
        let of_row = |row: &ExecutionRow| RolloutRow {
            execution: row.key,
            parent: row.parent,
            parent_id: row.names.parent_id.clone(),
            error: row.error.clone(),
            status: row.status.clone(),
            started_at: row.started_at,
            completed_at: row.completed_at,
            usage: row.usage,
        };
        Ok(rows.take(limit).map(of_row).collect())
    }

    fn pending_organizations(&self) -> Result<BTreeSet<String>, StoreError> {
        let state = self.state();
        let pending = state.rows.values().filter(|row| row.status == "pending" && !state.is_quarantined(row.key));
        Ok(pending.filter_map(|row| row.organization.clone()).collect())
    }

    fn pending_approvals(
        &self,
        organization: Option<&str>,
        after: Option<(ExecutionKey, &str, u32)>,
        limit: usize,
    ) -> Result<Vec<GateRow>, StoreError> {
        let state = self.state();
        let after = after.map(|(execution, step, gate)| (Reverse(execution), step.to_owned(), gate));
        let behind = state.gates.iter().filter(|(place, _)| after.as_ref().is_none_or(|after| *place > after));
        let matching = behind.filter(|(_, row)| organization.is_none() || row.organization.as_deref() == organization);
        Ok(matching.take(limit).map(|(_, row)| row.clone()).collect())
    }

    fn quarantine(&self, execution: ExecutionKey, reason: &str) -> Result<(), StoreError> {
        if let Some(row) = self.state().heads.get_mut(&execution) {
            row.quarantined = Some(reason.to_owned());
        }
        Ok(())
    }

    fn quarantined(
        &self,
        organization: Option<&str>,
        after: Option<ExecutionKey>,
        limit: usize,
    ) -> Result<Vec<QuarantinedRow>, StoreError> {
        let state = self.state();
        let behind = state.heads.iter().filter(|(key, row)| !row.ended && after.is_none_or(|after| **key > after));
        let rows = behind.filter_map(|(key, head)| {
            let row = state.rows.get(key);
            let whose = row.and_then(|row| row.organization.clone());
            let reason = head.quarantined.clone()?;
            let is_asked = organization.is_none() || whose.as_deref() == organization;
            let id = row.map(|row| row.id.clone());
            is_asked.then_some(QuarantinedRow { execution: *key, id, organization: whose, reason })
        });
        Ok(rows.take(limit).collect())
    }

    fn release_quarantine(&self, release: &QuarantineRelease<'_>) -> Result<ReleaseOutcome, StoreError> {
        let QuarantineRelease { execution, parent, audited } = release;
        let state = &mut *self.state();
        let is_at = |row: &HeadRow, head: Expected| row.head.sequence == head.sequence && row.head.hash == head.hash;
        let row = |key: &ExecutionKey| state.heads.get(key);
        if parent.is_some_and(|parent| !row(&parent.execution).is_some_and(|row| is_at(row, parent.head))) {
            return Ok(ReleaseOutcome::ParentMoved);
        }
        if !row(execution).is_some_and(|row| !row.ended && row.quarantined.is_some()) {
            return Ok(ReleaseOutcome::NotQuarantined);
        }
        if let Some(AwaitingParent { execution, notice, .. }) = parent {
            state.consume(*execution, notice);
        }
        state.heads.entry(*execution).and_modify(|row| row.quarantined = None);
        state.catalogue.note(&audited.sealing, audited.audit);
        Ok(ReleaseOutcome::Released)
    }

    fn force_end(&self, audited: &AuditedNotes<'_>) -> Result<bool, StoreError> {
        let state = &mut *self.state();
        let Some(note) = audited.notes.first() else { return Ok(false) };
        let key = note.execution;
        let head = state.heads.get_mut(&key).filter(|row| row.quarantined.is_some() && !row.ended);
        let Some(head) = head else { return Ok(false) };
        (head.ended, head.wake_at) = (true, None);
        if let Some(row) = state.rows.get_mut(&key) {
            (row.status, row.outcome, row.error) = ("failed".into(), None, Some(FORCED_END.into()));
            row.completed_at = Some(note.at);
        }
        state.gates.retain(|(Reverse(execution), ..), _| *execution != key);
        state.inbox.retain(|_, message| message.execution != key);
        state.waiting.retain(|(execution, _), _| *execution != key);
        state.notes.entry((key, note.subject)).or_insert_with(|| note.clone());
        state.catalogue.note(&audited.sealing, audited.audit);
        Ok(true)
    }
}
