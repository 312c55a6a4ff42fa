//! The workloads: a definition for each, and the inputs of its executions.

use std::sync::Arc;

use clap::ValueEnum;
use mainspring_engine::start_request::StartRequest;
use mainspring_kernel::{document::Document, value::Value};

use crate::{error::CliError, evaluator};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Workload {
    /// One step with an effect that does nothing
    #[value(name = "steps-1")]
    Steps1,
    /// Three such steps in sequence
    #[value(name = "steps-3")]
    Steps3,
    /// Ten such steps in sequence
    #[value(name = "steps-10")]
    Steps10,
    /// Ten JavaScript functions, each with the result of the previous one
    #[value(name = "code-10")]
    Code10,
    /// A thousand empty steps in sequence
    #[value(name = "chain-1000")]
    Chain1000,
    /// A hundred empty steps in parallel
    #[value(name = "fan-100")]
    Fan100,
    /// Lateness of executions that sleep some hundred milliseconds
    #[value(name = "timers")]
    Timers,
    /// Recovery time of N executions in flight after a kill
    #[value(name = "recover")]
    Recover,
}

/// The shortest sleep of a `timers` execution, and the range above it over which wake-ups are spread.
const SLEEP_MS: u64 = 200;
const SLEEP_SPREAD_MS: u64 = 600;
/// Coprime to the range, so that consecutive executions wake up far apart.
const SLEEP_STRIDE_MS: u64 = 233;

/// The timeout of a step, longer than the filling of a store takes: no execution may end by itself.
const PATIENCE_MS: u64 = 24 * 60 * 60 * 1000;

impl Workload {
    /// The name on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Steps1 => "steps-1",
            Self::Steps3 => "steps-3",
            Self::Steps10 => "steps-10",
            Self::Code10 => "code-10",
            Self::Chain1000 => "chain-1000",
            Self::Fan100 => "fan-100",
            Self::Timers => "timers",
            Self::Recover => "recover",
        }
    }

    /// True if a server can start the executions.
    pub(super) fn can_be_served(self) -> bool {
        !matches!(self, Self::Timers | Self::Recover)
    }

    /// The start request, equal for all executions except for the input.
    pub(super) fn request(self) -> Result<StartRequest, CliError> {
        let compiled = evaluator::compile(&Document::placeless(self.definition()));
        let plan = compiled.map_err(|diagnostics| {
            let first = diagnostics.first().map(|diagnostic| diagnostic.message.clone()).unwrap_or_default();
            CliError::internal("bench_failed", format!("the workload {} does not compile: {first}", self.name()))
        });
        Ok(StartRequest::new(Arc::new(plan?.plan), "bench"))
    }

    /// The input of an execution, by its number.
    pub(super) fn input(self, number: u64) -> Value {
        match self {
            Self::Code10 => Value::map([("n", number.into())]),
            Self::Timers => {
                let sleep_ms = SLEEP_MS + number.wrapping_mul(SLEEP_STRIDE_MS) % SLEEP_SPREAD_MS;
                Value::map([("sleepMs", sleep_ms.into())])
            }
            _ => Value::Null,
        }
    }

    pub(super) fn definition(self) -> Value {
        let steps: Vec<Value> = match self {
            Self::Steps1 | Self::Recover => nothings(1),
            Self::Steps3 => nothings(3),
            Self::Steps10 => nothings(10),
            Self::Chain1000 => nothings(1000),
            Self::Fan100 => {
                vec![Value::map([("id", "fan".into()), ("type", "parallel".into()), ("steps", nothings(100).into())])]
            }
            Self::Code10 => (1..=10).map(function).collect(),
            Self::Timers => vec![Value::map([("type", "sleep".into()), ("durationMs", "@input.sleepMs".into())])],
        };
        let constraints = Value::map([("maxSteps", 2000u32.into()), ("maxParallel", 100u32.into())]);
        Value::map([("name", self.name().into()), ("steps", steps.into()), ("constraints", constraints)])
    }
}

/// Steps with an effect that completes at once, or never for `recover`.
fn nothings(count: u32) -> Vec<Value> {
    let step = |number| {
        Value::map([
            ("id", format!("s{number}").into()),
            ("type", "tool".into()),
            ("tool", "nothing".into()),
            ("timeoutMs", PATIENCE_MS.into()),
        ])
    };
    (1..=count).map(step).collect()
}

/// A function of the previous function's result; the first one uses the input.
fn function(number: u32) -> Value {
    let source = match number {
        1 => "@input.n".to_string(),
        number => format!("@s{}", number - 1),
    };
    Value::map([
        ("id", format!("s{number}").into()),
        ("type", "code".into()),
        ("code", "export default ({ n }) => n + 1".into()),
        ("input", Value::map([("n", source.into())])),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_are_spread_over_some_hundred_milliseconds() {
        let sleep = |number| Workload::Timers.input(number).get("sleepMs").and_then(Value::as_u64).unwrap();
        let mut sleeps: Vec<_> = (0..SLEEP_SPREAD_MS).map(sleep).collect();
        sleeps.sort_unstable();
        assert!(sleeps.into_iter().eq(SLEEP_MS..SLEEP_MS + SLEEP_SPREAD_MS));
    }
}
