//! The metric of stores: the time until a commit is durable.

use metrics::{Histogram, Unit, describe_histogram, histogram};

/// Registers the histogram for a kind of store. It does nothing without a recorder.
pub(crate) fn sync_time(store: &'static str) -> Histogram {
    let name = "mainspring_store_sync_seconds";
    describe_histogram!(
        name,
        Unit::Seconds,
        "Time until a commit is certain: COMMIT with its sync of SQLite, the last round trip of PostgreSQL."
    );
    histogram!(name, "store" => store)
}
