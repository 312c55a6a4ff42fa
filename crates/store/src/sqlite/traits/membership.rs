//! Nodes, their leases, and the owners of partitions.

use mainspring_kernel::key::ExecutionKey;

use crate::{
    ClusterView, Fence, Membership, Node, RemoteAttempt, StoreError,
    sqlite::{SqliteStore, membership},
};

impl Membership for SqliteStore {
    fn claim(&self, partition: u32, holder: &str) -> Result<u64, StoreError> {
        self.write(|connection| membership::claim(connection, partition, holder))
    }

    fn partitions(&self) -> Result<u32, StoreError> {
        self.read(membership::partitions)
    }

    fn repartition(&self, partitions: u32) -> Result<(), StoreError> {
        self.write(|connection| membership::repartition(connection, partitions.max(1)))
    }

    fn cluster_view(&self) -> Result<ClusterView, StoreError> {
        self.read(|connection| membership::cluster_view(connection, ""))
    }

    fn heartbeat(&self, node: &Node, lease_ms: u64) -> Result<Option<ClusterView>, StoreError> {
        self.write(|connection| membership::heartbeat(connection, node, lease_ms))
    }

    fn acquire(&self, node: &str, partitions: &[u32]) -> Result<Vec<Fence>, StoreError> {
        self.write(|connection| membership::acquire(connection, node, partitions))
    }

    fn release(&self, node: &str, fences: &[Fence], running: &[RemoteAttempt]) -> Result<(), StoreError> {
        self.write(|connection| membership::release(connection, node, fences, running))
    }

    fn leave(&self, node: &str) -> Result<(), StoreError> {
        self.write(|connection| membership::leave(connection, node))
    }

    fn remote_attempts(&self, execution: ExecutionKey) -> Result<Vec<(RemoteAttempt, String)>, StoreError> {
        self.read(|connection| membership::remote_attempts(connection, execution))
    }

    fn stop_remote(&self, attempt: &RemoteAttempt) -> Result<(), StoreError> {
        self.write(|connection| membership::stop_remote(connection, attempt))
    }

    fn end_remote(&self, node: &str, attempts: &[RemoteAttempt]) -> Result<(), StoreError> {
        self.write(|connection| membership::end_remote(connection, node, attempts))
    }
}
