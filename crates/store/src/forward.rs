//! Forwarding for stores that wrap another one and change a few operations.

/// Expands to methods of a store's trait that call the same method of a field: `forward!(inner: head, frames)`.
#[macro_export]
macro_rules! forward {
    ($field:ident: $($method:ident),+ $(,)?) => {
        $($crate::forward_method!($field, $method);)+
    };
}

/// Expands to one of these methods.
#[doc(hidden)]
#[macro_export]
macro_rules! forward_method {
    ($field:ident, acquire) => {
        fn acquire(&self, node: &str, partitions: &[u32]) -> Result<Vec<$crate::Fence>, $crate::StoreError> {
            self.$field.acquire(node, partitions)
        }
    };
    ($field:ident, can_read_inline) => {
        fn can_read_inline(&self) -> bool {
            self.$field.can_read_inline()
        }
    };
    ($field:ident, catalogue) => {
        fn catalogue(&self) -> &dyn $crate::Catalogue {
            self.$field.catalogue()
        }
    };
    ($field:ident, check_files) => {
        fn check_files(&self) -> Result<(), $crate::StoreError> {
            self.$field.check_files()
        }
    };
    ($field:ident, claim) => {
        fn claim(&self, partition: u32, holder: &str) -> Result<u64, $crate::StoreError> {
            self.$field.claim(partition, holder)
        }
    };
    ($field:ident, cluster_view) => {
        fn cluster_view(&self) -> Result<$crate::ClusterView, $crate::StoreError> {
            self.$field.cluster_view()
        }
    };
    ($field:ident, commit) => {
        fn commit(&self, batch: &$crate::Batch) -> Result<Vec<$crate::PartOutcome>, $crate::CommitError> {
            self.$field.commit(batch)
        }
    };
    ($field:ident, count_executions) => {
        fn count_executions(
            &self,
            organization: &str,
            statuses: &[&str],
            most: usize,
        ) -> Result<usize, $crate::StoreError> {
            self.$field.count_executions(organization, statuses, most)
        }
    };
    ($field:ident, count_other_definitions) => {
        fn count_other_definitions(
            &self,
            of: &$crate::OtherDefinitions<'_>,
            most: usize,
        ) -> Result<usize, $crate::StoreError> {
            self.$field.count_other_definitions(of, most)
        }
    };
    ($field:ident, due) => {
        fn due(
            &self,
            partitions: &[u32],
            until_ms: u64,
            after: Option<$crate::Due>,
            limit: usize,
        ) -> Result<Vec<$crate::Due>, $crate::StoreError> {
            self.$field.due(partitions, until_ms, after, limit)
        }
    };
    ($field:ident, end_remote) => {
        fn end_remote(&self, node: &str, attempts: &[$crate::RemoteAttempt]) -> Result<(), $crate::StoreError> {
            self.$field.end_remote(node, attempts)
        }
    };
    ($field:ident, enqueue) => {
        fn enqueue(&self, request: &$crate::EnqueueRequest<'_>) -> Result<bool, $crate::StoreError> {
            self.$field.enqueue(request)
        }
    };
    ($field:ident, erase) => {
        fn erase(
            &self,
            execution: $crate::kernel::key::ExecutionKey,
            audited: &$crate::AuditedNotes<'_>,
        ) -> Result<usize, $crate::StoreError> {
            self.$field.erase(execution, audited)
        }
    };
    ($field:ident, event_queue) => {
        fn event_queue(&self) -> &dyn $crate::EventQueue {
            self.$field.event_queue()
        }
    };
    ($field:ident, execution) => {
        fn execution(
            &self,
            execution: $crate::kernel::key::ExecutionKey,
        ) -> Result<Option<$crate::ExecutionRow>, $crate::StoreError> {
            self.$field.execution(execution)
        }
    };
    ($field:ident, execution_by_id) => {
        fn execution_by_id(&self, id: &str) -> Result<Option<$crate::ExecutionRow>, $crate::StoreError> {
            self.$field.execution_by_id(id)
        }
    };
    ($field:ident, execution_by_idempotency_key) => {
        fn execution_by_idempotency_key(
            &self,
            of: &$crate::Origin<'_>,
            key: &str,
        ) -> Result<Option<$crate::ExecutionRow>, $crate::StoreError> {
            self.$field.execution_by_idempotency_key(of, key)
        }
    };
    ($field:ident, executions) => {
        fn executions(
            &self,
            filter: &$crate::Filter,
            before: Option<$crate::kernel::key::ExecutionKey>,
            limit: usize,
        ) -> Result<Vec<$crate::ExecutionRow>, $crate::StoreError> {
            self.$field.executions(filter, before, limit)
        }
    };
    ($field:ident, force_end) => {
        fn force_end(&self, audited: &$crate::AuditedNotes<'_>) -> Result<bool, $crate::StoreError> {
            self.$field.force_end(audited)
        }
    };
    ($field:ident, frames) => {
        fn frames(
            &self,
            execution: $crate::kernel::key::ExecutionKey,
            from: u64,
            limit: $crate::ReadLimit,
        ) -> Result<Vec<$crate::kernel::stored_frame::StoredFrame>, $crate::StoreError> {
            self.$field.frames(execution, from, limit)
        }
    };
    ($field:ident, executor_key) => {
        fn executor_key(
            &self,
            id: $crate::kernel::hash::Hash,
        ) -> Result<Option<$crate::StoredExecutorKey>, $crate::StoreError> {
            self.$field.executor_key(id)
        }
    };
    ($field:ident, executor_keys) => {
        fn executor_keys(
            &self,
            after: Option<$crate::kernel::hash::Hash>,
            limit: usize,
        ) -> Result<Vec<$crate::StoredExecutorKey>, $crate::StoreError> {
            self.$field.executor_keys(after, limit)
        }
    };
    ($field:ident, head) => {
        fn head(
            &self,
            execution: $crate::kernel::key::ExecutionKey,
        ) -> Result<Option<$crate::HeadRow>, $crate::StoreError> {
            self.$field.head(execution)
        }
    };
    ($field:ident, heartbeat) => {
        fn heartbeat(
            &self,
            node: &$crate::Node,
            lease_ms: u64,
        ) -> Result<Option<$crate::ClusterView>, $crate::StoreError> {
            self.$field.heartbeat(node, lease_ms)
        }
    };
    ($field:ident, inbox) => {
        fn inbox(
            &self,
            partitions: &[u32],
            after: u64,
            limit: $crate::ReadLimit,
        ) -> Result<Vec<$crate::InboxEntry>, $crate::StoreError> {
            self.$field.inbox(partitions, after, limit)
        }
    };
    ($field:ident, has_unsealed_resources) => {
        fn has_unsealed_resources(&self) -> bool {
            self.$field.has_unsealed_resources()
        }
    };
    ($field:ident, seals_resources) => {
        fn seals_resources(&self) -> bool {
            self.$field.seals_resources()
        }
    };
    ($field:ident, is_of_unsealed_format) => {
        fn is_of_unsealed_format(&self) -> bool {
            self.$field.is_of_unsealed_format()
        }
    };
    ($field:ident, is_shared) => {
        fn is_shared(&self) -> bool {
            self.$field.is_shared()
        }
    };
    ($field:ident, late_receipts) => {
        fn late_receipts(
            &self,
            execution: $crate::kernel::key::ExecutionKey,
        ) -> Result<Vec<$crate::LateReceipt>, $crate::StoreError> {
            self.$field.late_receipts(execution)
        }
    };
    ($field:ident, leave) => {
        fn leave(&self, node: &str) -> Result<(), $crate::StoreError> {
            self.$field.leave(node)
        }
    };
    ($field:ident, metadata) => {
        fn metadata(&self, name: &str) -> Result<Option<String>, $crate::StoreError> {
            self.$field.metadata(name)
        }
    };
    ($field:ident, newest_frame) => {
        fn newest_frame(&self) -> Option<u64> {
            self.$field.newest_frame()
        }
    };
    ($field:ident, notes) => {
        fn notes(
            &self,
            execution: $crate::kernel::key::ExecutionKey,
        ) -> Result<Vec<$crate::kernel::note::Note>, $crate::StoreError> {
            self.$field.notes(execution)
        }
    };
    ($field:ident, notify) => {
        fn notify(&self, partitions: &[u32]) {
            self.$field.notify(partitions)
        }
    };
    ($field:ident, partitions) => {
        fn partitions(&self) -> Result<u32, $crate::StoreError> {
            self.$field.partitions()
        }
    };
    ($field:ident, pending_approvals) => {
        fn pending_approvals(
            &self,
            organization: Option<&str>,
            after: Option<($crate::kernel::key::ExecutionKey, &str, u32)>,
            limit: usize,
        ) -> Result<Vec<$crate::GateRow>, $crate::StoreError> {
            self.$field.pending_approvals(organization, after, limit)
        }
    };
    ($field:ident, pending_organizations) => {
        fn pending_organizations(&self) -> Result<::std::collections::BTreeSet<String>, $crate::StoreError> {
            self.$field.pending_organizations()
        }
    };
    ($field:ident, plan) => {
        fn plan(&self, hash: $crate::kernel::hash::Hash) -> Result<Option<::std::sync::Arc<[u8]>>, $crate::StoreError> {
            self.$field.plan(hash)
        }
    };
    ($field:ident, put_metadata_if_absent) => {
        fn put_metadata_if_absent(&self, name: &str, value: &str) -> Result<String, $crate::StoreError> {
            self.$field.put_metadata_if_absent(name, value)
        }
    };
    ($field:ident, quarantine) => {
        fn quarantine(
            &self,
            execution: $crate::kernel::key::ExecutionKey,
            reason: &str,
        ) -> Result<(), $crate::StoreError> {
            self.$field.quarantine(execution, reason)
        }
    };
    ($field:ident, quarantined) => {
        fn quarantined(
            &self,
            organization: Option<&str>,
            after: Option<$crate::kernel::key::ExecutionKey>,
            limit: usize,
        ) -> Result<Vec<$crate::QuarantinedRow>, $crate::StoreError> {
            self.$field.quarantined(organization, after, limit)
        }
    };
    ($field:ident, receipt_proofs) => {
        fn receipt_proofs(
            &self,
            execution: $crate::kernel::key::ExecutionKey,
            from: u64,
            limit: usize,
        ) -> Result<Vec<(u64, Vec<u8>)>, $crate::StoreError> {
            self.$field.receipt_proofs(execution, from, limit)
        }
    };
    ($field:ident, release) => {
        fn release(
            &self,
            node: &str,
            fences: &[$crate::Fence],
            running: &[$crate::RemoteAttempt],
        ) -> Result<(), $crate::StoreError> {
            self.$field.release(node, fences, running)
        }
    };
    ($field:ident, release_quarantine) => {
        fn release_quarantine(
            &self,
            release: &$crate::QuarantineRelease<'_>,
        ) -> Result<$crate::ReleaseOutcome, $crate::StoreError> {
            self.$field.release_quarantine(release)
        }
    };
    ($field:ident, remote_attempts) => {
        fn remote_attempts(
            &self,
            execution: $crate::kernel::key::ExecutionKey,
        ) -> Result<Vec<($crate::RemoteAttempt, String)>, $crate::StoreError> {
            self.$field.remote_attempts(execution)
        }
    };
    ($field:ident, repartition) => {
        fn repartition(&self, partitions: u32) -> Result<(), $crate::StoreError> {
            self.$field.repartition(partitions)
        }
    };
    ($field:ident, rollout_executions) => {
        fn rollout_executions(
            &self,
            rollout: &str,
            limit: usize,
        ) -> Result<Vec<$crate::RolloutRow>, $crate::StoreError> {
            self.$field.rollout_executions(rollout, limit)
        }
    };
    ($field:ident, set_wake_at) => {
        fn set_wake_at(
            &self,
            execution: $crate::kernel::key::ExecutionKey,
            head: $crate::Expected,
            wake_at: Option<u64>,
        ) -> Result<bool, $crate::StoreError> {
            self.$field.set_wake_at(execution, head, wake_at)
        }
    };
    ($field:ident, stop_remote) => {
        fn stop_remote(&self, attempt: &$crate::RemoteAttempt) -> Result<(), $crate::StoreError> {
            self.$field.stop_remote(attempt)
        }
    };
    ($field:ident, subscribe) => {
        fn subscribe(&self, notify: $crate::NotifyCallback) {
            self.$field.subscribe(notify)
        }
    };
}
