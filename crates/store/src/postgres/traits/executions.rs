//! The catalogue's rows of executions, open approvals and quarantine.

use std::collections::BTreeSet;

use mainspring_kernel::key::ExecutionKey;

use crate::{
    AuditedNotes, ExecutionRow, Executions, Filter, GateRow, Origin, OtherDefinitions, QuarantineRelease,
    QuarantinedRow, ReleaseOutcome, RolloutRow, StoreError,
    postgres::{PostgresStore, approvals, connections::Who, executions, journal, notes},
};

impl Executions for PostgresStore {
    fn execution(&self, execution: ExecutionKey) -> Result<Option<ExecutionRow>, StoreError> {
        self.with_session(async |session| executions::by_key(session, execution).await)
    }

    fn execution_by_id(&self, id: &str) -> Result<Option<ExecutionRow>, StoreError> {
        self.with_session(async |session| executions::by_id(session, id).await)
    }

    fn execution_by_idempotency_key(&self, of: &Origin<'_>, key: &str) -> Result<Option<ExecutionRow>, StoreError> {
        self.with_session(async |session| executions::by_idempotency_key(session, of, key).await)
    }

    fn executions(
        &self,
        filter: &Filter,
        before: Option<ExecutionKey>,
        limit: usize,
    ) -> Result<Vec<ExecutionRow>, StoreError> {
        self.with_session(async |session| executions::list(session, filter, before, limit).await)
    }

    fn count_executions(&self, organization: &str, statuses: &[&str], most: usize) -> Result<usize, StoreError> {
        self.with_session(async |session| executions::count(session, organization, statuses, most).await)
    }

    fn count_other_definitions(&self, of: &OtherDefinitions<'_>, most: usize) -> Result<usize, StoreError> {
        self.with_session(async |session| executions::count_other_definitions(session, of, most).await)
    }

    fn rollout_executions(&self, rollout: &str, limit: usize) -> Result<Vec<RolloutRow>, StoreError> {
        self.with_session(async |session| executions::of_rollout(session, rollout, limit).await)
    }

    fn pending_organizations(&self) -> Result<BTreeSet<String>, StoreError> {
        self.with_session(async |session| executions::pending_organizations(session).await)
    }

    fn pending_approvals(
        &self,
        organization: Option<&str>,
        after: Option<(ExecutionKey, &str, u32)>,
        limit: usize,
    ) -> Result<Vec<GateRow>, StoreError> {
        self.with_session(async |session| approvals::list(session, organization, after, limit).await)
    }

    fn quarantine(&self, execution: ExecutionKey, reason: &str) -> Result<(), StoreError> {
        self.with_session(async |session| journal::set_quarantine(session, execution, reason).await)
    }

    fn quarantined(
        &self,
        organization: Option<&str>,
        after: Option<ExecutionKey>,
        limit: usize,
    ) -> Result<Vec<QuarantinedRow>, StoreError> {
        self.with_session(async |session| notes::quarantined(session, organization, after, limit).await)
    }

    fn release_quarantine(&self, release: &QuarantineRelease<'_>) -> Result<ReleaseOutcome, StoreError> {
        self.once(Who::Others, async |session| notes::release(session, release).await)
    }

    fn force_end(&self, audited: &AuditedNotes<'_>) -> Result<bool, StoreError> {
        self.once(Who::Others, async |session| notes::force_end(session, audited).await)
    }
}
