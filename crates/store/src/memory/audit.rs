//! Audit logs.
use super::MemoryStore;
use crate::{Audit, AuditHead, AuditRow, ReadLimit, StoreError};

impl Audit for MemoryStore {
    fn audit(&self, organization: &str, after: u64, bound: ReadLimit) -> Result<Vec<AuditRow>, StoreError> {
        let state = self.state();
        let rows = state.catalogue.audit.get(organization).into_iter().flatten().filter(|row| row.number > after);
        Ok(bound.take(rows, |row| row.byte_count()).into_iter().cloned().collect())
    }

    fn audit_head(&self, organization: &str) -> Result<Option<AuditHead>, StoreError> {
        Ok(self.state().catalogue.audit_heads.get(organization).cloned())
    }
}
