//! What compiling may cost: time and patterns of one request, however many definitions, functions and schemas it sends.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use mainspring_engine::evaluator::Evaluator;
use mainspring_sandbox::{Answer, Call, Console, Fault, FaultKind, Request};
use serde_json::Value;

/// How long the functions and schemas of one request are looked into, all together. Each of them alone may take as long.
const COMPILING_MAX: Duration = Duration::from_secs(10);

/// Regular expressions in the schemas of one request: each takes some milliseconds and up to a MiB to compile, and a
/// hand-written definition has a few.
const PATTERNS_MAX: u32 = 1_000;

/// Calls of one request at which a worker may die: one may be an accident of the machine, more are the definition's.
const CRASHES_MAX: u32 = 1;

/// The budget of one request, used up by each compile.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    /// When compiling must end; begins with the first call.
    until: Mutex<Option<Instant>>,
    patterns: AtomicU32,
    crashes: AtomicU32,
}

/// An evaluator that keeps to a budget. What is beyond it is refused as a fault of the definition, and no worker is asked.
pub(crate) struct Within<'e> {
    /// Answers the requests.
    pub evaluator: &'e dyn Evaluator,
    /// What they may cost.
    pub budget: &'e Budget,
    /// False for definitions that are stored already: a bound that came later does not stop them.
    pub counts_patterns: bool,
}

impl Budget {
    fn left(&self) -> Option<Duration> {
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        let until = *until.get_or_insert_with(|| Instant::now() + COMPILING_MAX);
        until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }

    fn take_patterns(&self, schema: &str) -> Result<(), Fault> {
        let count = serde_json::from_str(schema).map_or(0, |schema: Value| patterns(&schema));
        let before = self.patterns.fetch_add(count, Ordering::Relaxed);
        if before.saturating_add(count) <= PATTERNS_MAX {
            return Ok(());
        }
        let message = format!(
            "the schemas of this request have more than {PATTERNS_MAX} regular expressions (`pattern`, \
             `patternProperties`): use fewer, or save the workflows one at a time"
        );
        Err(Fault::new(FaultKind::SourceTooLarge, message))
    }
}

/// Regular expressions of a schema.
fn patterns(schema: &Value) -> u32 {
    match schema {
        Value::Object(fields) => {
            let own = fields.iter().map(|(key, value)| match (key.as_str(), value) {
                ("pattern", Value::String(_)) => 1,
                ("patternProperties", Value::Object(of)) => u32::try_from(of.len()).unwrap_or(u32::MAX),
                _ => 0,
            });
            own.chain(fields.values().map(patterns)).fold(0, u32::saturating_add)
        }
        Value::Array(items) => items.iter().map(patterns).fold(0, u32::saturating_add),
        _ => 0,
    }
}

fn refused(fault: Fault) -> Answer {
    Answer { result: Err(fault), console: Console::default(), ticks: 0 }
}

impl Evaluator for Within<'_> {
    fn call(&self, request: &Request) -> Answer {
        if self.counts_patterns
            && let Call::CheckSchema { schema } = &request.call
            && let Err(fault) = self.budget.take_patterns(schema)
        {
            return refused(fault);
        }
        let Some(left) = self.budget.left() else {
            let message = format!(
                "it was not looked into: the functions and schemas of this request took more than {} s already; make \
                 them smaller, or send fewer at a time",
                COMPILING_MAX.as_secs()
            );
            return refused(Fault::new(FaultKind::TimeExceeded, message));
        };
        let mut request = request.clone();
        let left_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1);
        request.limits.wall_ms_max = request.limits.wall_ms_max.min(left_ms);
        let answer = self.evaluator.call(&request);
        let is_crash = |fault: &Fault| fault.kind == FaultKind::Crashed;
        if answer.result.as_ref().is_err_and(is_crash)
            && self.budget.crashes.fetch_add(1, Ordering::Relaxed) >= CRASHES_MAX
        {
            let message =
                "the process that looked into it ended, as it did for another one of this request: simplify it";
            return refused(Fault::new(FaultKind::MemoryExceeded, message));
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Counts its calls, and fails each with a kind.
    struct Counting(AtomicUsize, Option<FaultKind>);

    impl Evaluator for Counting {
        fn call(&self, request: &Request) -> Answer {
            assert!(request.limits.wall_ms_max <= 10_000);
            self.0.fetch_add(1, Ordering::Relaxed);
            let result = self.1.map_or_else(|| Ok("null".into()), |kind| Err(Fault::new(kind, "no")));
            Answer { result, console: Console::default(), ticks: 0 }
        }
    }

    fn schema(patterns: u32) -> Request {
        let properties: serde_json::Map<_, _> =
            (0..patterns).map(|number| (number.to_string(), serde_json::json!({ "pattern": "a" }))).collect();
        let schema = serde_json::json!({ "properties": properties }).to_string();
        Request { call: Call::CheckSchema { schema }, limits: mainspring_sandbox::Limits::default() }
    }

    #[test]
    fn patterns_are_counted_over_all_schemas_of_a_request() {
        let (evaluator, budget) = (Counting(AtomicUsize::new(0), None), Budget::default());
        let within = Within { evaluator: &evaluator, budget: &budget, counts_patterns: true };
        assert!(within.call(&schema(PATTERNS_MAX - 1)).result.is_ok());
        assert!(within.call(&schema(1)).result.is_ok());
        let fault = within.call(&schema(1)).result.unwrap_err();
        assert_eq!(fault.kind, FaultKind::SourceTooLarge);
        assert_eq!(evaluator.0.load(Ordering::Relaxed), 2, "no worker is asked for what is refused");
        let nested = serde_json::json!({ "anyOf": [{ "patternProperties": { "a": { "pattern": "b" }, "c": {} } }] });
        assert_eq!(patterns(&nested), 3);
    }

    #[test]
    fn nothing_is_asked_of_a_worker_after_the_deadline() {
        let (evaluator, budget) = (Counting(AtomicUsize::new(0), None), Budget::default());
        *budget.until.lock().unwrap() = Some(Instant::now());
        let within = Within { evaluator: &evaluator, budget: &budget, counts_patterns: true };
        assert_eq!(within.call(&schema(0)).result.unwrap_err().kind, FaultKind::TimeExceeded);
        assert_eq!(evaluator.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_second_worker_that_dies_is_the_definitions_fault() {
        let (evaluator, budget) = (Counting(AtomicUsize::new(0), Some(FaultKind::Crashed)), Budget::default());
        let within = Within { evaluator: &evaluator, budget: &budget, counts_patterns: true };
        assert_eq!(within.call(&schema(0)).result.unwrap_err().kind, FaultKind::Crashed);
        assert_eq!(within.call(&schema(0)).result.unwrap_err().kind, FaultKind::MemoryExceeded);
    }
}
