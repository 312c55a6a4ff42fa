//! Membership.
use super::MemoryStore;
use crate::{ClusterView, Fence, Membership, Node, RemoteAttempt, StoreError, partition_of};
use mainspring_kernel::key::ExecutionKey;
use std::collections::BTreeSet;

impl Membership for MemoryStore {
    fn claim(&self, partition: u32, holder: &str) -> Result<u64, StoreError> {
        Ok(self.state().own(partition, holder))
    }

    fn partitions(&self) -> Result<u32, StoreError> {
        Ok(self.state().partitions)
    }

    fn repartition(&self, partitions: u32) -> Result<(), StoreError> {
        let mut guard = self.state();
        let state = &mut *guard;
        state.partitions = partitions.max(1);
        for (key, row) in &mut state.heads {
            row.partition = partition_of(*key, state.partitions);
        }
        for (key, row) in &mut state.rows {
            row.partition = partition_of(*key, state.partitions);
        }
        for message in state.inbox.values_mut() {
            message.partition = partition_of(message.execution, state.partitions);
        }
        state.holders.clear();
        state.acquirable_from =
            state.nodes.values().map(|(_, until)| *until).chain([state.acquirable_from]).max().unwrap_or(0);
        state.epochs.values_mut().for_each(|epoch| *epoch += 1);
        Ok(())
    }

    fn cluster_view(&self) -> Result<ClusterView, StoreError> {
        Ok(self.state().table(""))
    }

    fn heartbeat(&self, node: &Node, lease_ms: u64) -> Result<Option<ClusterView>, StoreError> {
        let state = &mut *self.state();
        state.remote.retain(|_, (at, _)| state.nodes.contains_key(at));
        if state.nodes.contains_key(&node.name) && !state.is_alive(&node.name) {
            return Ok(None);
        }
        let until = state.now.saturating_add(lease_ms);
        state.nodes.insert(node.name.clone(), (node.clone(), until));
        Ok(Some(state.table(&node.name)))
    }

    fn acquire(&self, node: &str, partitions: &[u32]) -> Result<Vec<Fence>, StoreError> {
        let mut state = self.state();
        let mut taken = Vec::new();
        if state.now < state.acquirable_from {
            return Ok(taken);
        }
        for partition in BTreeSet::from_iter(partitions.iter().copied()) {
            if state.is_alive(node) && state.is_free(partition) {
                taken.push(Fence { partition, epoch: state.own(partition, node) });
            }
        }
        Ok(taken)
    }

    fn release(&self, node: &str, fences: &[Fence], running: &[RemoteAttempt]) -> Result<(), StoreError> {
        let mut state = self.state();
        for fence in fences {
            let is_epoch = state.epochs.get(&fence.partition) == Some(&fence.epoch);
            if is_epoch && state.holders.get(&fence.partition).is_some_and(|holder| holder == node) {
                state.holders.remove(&fence.partition);
            }
        }
        for attempt in running {
            let (at, _) = state.remote.entry(attempt.clone()).or_default();
            *at = node.to_owned();
        }
        Ok(())
    }

    fn leave(&self, node: &str) -> Result<(), StoreError> {
        let state = &mut *self.state();
        if let Some((_, until)) = state.nodes.get_mut(node) {
            *until = state.now.min(*until);
        }
        Ok(())
    }

    fn remote_attempts(&self, execution: ExecutionKey) -> Result<Vec<(RemoteAttempt, String)>, StoreError> {
        let state = self.state();
        let is_asked = |attempt: &RemoteAttempt, at: &str| attempt.execution == execution && state.is_alive(at);
        let remote = state.remote.iter().filter(|(attempt, (at, _))| is_asked(attempt, at));
        Ok(remote.map(|(attempt, (at, _))| (attempt.clone(), at.clone())).collect())
    }

    fn stop_remote(&self, attempt: &RemoteAttempt) -> Result<(), StoreError> {
        if let Some((_, is_to_stop)) = self.state().remote.get_mut(attempt) {
            *is_to_stop = true;
        }
        Ok(())
    }

    fn end_remote(&self, node: &str, attempts: &[RemoteAttempt]) -> Result<(), StoreError> {
        self.state().remote.retain(|attempt, (at, _)| at != node || !attempts.contains(attempt));
        Ok(())
    }
}
