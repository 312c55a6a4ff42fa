//! Fault coverage: the combinations of record kinds and commit faults that occurred.

use std::{collections::BTreeMap, fmt};

use mainspring_kernel::record::Record;

use super::rare_faults::RARE_FAULTS;

/// The possible faults of a commit, which apply to every record in it. A commit that loses its lease in flight is
/// refused by its fence. Refusals for another head or a taken name are rarer and not counted.
pub(super) const COMMIT_OUTCOMES: [&str; 9] = [
    "written",
    "slow",
    "not written",
    "unknown, written",
    "unknown, not written",
    "crash before",
    "crash after",
    "lease lost on the way",
    PAUSED,
];

pub(super) const PAUSED: &str = "paused before its actions";

/// Counts by kind of record and fault of its commit, and counts of the faults that concern no record.
#[derive(Debug, Clone, Default)]
pub struct FaultCoverage(BTreeMap<(String, &'static str), u64>, BTreeMap<&'static str, u64>);

impl FaultCoverage {
    pub(super) fn add_records(&mut self, records: &[Record], outcome: &'static str) {
        for record in records {
            *self.0.entry((kind(record), outcome)).or_default() += 1;
        }
    }

    pub(super) fn add_fault(&mut self, fault: &'static str) {
        *self.1.entry(fault).or_default() += 1;
    }

    /// Returns whether any of these records is of a kind that has not met this fault yet.
    pub(super) fn has_new(&self, records: &[Record], outcome: &'static str) -> bool {
        records.iter().any(|record| !self.0.contains_key(&(kind(record), outcome)))
    }

    /// Adds the counts of another table.
    pub fn add(&mut self, other: &Self) {
        for (pair, count) in &other.0 {
            *self.0.entry(pair.clone()).or_default() += count;
        }
        for (fault, count) in &other.1 {
            *self.1.entry(fault).or_default() += count;
        }
    }

    /// Lists the faults that never occurred.
    pub fn missing_faults(&self) -> Vec<&'static str> {
        RARE_FAULTS.into_iter().filter(|fault| !self.1.contains_key(fault)).collect()
    }

    /// Lists the combinations that never occurred, for the kinds of records that were written.
    pub fn missing(&self) -> Vec<String> {
        let missing = self.kinds().into_iter().flat_map(|kind| COMMIT_OUTCOMES.map(|outcome| (kind.clone(), outcome)));
        missing.filter(|pair| !self.0.contains_key(pair)).map(|(kind, outcome)| format!("{kind}: {outcome}")).collect()
    }

    /// Lists the kinds of records that were written.
    pub fn kinds(&self) -> Vec<String> {
        let mut kinds: Vec<String> = self.0.keys().map(|(kind, _)| kind.clone()).collect();
        kinds.dedup();
        kinds
    }
}

impl fmt::Display for FaultCoverage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{:22} {}", "", COMMIT_OUTCOMES.join(" | "))?;
        for kind in self.kinds() {
            let counts = COMMIT_OUTCOMES.map(|outcome| {
                let count = self.0.get(&(kind.clone(), outcome)).copied().unwrap_or_default();
                format!("{count:>width$}", width = outcome.len())
            });
            writeln!(out, "{kind:22} {}", counts.join(" | "))?;
        }
        for (fault, count) in &self.1 {
            writeln!(out, "{fault}: {count}")?;
        }
        Ok(())
    }
}

/// The kind of a record, as in the kernel's `Record`.
pub(super) fn kind(record: &Record) -> String {
    let shown = format!("{record:?}");
    shown.chars().take_while(char::is_ascii_alphanumeric).collect()
}
