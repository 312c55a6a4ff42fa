//! The choice of a start between the two definitions of a rollout, and the rules for its plan.

use std::borrow::Cow;

use mainspring_engine::start_request::ROLLOUT_IN_TRIGGER;
use mainspring_kernel::{hash::Hash, value::Value};

use crate::{
    http::problem::{Code, Problem, Result},
    resources::{
        ActiveRollout, RolloutPlan, Thresholds, Version, Workflow,
        repository::{Repository, Stored},
        version_id,
    },
};

/// Executions of one side that are read for its figures: enough that a failure rate is known to one point, and read from
/// the store in some tens of milliseconds.
pub(crate) const SAMPLE_MAX: usize = 5_000;

/// Buckets into which keys are hashed: hundredths of a percent.
const BUCKETS: u64 = 10_000;

/// Bounds of the thresholds.
const PERCENT_MAX: f64 = 100.0;
const RATIO_MAX: f64 = 1_000.0;

/// Largest minimum of a plan: as many executions as the figures are read from.
const MINIMUM_MAX: u32 = SAMPLE_MAX as u32;

/// The definition that a start takes.
pub(crate) struct Chosen<'a> {
    /// The workflow with this definition.
    pub workflow: Cow<'a, Stored<Workflow>>,
    /// The entry of the trigger with the reason; `None` without a rollout.
    pub rollout: Option<(&'static str, Value)>,
    /// The bucket of the start in a rollout, if it takes the candidate.
    pub candidate_bucket: Option<u64>,
}

/// Chooses the definition of a start by its key. The same key gets the same one for as long as the rollout runs.
pub(crate) fn choose<'a>(repository: Repository<'_>, workflow: &'a Stored<Workflow>, key: &str) -> Result<Chosen<'a>> {
    let Some(rollout) = &workflow.body.rollout else {
        return Ok(stable(workflow, None));
    };
    let bucket = bucket(&rollout.id, key);
    let is_candidate = bucket < u64::from(rollout.percent) * (BUCKETS / 100);
    let said = Value::map([
        ("id", Value::from(rollout.id.as_str())),
        ("version", side(is_candidate).into()),
        ("percent", rollout.percent.into()),
        ("bucket", bucket.into()),
    ]);
    let said = Some((ROLLOUT_IN_TRIGGER, said));
    if !is_candidate {
        return Ok(stable(workflow, said));
    }
    let Version { data, hash, version, .. } = version_of(repository, &workflow.id, rollout)?;
    let mut chosen = workflow.clone();
    (chosen.body.data, chosen.body.hash, chosen.body.version) = (data, hash, version);
    Ok(Chosen { workflow: Cow::Owned(chosen), rollout: said, candidate_bucket: Some(bucket) })
}

/// A start with the definition of the workflow.
pub(super) fn stable<'a>(workflow: &'a Stored<Workflow>, rollout: Option<(&'static str, Value)>) -> Chosen<'a> {
    Chosen { workflow: Cow::Borrowed(workflow), rollout, candidate_bucket: None }
}

/// The name of a side, as in the column of executions.
pub(crate) fn side(is_candidate: bool) -> &'static str {
    if is_candidate { "candidate" } else { "stable" }
}

/// The bucket of a key, 0 to 9,999. The bias of the remainder is below one in 10^15.
fn bucket(rollout: &str, key: &str) -> u64 {
    let hash = Hash::of_parts(&[
        &b"rollout"[..],
        &(rollout.len() as u64).to_be_bytes()[..],
        rollout.as_bytes(),
        key.as_bytes(),
    ]);
    let first: [u8; 8] = hash.0[..8].try_into().unwrap_or_default();
    u64::from_be_bytes(first) % BUCKETS
}

/// The candidate in the history of a workflow.
pub(super) fn version_of(repository: Repository<'_>, workflow: &str, rollout: &ActiveRollout) -> Result<Version> {
    let version = repository.require::<Version>(&version_id(workflow, rollout.revision))?.body;
    if version.hash == rollout.candidate.hash {
        return Ok(version);
    }
    let message = format!("The history of the workflow `{workflow}` does not have the candidate of its rollout.");
    Err(Problem::new(Code::InternalError, message))
}

/// Refuses a change that a rollout excludes.
pub(crate) fn check_none(id: &str, workflow: &Workflow) -> Result<()> {
    match &workflow.rollout {
        None => Ok(()),
        Some(rollout) => Err(Problem::new(
            Code::Conflict,
            format!("The workflow `{id}` has the rollout `{}`: promote or abort it first.", rollout.id),
        )),
    }
}

