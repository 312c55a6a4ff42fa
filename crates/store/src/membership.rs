//! Nodes, their leases, partitions, and attempts that keep running at a node which released their execution.

use mainspring_kernel::key::ExecutionKey;

use crate::error::StoreError;

/// Stores nodes with their leases, and the owners of partitions.
pub trait Membership: Send + Sync {
    /// Returns true if several processes may use the store at the same time, each as a node. Otherwise the only process
    /// [claims](Self::claim) its partitions without leases.
    fn is_shared(&self) -> bool {
        false
    }

    /// Makes `holder` the owner of a partition and returns the new epoch, larger than every earlier one of that
    /// partition. Durable: a commit with an older epoch is rejected from now on.
    fn claim(&self, partition: u32, holder: &str) -> Result<u64, StoreError>;

    /// Returns the number of partitions over which the store spreads its executions; see [`partition_of`].
    fn partitions(&self) -> Result<u32, StoreError>;

    /// Spreads all executions and inbox messages over another number of partitions, at least 1. Durable, all or
    /// nothing. Afterwards no partition has an owner and each has a larger epoch, so earlier owners are fenced off.
    /// Nodes that are alive do not know this yet: nothing can be [acquired](Self::acquire) until the last of their leases
    /// has expired.
    fn repartition(&self, partitions: u32) -> Result<(), StoreError>;

    /// Returns the cluster view for a caller that is not a node: it holds no partitions.
    fn cluster_view(&self) -> Result<ClusterView, StoreError>;

    /// Records the heartbeat of a node, whose lease lasts `lease_ms` more milliseconds of the store's clock and covers
    /// all of its partitions. Durable. `None` if its previous lease has expired: its name cannot be used again, and
    /// another node may hold its partitions.
    fn heartbeat(&self, node: &Node, lease_ms: u64) -> Result<Option<ClusterView>, StoreError>;

    /// Makes a living node the owner of those of the partitions that no living node holds, each with a new epoch as
    /// from [`claim`](Self::claim). Durable. Returns nothing for a node that is not alive.
    fn acquire(&self, node: &str, partitions: &[u32]) -> Result<Vec<Fence>, StoreError>;

    /// Releases partitions that a node holds under these fences; others are ignored. Durable, all or nothing.
    ///
    /// `running` are attempts of their executions that keep running at the node. They belong to the node until it
    /// [ends](Self::end_remote) them or its lease expires.
    fn release(&self, node: &str, fences: &[Fence], running: &[RemoteAttempt]) -> Result<(), StoreError>;

    /// Ends the lease of a node that shuts down, so that its partitions can be acquired at once. Durable.
    fn leave(&self, node: &str) -> Result<(), StoreError>;

    /// Returns the attempts of an execution that keep running at living nodes which released it, with the names of the
    /// nodes.
    fn remote_attempts(&self, execution: ExecutionKey) -> Result<Vec<(RemoteAttempt, String)>, StoreError>;

    /// Requests the node of a running attempt to stop it, through its [cluster view](ClusterView::stop_requested). Durable.
    fn stop_remote(&self, attempt: &RemoteAttempt) -> Result<(), StoreError>;

    /// Records that attempts no longer run at a node; their results are in the inbox. Durable.
    fn end_remote(&self, node: &str, attempts: &[RemoteAttempt]) -> Result<(), StoreError>;
}

/// The proof of a lease: the epoch of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence {
    /// The partition that the lease covers.
    pub partition: u32,
    /// The epoch that [`Store::claim`] or [`Store::acquire`] returned.
    pub epoch: u64,
}

/// A process that shares a store with others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Names one incarnation of a process. A name is never reused, not even by the same process after its lease has
    /// expired.
    pub name: String,
    /// Its host and process, for people.
    pub address: String,
    /// Its release, for people.
    pub release: String,
    /// The newest version of decide that it supports.
    pub decide_version: u32,
    /// False while its clock is wrong or it is about to leave: the other nodes then share the partitions. A store that
    /// is not [shared](Store::is_shared) need not store it and always returns true.
    pub accepts_partitions: bool,
}

/// An attempt that keeps running at a node which has released its execution.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RemoteAttempt {
    /// The execution that the attempt belongs to.
    pub execution: ExecutionKey,
    /// The name of the step instance.
    pub step: String,
    /// The attempt's number.
    pub number: u32,
}

/// The cluster view: the store as its nodes see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterView {
    /// The number of partitions.
    pub partitions: u32,
    /// The leases of the requesting node, by partition.
    pub held: Vec<Fence>,
    /// The partitions that living nodes hold, with their names, by partition.
    pub holders: Vec<(u32, String)>,
    /// The living nodes, by name.
    pub nodes: Vec<Node>,
    /// Attempts at the requesting node that the owners of their executions ask to stop.
    pub stop_requested: Vec<RemoteAttempt>,
    /// The store's clock at the time of the response, in milliseconds since 1970.
    pub clock_ms: u64,
}

/// Returns the partition of an execution in a store with so many partitions. It uses the last eight bytes of the key,
/// which are random or a hash in every kind of key.
pub fn partition_of(execution: ExecutionKey, partitions: u32) -> u32 {
    let [.., a, b, c, d, e, f, g, h] = execution.0;
    (u64::from_be_bytes([a, b, c, d, e, f, g, h]) % u64::from(partitions.max(1))) as u32
}
