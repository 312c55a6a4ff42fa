//! The report of a shadow run.

use std::collections::BTreeMap;

use mainspring_kernel::{hash::Hash, json, value::Value};

use super::{
    comparison::{Difference, differences},
    recording::{Recording, Unusable},
    replay::{Horizon, Replay, Stop},
    trail::End,
};
use crate::limits::SHADOW_DIFFERENCES_MAX;

/// The name of the result for one execution. A later one outweighs an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// The same path, inputs, outputs and outcome.
    Same,
    /// The same path with another output or reason.
    OtherOutput,
    /// Another path.
    OtherPath,
    /// Another input to an effect.
    OtherInput,
    /// An effect or a wait without a recorded answer.
    NoAnswer,
    /// A bound of the replay was reached.
    Bound,
    /// The execution cannot be replayed.
    Unusable,
}

impl Grade {
    /// All grades.
    pub const ALL: [Self; 7] =
        [Self::Same, Self::OtherOutput, Self::OtherPath, Self::OtherInput, Self::NoAnswer, Self::Bound, Self::Unusable];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::OtherOutput => "other_output",
            Self::OtherPath => "other_path",
            Self::OtherInput => "other_input",
            Self::NoAnswer => "no_answer",
            Self::Bound => "bound",
            Self::Unusable => "unusable",
        }
    }
}

/// The comparison of one recorded execution with its replay.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutionReport {
    /// Public id of the recorded execution.
    pub execution_id: String,
    /// The name of the result.
    pub grade: Grade,
    /// The reason for which the replay stopped; for an unusable execution the reason.
    pub stop: String,
    /// End of the execution; `None` if it was still running.
    pub recorded: Option<End>,
    /// End of the replay; `None` if it stopped before.
    pub replayed: Option<End>,
    /// Calls that were answered with recorded answers.
    pub answered: usize,
    /// Calls and waits without an answer.
    pub horizon: Vec<Horizon>,
    /// Differences by step; at most [`SHADOW_DIFFERENCES_MAX`].
    pub differences: Vec<Difference>,
    /// The number of all differences.
    pub differences_total: usize,
    /// Recorded steps that the replay has not reached.
    pub not_reached: usize,
}

/// The report of a shadow run.
#[derive(Debug, Clone, PartialEq)]
pub struct ShadowReport {
    /// Hash of the new definition.
    pub proposed_hash: Hash,
    /// The executions, in the order in which they were given.
    pub executions: Vec<ExecutionReport>,
}

/// Compares an execution with its replay. Values are shown if `shows_values` is true, and otherwise only their places.
pub fn compare(recording: &Recording, replay: Replay, shows_values: bool) -> ExecutionReport {
    let (mut found, not_reached) = differences(recording, &replay, shows_values);
    let has_other_end = replay.stop == Stop::Ended && recording.end != replay.end;
    let grade = if matches!(replay.stop, Stop::Bound | Stop::Illegal) {
        Grade::Bound
    } else if !replay.other_inputs.is_empty() {
        Grade::OtherInput
    } else if !replay.horizon.is_empty() || (replay.stop == Stop::Horizon && recording.end.is_some()) {
        Grade::NoAnswer
    } else if found.iter().any(|difference| difference.kind.is_path()) {
        Grade::OtherPath
    } else if !found.is_empty() || has_other_end {
        Grade::OtherOutput
    } else {
        Grade::Same
    };
    let differences_total = found.len();
    found.truncate(SHADOW_DIFFERENCES_MAX);
    ExecutionReport {
        execution_id: recording.execution_id.clone(),
        grade,
        stop: replay.stop.name().into(),
        recorded: recording.end.clone(),
        replayed: replay.end,
        answered: replay.answered,
        horizon: replay.horizon,
        differences: found,
        differences_total,
        not_reached,
    }
}

impl ExecutionReport {
    /// Creates the report of an execution that cannot be replayed.
    pub fn unusable(execution_id: String, why: &Unusable) -> Self {
        Self::refused(execution_id, why.to_string())
    }

    /// Creates the report of an execution that is not replayed, with the reason.
    pub fn refused(execution_id: String, why: String) -> Self {
        Self {
            execution_id,
            grade: Grade::Unusable,
            stop: why,
            recorded: None,
            replayed: None,
            answered: 0,
            horizon: Vec::new(),
            differences: Vec::new(),
            differences_total: 0,
            not_reached: 0,
        }
    }

    /// Returns the report as data.
    pub fn to_value(&self) -> Value {
        let end = |end: &Option<End>| match end {
            Some(end) => Value::map([("status", Value::from(end.status)), ("reason", end.reason.as_deref().into())]),
            None => Value::Null,
        };
        Value::map([
            ("executionId", Value::from(self.execution_id.as_str())),
            ("grade", self.grade.name().into()),
            ("stop", self.stop.as_str().into()),
            ("recorded", end(&self.recorded)),
            ("replayed", end(&self.replayed)),
            ("answered", (self.answered as u64).into()),
            ("horizon", self.horizon.iter().map(horizon_value).collect::<Vec<_>>().into()),
            ("differences", self.differences.iter().map(difference_value).collect::<Vec<_>>().into()),
            ("differencesTotal", (self.differences_total as u64).into()),
            ("notReached", (self.not_reached as u64).into()),
        ])
    }
}

fn horizon_value(horizon: &Horizon) -> Value {
    Value::map([
        ("step", Value::from(horizon.step.as_str())),
        ("number", horizon.number.into()),
        ("kind", horizon.kind.as_str().into()),
        ("reason", horizon.reason.name().into()),
    ])
}

fn difference_value(difference: &Difference) -> Value {
    Value::map([
        ("step", Value::from(difference.step.as_str())),
        ("kind", difference.kind.name().into()),
        ("before", difference.before.as_deref().into()),
        ("after", difference.after.as_deref().into()),
        ("places", difference.places.iter().map(|place| Value::from(place.as_str())).collect::<Vec<_>>().into()),
    ])
}

impl ShadowReport {
    /// Returns the number of executions of each grade.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        let mut counts: BTreeMap<&'static str, u64> = Grade::ALL.into_iter().map(|grade| (grade.name(), 0)).collect();
        for execution in &self.executions {
            *counts.entry(execution.grade.name()).or_default() += 1;
        }
        counts
    }

    /// Returns the report as data.
    pub fn to_value(&self) -> Value {
        let counts = self.counts().into_iter().map(|(name, count)| (name, Value::from(count)));
        Value::map([
            ("proposedHash", Value::from(self.proposed_hash.prefixed())),
            ("counts", Value::map(counts)),
            ("executions", self.executions.iter().map(ExecutionReport::to_value).collect::<Vec<_>>().into()),
        ])
    }

    /// Returns the hash of the report.
    pub fn hash(&self) -> Hash {
        Hash::of(json::canonical(&self.to_value()).as_bytes())
    }
}
