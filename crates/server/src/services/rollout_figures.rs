//! The figures of a rollout, and the judgment of its thresholds.

use std::collections::HashSet;

use mainspring_engine::clock::now_ms;
use mainspring_kernel::{budget::COST_UNIT, value::Value};
use mainspring_store::RolloutRow;

use crate::{
    app::App,
    http::{body::Data, problem::Result},
    resources::{
        BothFigures, Rollout, RolloutPlan, SideFigures, Thresholds,
        repository::{Repository, Stored},
    },
    services::{
        rollout_choice::{SAMPLE_MAX, side},
        rollout_outcomes::{Ancestors, Outcome},
        rollout_progress::progress,
    },
};

/// Reads the figures of both sides.
pub(crate) fn figures(app: &App, organization: &str, rollout: &Stored<Rollout>) -> Result<BothFigures> {
    let id = rollout.id.split_once('/').map_or(rollout.id.as_str(), |(_, id)| id);
    let refused = progress(Repository::of(app.catalogue(), organization), &rollout.id)?.body.refused.len();
    let store = app.engine.store();
    let (mut ancestors, roots_max) = (Ancestors::of(&**store), rollout.body.plan.minimum as usize);
    let mut of = |is_candidate| -> Result<Sample> {
        let name = format!("{id}/{}", side(is_candidate));
        let refused = if is_candidate { refused } else { 0 };
        of_rows(&store.rollout_executions(&name, SAMPLE_MAX + 1)?, refused, roots_max, &mut ancestors)
    };
    let (stable, candidate) = (of(false)?, of(true)?);
    let overdue = candidate.overdue(now_ms(), stable.slowest_ms);
    Ok(BothFigures { stable: stable.figures, candidate: SideFigures { overdue, ..candidate.figures } })
}

/// The figures as they are written to the audit log.
pub(crate) fn figures_value(both: &BothFigures) -> Value {
    let text = serde_json::to_string(both).unwrap_or_default();
    serde_json::from_str::<Data>(&text).unwrap_or_default().0
}

/// The executions of one side.
struct Sample {
    figures: SideFigures,
    /// Duration of the slowest completed one; 0 if there are none.
    slowest_ms: u64,
    /// Start of each unfinished one, in milliseconds since 1970.
    unfinished_since: Vec<u64>,
}

impl Sample {
    /// Counts the executions that have been unfinished for longer than a duration.
    fn overdue(&self, now: u64, most_ms: u64) -> u64 {
        self.unfinished_since.iter().filter(|since| now.saturating_sub(**since) > most_ms).count() as u64
    }
}

