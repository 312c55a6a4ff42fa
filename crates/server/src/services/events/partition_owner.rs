//! The node that sends: the owner of the partition that a name belongs to.

use mainspring_kernel::{hash::Hash, key::ExecutionKey};
use mainspring_store::partition_of;

use crate::{app::App, http::problem::Result};

/// True if this node sends for a subscription.
pub(super) fn owns(app: &App, subscription: &str, partitions: u32) -> bool {
    app.engine.owned_partitions().contains(&partition_of_name(subscription, partitions))
}

/// The partition of a name that is no execution. Its owner sends for the name.
fn partition_of_name(name: &str, partitions: u32) -> u32 {
    let mut key = [0; 16];
    key.copy_from_slice(&Hash::of(name.as_bytes()).0[..16]);
    partition_of(ExecutionKey(key), partitions)
}

/// Returns a test for the names for which this node sends at present.
pub(crate) fn owner(app: &App) -> Result<impl Fn(&str) -> bool + use<>> {
    let (owned, partitions) = (app.engine.owned_partitions(), app.engine.store().partitions()?);
    Ok(move |name: &str| owned.contains(&partition_of_name(name, partitions)))
}