/// Refuses shares, minimums and thresholds out of their bounds.
pub(crate) fn check_plan(plan: &RolloutPlan) -> Result<()> {
    let refused = |field: &str, message: &str| Err(Problem::field(&format!("rollout.{field}"), message));
    if !(1..=99).contains(&plan.percent) {
        return refused("percent", "it must be 1 to 99: apply without `rollout` for all starts");
    }
    if !(1..=MINIMUM_MAX).contains(&plan.minimum) {
        return refused("minimum", &format!("it must be 1 to {MINIMUM_MAX}"));
    }
    let Some(thresholds) = &plan.compare else {
        return match plan.promote {
            true => refused("promote", "it needs thresholds in `compare`: without them only people decide"),
            false => Ok(()),
        };
    };
    if *thresholds == Thresholds::default() {
        return refused("compare", "it has no threshold: give one, or leave it out");
    }
    let rates = [
        ("maxFailureRatePercent", thresholds.max_failure_rate_percent),
        ("maxFailureRatePointsOver", thresholds.max_failure_rate_points_over),
    ];
    let ratios = [
        ("maxDurationP50Ratio", thresholds.max_duration_p50_ratio),
        ("maxDurationP95Ratio", thresholds.max_duration_p95_ratio),
        ("maxCostRatio", thresholds.max_cost_ratio),
    ];
    for (name, rate) in rates {
        if rate.is_some_and(|rate| !(0.0..=PERCENT_MAX).contains(&rate)) {
            return refused(&format!("compare.{name}"), "it must be 0 to 100");
        }
    }
    for (name, ratio) in ratios {
        if ratio.is_some_and(|ratio| !(ratio > 0.0 && ratio <= RATIO_MAX)) {
            return refused(&format!("compare.{name}"), "it must be above 0, and 1,000 at most");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_follows_from_rollout_and_key_alone() {
        assert_eq!(bucket("ro-1", "a"), bucket("ro-1", "a"));
        // The parts are divided: another division of the same text is another bucket.
        assert_ne!(bucket("ro-1", "a"), bucket("ro-", "1a"));
        assert_eq!([bucket("ro-1", "a"), bucket("ro-1", "b"), bucket("ro-2", "a")], [4716, 6575, 3818]);
    }

    #[test]
    fn the_share_of_many_keys_is_the_percentage() {
        for percent in [1_u64, 10, 50, 99] {
            let taken = (0..10_000).filter(|key| bucket("ro-x", &format!("key {key}")) < percent * 100).count() as f64;
            let expected = percent as f64 * 100.0;
            // Five standard deviations of a binomial distribution.
            let bound = 5.0 * (expected * (1.0 - percent as f64 / 100.0)).sqrt();
            assert!((taken - expected).abs() < bound, "{percent} percent: {taken}");
        }
    }

    #[test]
    fn plans_are_checked() {
        let plan = |text: &str| check_plan(&serde_json::from_str(text).expect(text)).map_err(|problem| problem.message);
        for right in [
            r#"{"percent": 1}"#,
            r#"{"percent": 99, "minimum": 5000, "compare": {"maxFailureRatePercent": 0}}"#,
            r#"{"percent": 10, "promote": true, "compare": {"maxCostRatio": 1000, "maxDurationP50Ratio": 0.5}}"#,
        ] {
            assert_eq!(plan(right), Ok(()), "{right}");
        }
        for (wrong, field) in [
            (r#"{"percent": 0}"#, "rollout.percent"),
            (r#"{"percent": 100}"#, "rollout.percent"),
            (r#"{"percent": 1, "minimum": 0}"#, "rollout.minimum"),
            (r#"{"percent": 1, "minimum": 5001}"#, "rollout.minimum"),
            (r#"{"percent": 1, "promote": true}"#, "rollout.promote"),
            (r#"{"percent": 1, "compare": {}}"#, "rollout.compare:"),
            (r#"{"percent": 1, "compare": {"maxFailureRatePercent": 101}}"#, "rollout.compare.maxFailureRatePercent"),
            (
                r#"{"percent": 1, "compare": {"maxFailureRatePointsOver": -1}}"#,
                "rollout.compare.maxFailureRatePointsOver",
            ),
            (r#"{"percent": 1, "compare": {"maxDurationP50Ratio": 0}}"#, "rollout.compare.maxDurationP50Ratio"),
            (r#"{"percent": 1, "compare": {"maxDurationP95Ratio": 1e9}}"#, "rollout.compare.maxDurationP95Ratio"),
            (r#"{"percent": 1, "compare": {"maxCostRatio": -1}}"#, "rollout.compare.maxCostRatio"),
        ] {
            let message = plan(wrong).expect_err(wrong);
            assert!(message.starts_with(field), "{wrong}: {message}");
        }
        for unknown in [r#"{"percent": 1, "compare": {"maxErrors": 1}}"#, r#"{"percent": 1, "pct": 1}"#] {
            assert!(serde_json::from_str::<RolloutPlan>(unknown).is_err(), "{unknown}");
        }
    }
}
