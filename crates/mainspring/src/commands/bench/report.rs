//! A line of the report: one JSON object.

use std::time::Duration;

use mainspring_kernel::{
    json::compact,
    value::{Number, Value},
};

use super::load_generator::Measured;
use crate::output::terminal::print_out;

/// A line under construction. Fields are printed in the order of their names.
pub(super) struct ReportLine(Vec<(&'static str, Value)>);

impl ReportLine {
    /// `system` is `mainspring`, or `floor` for a lower bound.
    pub(super) fn new(system: &str, workload: &str) -> Self {
        Self(vec![("system", system.into()), ("workload", workload.into())])
    }

    pub(super) fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.0.push((name, value.into()));
        self
    }

    /// Adds a number with so many decimal places; null if it is not finite.
    pub(super) fn number(self, name: &'static str, number: f64, digits: i32) -> Self {
        let scale = 10f64.powi(digits);
        let rounded = Number::double((number * scale).round() / scale).map_or(Value::Null, Value::Number);
        self.with(name, rounded)
    }

    /// Adds a count per second.
    pub(super) fn rate(self, name: &'static str, count: usize, all: Duration) -> Self {
        let per_s = count as f64 / all.as_secs_f64();
        self.number(name, per_s, if per_s < 100.0 { 2 } else { 0 })
    }

    /// Adds the total duration, and percentiles of the single durations.
    pub(super) fn times(mut self, measured: &Measured) -> Self {
        let mut each = measured.each.clone();
        each.sort_unstable();
        self = self.number("seconds", measured.all.as_secs_f64(), 3);
        for (name, per_mille) in [("p50_ms", 500), ("p95_ms", 950), ("p99_ms", 990), ("max_ms", 1000)] {
            self = self.number(name, percentile(&each, per_mille).as_secs_f64() * 1000.0, 3);
        }
        self
    }

    pub(super) fn print(self) {
        print_out!("{}", compact(&Value::map(self.0)));
    }
}

/// The percentile of sorted durations by the nearest-rank method.
fn percentile(sorted: &[Duration], per_mille: usize) -> Duration {
    let place = (sorted.len() * per_mille).div_ceil(1000).saturating_sub(1);
    sorted.get(place).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let times: Vec<_> = (1..=200).map(Duration::from_millis).collect();
        for (per_mille, millis) in [(500, 100), (950, 190), (990, 198), (1000, 200), (1, 1)] {
            assert_eq!(percentile(&times, per_mille), Duration::from_millis(millis), "{per_mille}");
        }
        assert_eq!(percentile(&times[..1], 500), times[0]);
        assert_eq!(percentile(&[], 500), Duration::ZERO);
    }
}