/// The figures of executions, the newest first, of which the last one only says that there are more.
fn of_rows(rows: &[RolloutRow], refused: usize, roots_max: usize, ancestors: &mut Ancestors<'_>) -> Result<Sample> {
    let starts_more = rows.len() > SAMPLE_MAX;
    let rows = &rows[..rows.len().min(SAMPLE_MAX)];
    let (mut completed, mut failed, mut cancelled) = (0, 0, 0);
    let (mut durations, mut unfinished_since, mut roots) = (Vec::new(), Vec::new(), HashSet::new());
    for row in rows {
        let outcome = ancestors.outcome(row)?;
        match outcome {
            Outcome::Unfinished => unfinished_since.push(row.started_at),
            Outcome::Completed => {
                completed += 1;
                durations.extend(row.completed_at.map(|at| at.saturating_sub(row.started_at)));
            }
            Outcome::Failed => failed += 1,
            Outcome::Canceled => cancelled += 1,
        }
        // A root is looked up in the store, so no more of them are than the minimum needs.
        if matches!(outcome, Outcome::Completed | Outcome::Failed) && refused + roots.len() < roots_max {
            ancestors.add_root(&mut roots, row)?;
        }
    }
    durations.sort_unstable();
    let used: Vec<_> = rows.iter().filter_map(|row| row.usage).collect();
    let cost = used.iter().map(|used| u128::from(used.cost)).sum::<u128>() as f64 / COST_UNIT as f64;
    let tokens = used.iter().fold(0_u64, |sum, used| sum.saturating_add(used.tokens));
    let mean = |total: f64| (!used.is_empty()).then(|| total / used.len() as f64);
    let refused_roots = refused.min(roots_max);
    let (refused, bad) = (refused as u64, failed + refused as u64);
    let judged = completed + bad;
    let figures = SideFigures {
        starts: rows.len() as u64,
        starts_more,
        completed,
        failed,
        cancelled,
        refused,
        roots: (refused_roots + roots.len()) as u64,
        overdue: 0,
        failure_rate_percent: (judged > 0).then(|| bad as f64 * 100.0 / judged as f64),
        duration_p50_ms: percentile(&durations, 50),
        duration_p95_ms: percentile(&durations, 95),
        cost_mean: mean(cost),
        cost_total: cost,
        tokens_mean: mean(tokens as f64),
        tokens_total: tokens,
    };
    Ok(Sample { figures, slowest_ms: durations.last().copied().unwrap_or_default(), unfinished_since })
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

/// A threshold: its name, its limit, and the measured value or the reason for which it has none.
type Measured = (&'static str, Option<f64>, Result<f64, String>);

/// Judges a rollout; `None` for one without thresholds.
pub(crate) fn judge(plan: &RolloutPlan, both: &BothFigures) -> Option<Verdict> {
    let thresholds = plan.compare.as_ref()?;
    let (minimum, candidate) = (u64::from(plan.minimum), &both.candidate);
    if candidate.roots < minimum {
        let reason = format!(
            "{} of {minimum} root executions with the candidate have completed, have failed or were refused",
            candidate.roots
        );
        return Some(Verdict::Waits(vec![reason]));
    }
    let (mut waits, mut exceeded, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for (name, limit, measured) in measured(thresholds, minimum, both) {
        match (limit, measured) {
            (None, _) => {}
            (Some(_), Err(why)) => waits.push(format!("{name}: {why}")),
            (Some(limit), Ok(measured)) => {
                let list = if measured > limit { &mut exceeded } else { &mut kept };
                list.push(format!("{name}: {measured:.2}, at most {limit}"));
            }
        }
    }
    if candidate.overdue > 0 {
        let overdue = match candidate.overdue {
            1 => "1 execution of the candidate is".into(),
            overdue => format!("{overdue} executions of the candidate are"),
        };
        waits.push(format!(
            "{overdue} unfinished for longer than the slowest completed one of the stable definition took"
        ));
    }
    Some(match (exceeded.is_empty(), waits.is_empty()) {
        (false, _) => Verdict::Exceeded(exceeded),
        (true, false) => Verdict::Waits(waits),
        (true, true) => Verdict::Kept(kept),
    })
}

fn measured(thresholds: &Thresholds, minimum: u64, BothFigures { stable, candidate }: &BothFigures) -> [Measured; 5] {
    let over = |new: Option<f64>, old: Option<f64>, combine: fn(f64, f64) -> f64| match (new, old) {
        (None, _) => Err("no execution of the candidate has completed".to_string()),
        _ if stable.roots < minimum => Err(format!(
            "too few executions to compare, {} of {minimum} root executions with the stable definition",
            stable.roots
        )),
        (_, None) => Err("no execution of the stable definition has completed".to_string()),
        (Some(new), Some(old)) => Ok(combine(new, old)),
    };
    let duration = |of: fn(&SideFigures) -> Option<u64>| {
        // A duration of 0 is one below a millisecond.
        let of = |side: &SideFigures| of(side).map(|ms| ms.max(1) as f64);
        over(of(candidate), of(stable), |new, old| new / old)
    };
    let (new, old) = (candidate.failure_rate_percent, stable.failure_rate_percent);
    [
        (
            "failure rate in percent",
            thresholds.max_failure_rate_percent,
            new.ok_or_else(|| "no execution of the candidate has ended".to_string()),
        ),
        (
            "percentage points of failures over the stable one",
            thresholds.max_failure_rate_points_over,
            over(new, old, |new, old| new - old),
        ),
        ("ratio of median durations", thresholds.max_duration_p50_ratio, duration(|side| side.duration_p50_ms)),
        (
            "ratio of 95th percentile durations",
            thresholds.max_duration_p95_ratio,
            duration(|side| side.duration_p95_ms),
        ),
        ("ratio of mean costs", thresholds.max_cost_ratio, over(candidate.cost_mean, stable.cost_mean, cost_ratio)),
    ]
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
    use mainspring_kernel::key::ExecutionKey;
    use mainspring_store::{RowUsage, memory::MemoryStore};

    use super::*;

    fn row(status: &str, duration_ms: u64, tokens: u64, cost: u64) -> RolloutRow {
        let is_ended = ["completed", "failed", "cancelled"].contains(&status);
        RolloutRow {
            execution: ExecutionKey([duration_ms as u8; 16]),
            parent: None,
            parent_id: None,
            error: None,
            status: status.into(),
            started_at: 1_000,
            completed_at: is_ended.then_some(1_000 + duration_ms),
            usage: is_ended.then_some(RowUsage { tokens, cost }),
        }
    }

    fn sample(rows: &[RolloutRow], refused: usize, roots_max: usize) -> Sample {
        of_rows(rows, refused, roots_max, &mut Ancestors::of(&MemoryStore::new())).expect("the store answers")
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
            refused: 0,
            roots: 4,
            overdue: 0,
            failure_rate_percent: Some(25.0),
            duration_p50_ms: Some(20),
            duration_p95_ms: Some(30),
            cost_mean: Some(0.8),
            cost_total: 4.0,
            tokens_mean: Some(2.4),
            tokens_total: 12,
        };
        let found = sample(&rows, 0, 20);
        assert_eq!((found.figures, found.slowest_ms), (expected, 30));
        let none = sample(&[], 0, 20).figures;
        assert_eq!(none, SideFigures::default());
        assert!(none.cost_total.is_sign_positive(), "0 and not -0");
        let many = vec![row("failed", 1, 0, 0); SAMPLE_MAX + 1];
        let found = sample(&many, 0, 20).figures;
        assert_eq!((found.starts, found.starts_more, found.failed), (SAMPLE_MAX as u64, true, SAMPLE_MAX as u64));
    }

    #[test]
    fn refused_starts_are_failures_and_roots() {
        let found = sample(&[row("completed", 1, 0, 0), row("completed", 2, 0, 0)], 2, 3).figures;
        assert_eq!((found.refused, found.roots, found.failure_rate_percent), (2, 3, Some(50.0)));
    }

    #[test]
    fn executions_of_one_parent_have_one_root() {
        let child = |number: u64| RolloutRow { parent_id: Some("p".into()), ..row("completed", number, 0, 0) };
        let rows: Vec<_> = (0..20).map(child).chain([row("failed", 99, 0, 0)]).collect();
        let found = sample(&rows, 0, 20).figures;
        assert_eq!((found.completed, found.roots), (20, 2));
    }

    #[test]
    fn unfinished_executions_are_overdue_after_the_slowest_duration() {
        let found = sample(&[row("running", 0, 0, 0), row("pending", 0, 0, 0)], 0, 20);
        assert_eq!([found.overdue(1_030, 30), found.overdue(1_031, 30), found.overdue(999, 0)], [0, 2, 0]);
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
            roots: judged,
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
    fn no_verdict_is_given_before_the_minimum() {
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
    fn an_overdue_execution_holds_the_promotion_and_not_the_abort() {
        let thresholds = Thresholds { max_failure_rate_percent: Some(50.0), ..Thresholds::default() };
        let overdue = |side: SideFigures| SideFigures { overdue: 1, ..side };
        check(&thresholds, of_side(0, 0, 0, 0.0), overdue(of_side(10, 0, 0, 0.0)), "waits");
        check(&thresholds, of_side(0, 0, 0, 0.0), overdue(of_side(0, 10, 0, 0.0)), "exceeded");
    }

    #[test]
    fn a_missing_duration_names_its_side() {
        let thresholds = Thresholds { max_duration_p50_ratio: Some(1.5), ..Thresholds::default() };
        let plan = RolloutPlan { percent: 10, minimum: 10, compare: Some(thresholds), promote: false };
        for (stable, candidate, expected) in [
            (of_side(9, 0, 1, 0.0), of_side(0, 10, 1, 0.0), "no execution of the candidate has completed"),
            (of_side(0, 10, 1, 0.0), of_side(10, 0, 1, 0.0), "no execution of the stable definition has completed"),
            (of_side(9, 0, 1, 0.0), of_side(10, 0, 1, 0.0), "9 of 10 root executions with the stable definition"),
        ] {
            let verdict = judge(&plan, &BothFigures { stable, candidate }).expect("there are thresholds");
            assert!(verdict.reasons()[0].contains(expected), "{verdict:?}");
        }
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
    fn one_exceeded_threshold_aborts_and_a_missing_one_delays() {
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
