//! Nodes, their leases, and the owners of partitions.

use mainspring_kernel::key::ExecutionKey;

use crate::{
    ClusterView, Fence, Membership, Node, RemoteAttempt, StoreError,
    postgres::{PostgresStore, connections::Who, membership, remote_attempts},
};

impl Membership for PostgresStore {
    fn is_shared(&self) -> bool {
        true
    }

    fn claim(&self, partition: u32, holder: &str) -> Result<u64, StoreError> {
        self.repeat(Who::Leases, async |session| membership::claim(session, partition, holder).await)
    }

    fn partitions(&self) -> Result<u32, StoreError> {
        self.with_session(async |session| membership::partitions(session).await)
    }

    fn repartition(&self, partitions: u32) -> Result<(), StoreError> {
        self.with_session(async |session| membership::repartition(session, partitions.max(1)).await)
    }

    fn cluster_view(&self) -> Result<ClusterView, StoreError> {
        self.with_session(async |session| membership::cluster_view(session, "").await)
    }

    fn heartbeat(&self, node: &Node, lease_ms: u64) -> Result<Option<ClusterView>, StoreError> {
        self.repeat(Who::Leases, async |session| membership::heartbeat(session, node, lease_ms).await)
    }

    fn acquire(&self, node: &str, partitions: &[u32]) -> Result<Vec<Fence>, StoreError> {
        self.once(Who::Leases, async |session| membership::acquire(session, node, partitions).await)
    }

    fn release(&self, node: &str, fences: &[Fence], running: &[RemoteAttempt]) -> Result<(), StoreError> {
        self.repeat(Who::Leases, async |session| membership::release(session, node, fences, running).await)
    }

    fn leave(&self, node: &str) -> Result<(), StoreError> {
        self.repeat(Who::Leases, async |session| membership::leave(session, node).await)
    }

    fn remote_attempts(&self, execution: ExecutionKey) -> Result<Vec<(RemoteAttempt, String)>, StoreError> {
        self.with_session(async |session| remote_attempts::of_execution(session, execution).await)
    }

    fn stop_remote(&self, attempt: &RemoteAttempt) -> Result<(), StoreError> {
        self.with_session(async |session| remote_attempts::stop(session, attempt).await)
    }

    fn end_remote(&self, node: &str, attempts: &[RemoteAttempt]) -> Result<(), StoreError> {
        self.with_session(async |session| remote_attempts::end(session, node, attempts).await)
    }
}
