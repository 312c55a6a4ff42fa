//! A bound on work of organizations that costs money or starts processes: one at a time, and a number in each hour, at each
//! node.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

const HOUR_MS: u64 = 3_600_000;

/// The reason why work may not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// Other work of the organization runs.
    Busy,
    /// The organization has begun as much as it may in an hour.
    Hour,
}

/// The work of each organization.
#[derive(Debug)]
pub(crate) struct HourlyBound {
    per_hour: usize,
    organizations: Mutex<Organizations>,
}

#[derive(Debug, Default)]
struct Organizations {
    busy: BTreeSet<String>,
    begun_at_ms: BTreeMap<String, VecDeque<u64>>,
}

/// Permits one piece of work, until it is dropped.
pub(crate) struct Permit<'a> {
    bound: &'a HourlyBound,
    organization: String,
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.bound.lock().busy.remove(&self.organization);
    }
}

impl HourlyBound {
    pub(crate) fn new(per_hour: usize) -> Self {
        Self { per_hour, organizations: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Organizations> {
        self.organizations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Permits work of an organization to begin. `now` is in milliseconds.
    pub(crate) fn begin(&self, organization: &str, now: u64) -> Result<Permit<'_>, Full> {
        let mut all = self.lock();
        all.begun_at_ms.retain(|_, begun| {
            while begun.pop_front_if(|at| *at + HOUR_MS <= now).is_some() {}
            !begun.is_empty()
        });
        if all.busy.contains(organization) {
            return Err(Full::Busy);
        }
        let begun = all.begun_at_ms.entry(organization.into()).or_default();
        if begun.len() >= self.per_hour {
            return Err(Full::Hour);
        }
        begun.push_back(now);
        all.busy.insert(organization.into());
        drop(all);
        Ok(Permit { bound: self, organization: organization.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_serial_and_bounded_per_hour() {
        let bound = HourlyBound::new(3);
        let permit = bound.begin("acme", 0).ok().unwrap();
        assert_eq!(bound.begin("acme", 1).err(), Some(Full::Busy));
        assert!(bound.begin("globex", 1).is_ok());
        drop(permit);
        (1..3).for_each(|at| drop(bound.begin("acme", at).ok().unwrap()));
        assert_eq!(bound.begin("acme", HOUR_MS - 1).err(), Some(Full::Hour));
        assert!(bound.begin("acme", HOUR_MS).is_ok(), "the first one is an hour ago");
        assert_eq!(bound.begin("acme", HOUR_MS).err(), Some(Full::Hour));
    }
}
