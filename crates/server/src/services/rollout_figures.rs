//! The figures of a rollout, and the judgment of its thresholds.

use mainspring_kernel::{budget::COST_UNIT, value::Value};
use mainspring_store::RolloutRow;

use crate::{
    app::App,
    http::{body::Data, problem::Result},
    resources::{BothFigures, RolloutPlan, SideFigures},
    services::rollout_choice::{SAMPLE_MAX, side},
};

/// Reads the figures of both sides.
pub(crate) fn figures(app: &App, rollout: &str) -> Result<BothFigures> {
    let of = |is_candidate| -> Result<SideFigures> {
        let name = format!("{rollout}/{}", side(is_candidate));
        Ok(of_rows(&app.engine.store().rollout_executions(&name, SAMPLE_MAX + 1)?))
    };
    Ok(BothFigures { stable: of(false)?, candidate: of(true)? })
}

/// The figures as they are written to the audit log.
pub(crate) fn figures_value(both: &BothFigures) -> Value {
    let text = serde_json::to_string(both).unwrap_or_default();
    serde_json::from_str::<Data>(&text).unwrap_or_default().0
}

/// The figures of executions, the newest first, of which the last one only says that there are more.
fn of_rows(rows: &[RolloutRow]) -> SideFigures {
    let starts_more = rows.len() > SAMPLE_MAX;
    let rows = &rows[..rows.len().min(SAMPLE_MAX)];
    let count = |status: &str| rows.iter().filter(|row| row.status == status).count() as u64;
    let (completed, failed, cancelled) = (count("completed"), count("failed"), count("cancelled"));
    let mut durations: Vec<u64> = rows
        .iter()
        .filter(|row| row.status == "completed")
        .filter_map(|row| Some(row.completed_at?.saturating_sub(row.started_at)))
        .collect();
    durations.sort_unstable();
    let used: Vec<_> = rows.iter().filter_map(|row| row.usage).collect();
    let cost = used.iter().map(|used| used.cost as f64).sum::<f64>() / COST_UNIT as f64;
    let tokens = used.iter().fold(0_u64, |sum, used| sum.saturating_add(used.tokens));
    let mean = |total: f64| (!used.is_empty()).then(|| total / used.len() as f64);
    let judged = completed + failed;
    SideFigures {
        starts: rows.len() as u64,
        starts_more,
        completed,
        failed,
        cancelled,
        failure_rate_percent: (judged > 0).then(|| failed as f64 * 100.0 / judged as f64),
        duration_p50_ms: percentile(&durations, 50),
        duration_p95_ms: percentile(&durations, 95),
        cost_mean: mean(cost),
        cost_total: cost,
        tokens_mean: mean(tokens as f64),
        tokens_total: tokens,
    }
}

/// The smallest value that at least this percentage of the sorted values does not exceed (nearest rank).
fn percentile(sorted: &[u64], percent: usize) -> Option<u64> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}

/// The judgment of a rollout at its thresholds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Too few executions have ended, or a threshold cannot be computed yet. Each reason is a sentence.
    Waits(Vec<String>),
    /// Thresholds are exceeded.
    Exceeded(Vec<String>),
    /// All thresholds are kept.
    Kept(Vec<String>),
}

impl Verdict {
    /// The name in JSON.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Waits(_) => "waits",
            Self::Exceeded(_) => "exceeded",
            Self::Kept(_) => "kept",
        }
    }

    /// A sentence for each threshold that led to it.
    pub(crate) fn reasons(&self) -> &[String] {
        let (Self::Waits(reasons) | Self::Exceeded(reasons) | Self::Kept(reasons)) = self;
        reasons
    }
}

