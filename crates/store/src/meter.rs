//! What a store shows of itself in numbers: how long it takes until a commit is certain.

use metrics::{Histogram, Unit, describe_histogram, histogram};

/// The time of the answer to COMMIT, for a kind of store. Made once, when a store is opened; it does nothing where nobody
/// records.
pub(crate) fn sync_time(store: &'static str) -> Histogram {
    let name = "mainspring_store_sync_seconds";
    describe_histogram!(
        name,
        Unit::Seconds,
        "Time until a commit is certain: COMMIT with its sync of SQLite, the last round trip of PostgreSQL."
    );
    histogram!(name, "store" => store)
}
