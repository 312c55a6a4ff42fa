//! Operators handle quarantined executions: they repair the store, then release executions or end them by force.

use mainspring_engine::quarantine::{Act, Place, Released, force_end, release};
use mainspring_kernel::key::ExecutionKey;
use mainspring_store::prelude::*;

use super::{Cluster, ClusterEvent};
use crate::fixture::keys;

/// Interval between two rounds of the operators, in milliseconds.
pub(super) const ROUND_MS: u64 = 5_000;

pub(super) const QUARANTINED: &str = "execution quarantined";
pub(super) const RELEASED: &str = "execution released";
pub(super) const RELEASED_AND_CANCELED: &str = "execution released and canceled";
pub(super) const NOT_RELEASED: &str = "release of a broken journal refused";
pub(super) const ENDED_BY_FORCE: &str = "execution ended by force";

/// Percent of quarantined executions that operators handle per round.
const HANDLED_PERCENT: u64 = 30;

/// Percent of those that they end by force.
const FORCED_END_PERCENT: u64 = 25;

/// Percent of changed rows that they repair per round although the execution is not quarantined.
const REPAIRED_PERCENT: u64 = 20;

impl Cluster {
    /// Handles quarantined executions. After the faults have ended everything is repaired and released.
    pub(super) fn operators_act(&mut self) -> Result<(), String> {
        self.at(ROUND_MS, ClusterEvent::Operators);
        if self.now < self.injected.down_until {
            return Ok(());
        }
        let is_healed = self.is_healed();
        let rows = self.store.quarantined(None, None, usize::MAX).map_err(|error| error.to_string())?;
        let quarantined: Vec<ExecutionKey> = rows.into_iter().map(|row| row.execution).collect();
        let others: Vec<ExecutionKey> =
            self.rare_faults.rows.keys().copied().filter(|execution| !quarantined.contains(execution)).collect();
        for execution in others {
            if !self.commits.is_ended_by_force(execution)
                && (is_healed || self.rare_faults.others.chance(REPAIRED_PERCENT))
            {
                self.repair(execution)?;
            }
        }
        for execution in quarantined {
            if is_healed || self.rare_faults.others.chance(HANDLED_PERCENT) {
                self.end_quarantine(execution)?;
            }
        }
        Ok(())
    }

    fn end_quarantine(&mut self, execution: ExecutionKey) -> Result<(), String> {
        let store = self.store.clone();
        let act = Act { key: &keys().sealing, by: "operator", reason: "the store was inspected", audit: &[] };
        let head = store.head(execution).map_err(|error| error.to_string())?.map(|row| row.head);
        let is_broken = self.rare_faults.rows.get(&execution).is_some_and(|row| row.breaks_journal(head.as_ref()));
        if self.workflows.subject.is_none() && self.rare_faults.others.chance(FORCED_END_PERCENT) {
            let place = Place { store: &store, loader: &self.loader, data_dir: None };
            force_end(place, execution, &act).map_err(|error| format!("{execution} cannot be ended: {error}"))?;
            self.commits.end_by_force(execution);
            self.progress.coverage.add_fault(ENDED_BY_FORCE);
            return Ok(());
        }
        if is_broken && self.rare_faults.others.chance(HANDLED_PERCENT) {
            let place = Place { store: &store, loader: &self.loader, data_dir: None };
            if release(place, execution, &act).is_ok() {
                return Err(format!("{execution} is released, and there is a foreign row in its journal"));
            }
            self.progress.coverage.add_fault(NOT_RELEASED);
        }
        self.repair(execution)?;
        let place = Place { store: &store, loader: &self.loader, data_dir: None };
        match release(place, execution, &act) {
            Ok(Released::Resumed) => self.progress.coverage.add_fault(RELEASED),
            Ok(Released::Canceled) if self.commits.is_waited_for(execution) => {
                return Err(format!("{execution} is canceled, and its parent waits for it"));
            }
            Ok(Released::Canceled) => self.progress.coverage.add_fault(RELEASED_AND_CANCELED),
            // The journal of the parent may not be repaired yet.
            Err(_) if !self.rare_faults.rows.is_empty() => {}
            Err(error) => return Err(format!("{execution} cannot be released: {error}")),
        }
        Ok(())
    }
}