/// Judges a rollout; `None` for one without thresholds.
pub(crate) fn judge(plan: &RolloutPlan, both: &BothFigures) -> Option<Verdict> {
    let thresholds = plan.compare.as_ref()?;
    let BothFigures { stable, candidate } = both;
    let minimum = u64::from(plan.minimum);
    if candidate.judged() < minimum {
        let reason =
            format!("{} of {minimum} executions of the candidate have completed or failed", candidate.judged());
        return Some(Verdict::Waits(vec![reason]));
    }
    let is_comparable = stable.judged() >= minimum;
    let over = |new: Option<f64>, old: Option<f64>, combine: fn(f64, f64) -> f64| {
        is_comparable.then_some(()).and(new.zip(old)).map(|(new, old)| combine(new, old))
    };
    let duration = |of: fn(&SideFigures) -> Option<u64>| {
        // A duration of 0 is one below a millisecond.
        let of = |side: &SideFigures| of(side).map(|ms| ms.max(1) as f64);
        over(of(candidate), of(stable), |new, old| new / old)
    };
    let (new, old) = (candidate.failure_rate_percent, stable.failure_rate_percent);
    let measured = [
        ("failure rate in percent", thresholds.max_failure_rate_percent, new),
        ("percentage points of failures over the stable one", thresholds.max_failure_rate_points_over, {
            over(new, old, |new, old| new - old)
        }),
        ("ratio of median durations", thresholds.max_duration_p50_ratio, duration(|side| side.duration_p50_ms)),
        (
            "ratio of 95th percentile durations",
            thresholds.max_duration_p95_ratio,
            duration(|side| side.duration_p95_ms),
        ),
        ("ratio of mean costs", thresholds.max_cost_ratio, over(candidate.cost_mean, stable.cost_mean, cost_ratio)),
    ];
    let (mut waits, mut exceeded, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for (name, limit, measured) in measured {
        match (limit, measured) {
            (None, _) => {}
            (Some(_), None) => waits.push(format!(
                "{name}: too few executions to compare, {} of {minimum} of the stable definition",
                stable.judged()
            )),
            (Some(limit), Some(measured)) if measured > limit => {
                exceeded.push(format!("{name}: {measured:.2}, at most {limit}"));
            }
            (Some(limit), Some(measured)) => kept.push(format!("{name}: {measured:.2}, at most {limit}")),
        }
    }
    Some(match (exceeded.is_empty(), waits.is_empty()) {
        (false, _) => Verdict::Exceeded(exceeded),
        (true, false) => Verdict::Waits(waits),
        (true, true) => Verdict::Kept(kept),
    })
}

/// A candidate that costs something where nothing was paid exceeds every ratio.
fn cost_ratio(new: f64, old: f64) -> f64 {
    match (new > 0.0, old > 0.0) {
        (_, true) => new / old,
        (true, false) => f64::INFINITY,
        (false, false) => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use mainspring_store::RowUsage;

    use super::*;
    use crate::resources::Thresholds;

    fn row(status: &str, duration_ms: u64, tokens: u64, cost: u64) -> RolloutRow {
        let is_ended = ["completed", "failed", "cancelled"].contains(&status);
        RolloutRow {
            status: status.into(),
            started_at: 1_000,
            completed_at: is_ended.then_some(1_000 + duration_ms),
            usage: is_ended.then_some(RowUsage { tokens, cost }),
        }
    }

    #[test]
    fn figures_are_those_of_the_rows() {
        let rows = [
            row("running", 0, 0, 0),
            row("cancelled", 9_000, 2, COST_UNIT),
            row("failed", 1, 4, COST_UNIT),
            row("completed", 30, 0, 0),
            row("completed", 10, 0, 0),
            row("completed", 20, 6, COST_UNIT * 2),
        ];
        let expected = SideFigures {
            starts: 6,
            starts_more: false,
            completed: 3,
            failed: 1,
            cancelled: 1,
            failure_rate_percent: Some(25.0),
            duration_p50_ms: Some(20),
            duration_p95_ms: Some(30),
            cost_mean: Some(0.8),
            cost_total: 4.0,
            tokens_mean: Some(2.4),
            tokens_total: 12,
        };
        assert_eq!(of_rows(&rows), expected);
        assert_eq!(of_rows(&[]), SideFigures::default());
        let many = vec![row("failed", 1, 0, 0); SAMPLE_MAX + 1];
        let found = of_rows(&many);
        assert_eq!((found.starts, found.starts_more, found.failed), (SAMPLE_MAX as u64, true, SAMPLE_MAX as u64));
    }

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let of = |count: u64| [50, 95].map(|percent| percentile(&(1..=count).collect::<Vec<_>>(), percent));
        assert_eq!([of(0), of(1), of(2)], [[None, None], [Some(1), Some(1)], [Some(1), Some(2)]]);
        assert_eq!([of(20), of(100)], [[Some(10), Some(19)], [Some(50), Some(95)]]);
    }

    fn of_side(completed: u64, failed: u64, p50: u64, cost: f64) -> SideFigures {
        let judged = completed + failed;
        SideFigures {
            completed,
            failed,
            failure_rate_percent: (judged > 0).then(|| failed as f64 * 100.0 / judged as f64),
            duration_p50_ms: (completed > 0).then_some(p50),
            duration_p95_ms: (completed > 0).then_some(p50 * 2),
            cost_mean: (judged > 0).then_some(cost),
            ..SideFigures::default()
        }
    }

    #[track_caller]
    fn check(thresholds: &Thresholds, stable: SideFigures, candidate: SideFigures, expected: &str) {
        let plan = RolloutPlan { percent: 10, minimum: 10, compare: Some(thresholds.clone()), promote: false };
        let verdict = judge(&plan, &BothFigures { stable, candidate }).expect("there are thresholds");
        assert_eq!(verdict.name(), expected, "{verdict:?}");
        assert!(!verdict.reasons().is_empty());
    }

    #[test]
    fn nothing_is_judged_before_the_minimum() {
        let thresholds = Thresholds { max_failure_rate_percent: Some(50.0), ..Thresholds::default() };
        check(&thresholds, of_side(0, 0, 0, 0.0), of_side(0, 9, 0, 0.0), "waits");
        // Canceled executions do not count.
        check(&thresholds, of_side(0, 0, 0, 0.0), SideFigures { cancelled: 90, ..of_side(0, 9, 0, 0.0) }, "waits");
        check(&thresholds, of_side(0, 0, 0, 0.0), of_side(0, 10, 0, 0.0), "exceeded");
        check(&thresholds, of_side(0, 0, 0, 0.0), of_side(5, 5, 0, 0.0), "kept");
        let plan = RolloutPlan { percent: 10, minimum: 1, compare: None, promote: false };
        assert_eq!(judge(&plan, &BothFigures::default()), None);
    }

    #[test]
    fn comparisons_need_as_many_of_the_stable_definition() {
        let points = Thresholds { max_failure_rate_points_over: Some(10.0), ..Thresholds::default() };
        check(&points, of_side(9, 0, 1, 0.0), of_side(0, 10, 1, 0.0), "waits");
        check(&points, of_side(5, 5, 1, 0.0), of_side(4, 6, 1, 0.0), "kept");
        check(&points, of_side(6, 4, 1, 0.0), of_side(4, 6, 1, 0.0), "exceeded");
        let p50 = Thresholds { max_duration_p50_ratio: Some(1.5), ..Thresholds::default() };
        check(&p50, of_side(10, 0, 100, 0.0), of_side(10, 0, 150, 0.0), "kept");
        check(&p50, of_side(10, 0, 100, 0.0), of_side(10, 0, 151, 0.0), "exceeded");
        check(&p50, of_side(10, 0, 0, 0.0), of_side(10, 0, 1, 0.0), "kept");
        // Without a completed execution there is no duration.
        check(&p50, of_side(10, 0, 100, 0.0), of_side(0, 10, 1, 0.0), "waits");
        let p95 = Thresholds { max_duration_p95_ratio: Some(1.5), ..Thresholds::default() };
        check(&p95, of_side(10, 0, 100, 0.0), of_side(10, 0, 151, 0.0), "exceeded");
        let cost = Thresholds { max_cost_ratio: Some(2.0), ..Thresholds::default() };
        check(&cost, of_side(10, 0, 1, 1.0), of_side(10, 0, 1, 2.0), "kept");
        check(&cost, of_side(10, 0, 1, 1.0), of_side(10, 0, 1, 2.1), "exceeded");
        check(&cost, of_side(10, 0, 1, 0.0), of_side(10, 0, 1, 0.1), "exceeded");
        check(&cost, of_side(10, 0, 1, 0.0), of_side(10, 0, 1, 0.0), "kept");
    }

    #[test]
    fn one_exceeded_threshold_is_enough_and_one_missing_delays_the_promotion() {
        let both = Thresholds {
            max_failure_rate_percent: Some(20.0),
            max_duration_p50_ratio: Some(1.5),
            ..Thresholds::default()
        };
        check(&both, of_side(0, 0, 0, 0.0), of_side(0, 10, 1, 0.0), "exceeded");
        check(&both, of_side(0, 0, 0, 0.0), of_side(10, 0, 1, 0.0), "waits");
        check(&both, of_side(10, 0, 1, 0.0), of_side(10, 0, 1, 0.0), "kept");
    }
}
