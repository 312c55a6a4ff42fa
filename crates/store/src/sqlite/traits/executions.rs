//! The catalogue's rows of executions, open approvals and quarantine.

use std::collections::BTreeSet;

use mainspring_kernel::key::ExecutionKey;

use crate::{
    AuditedNotes, ExecutionRow, Executions, Filter, GateRow, Origin, OtherDefinitions, QuarantineRelease,
    QuarantinedRow, ReleaseOutcome, RolloutRow, StoreError,
    sqlite::{SqliteStore, approvals, executions, notes},
};

impl Executions for SqliteStore {
    fn execution(&self, execution: ExecutionKey) -> Result<Option<ExecutionRow>, StoreError> {
        self.read(|connection| executions::by_key(connection, execution))
    }

    fn execution_by_id(&self, id: &str) -> Result<Option<ExecutionRow>, StoreError> {
        self.read(|connection| executions::by_id(connection, id))
    }

    fn execution_by_idempotency_key(&self, of: &Origin<'_>, key: &str) -> Result<Option<ExecutionRow>, StoreError> {
        self.read(|connection| executions::by_idempotency_key(connection, of, key))
    }

    fn executions(
        &self,
        filter: &Filter,
        before: Option<ExecutionKey>,
        limit: usize,
    ) -> Result<Vec<ExecutionRow>, StoreError> {
        self.read(|connection| executions::list(connection, filter, before, limit))
    }

    fn count_executions(&self, organization: &str, statuses: &[&str], most: usize) -> Result<usize, StoreError> {
        self.read(|connection| executions::count(connection, organization, statuses, most))
    }

    fn count_other_definitions(&self, of: &OtherDefinitions<'_>, most: usize) -> Result<usize, StoreError> {
        self.read(|connection| executions::count_other_definitions(connection, of, most))
    }

    fn rollout_executions(&self, rollout: &str, limit: usize) -> Result<Vec<RolloutRow>, StoreError> {
        self.read(|connection| executions::of_rollout(connection, rollout, limit))
    }

    fn pending_organizations(&self) -> Result<BTreeSet<String>, StoreError> {
        self.read(executions::pending_organizations)
    }

    fn pending_approvals(
        &self,
        organization: Option<&str>,
        after: Option<(ExecutionKey, &str, u32)>,
        limit: usize,
    ) -> Result<Vec<GateRow>, StoreError> {
        self.read(|connection| approvals::list(connection, organization, after, limit))
    }

    fn quarantine(&self, execution: ExecutionKey, reason: &str) -> Result<(), StoreError> {
        self.write(|connection| executions::quarantine(connection, execution, reason))
    }

    fn quarantined(
        &self,
        organization: Option<&str>,
        after: Option<ExecutionKey>,
        limit: usize,
    ) -> Result<Vec<QuarantinedRow>, StoreError> {
        self.read(|connection| notes::quarantined(connection, organization, after, limit))
    }

    fn release_quarantine(&self, release: &QuarantineRelease<'_>) -> Result<ReleaseOutcome, StoreError> {
        self.write(|connection| notes::release(connection, release))
    }

    fn force_end(&self, audited: &AuditedNotes<'_>) -> Result<bool, StoreError> {
        self.write(|connection| notes::force_end(connection, audited))
    }
}
