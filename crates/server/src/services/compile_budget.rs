//! Compile budget of one request: time, regular expressions and worker crashes, over all definitions, functions and
//! schemas that the request sends.
//!
//! Only the time of the evaluation counts against a definition. The wait for a worker has a bound of its own, because
//! the author of a definition does not cause it; a request that reaches it gets 503.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use mainspring_engine::evaluator::Evaluator;
use mainspring_kernel::hash::Hash;
use mainspring_sandbox::{Call, Console, Fault, FaultKind, Request, Response};
use serde_json::Value;

/// Most evaluation time for the functions and schemas of one request, in sum. A single one may use all of it.
const COMPILING_MAX: Duration = Duration::from_secs(10);

/// Most time that one request waits for workers, in sum: as long as for a slot, since it occupies one during the wait.
const WAITING_MAX: Duration = Duration::from_secs(10);

/// Most regular expressions in the schemas of one request. Each takes milliseconds and up to a MiB to compile, and a
/// hand-written definition has a few.
const PATTERNS_MAX: u32 = 1_000;

/// Worker crashes that one request may cause. One may be an accident of the machine; a second is blamed on the
/// definition.
const CRASHES_MAX: u32 = 1;

/// The budget of one request, consumed by each compilation.
#[derive(Debug, Default)]
pub(crate) struct Budget(Mutex<Spent>);

#[derive(Debug, Default)]
struct Spent {
    compiling: Duration,
    waiting: Duration,
    patterns: u32,
    crashes: u32,
    /// True after no worker was free in time.
    is_late: bool,
    /// Cached answers by the hash of the call: a retry after a write conflict repeats the same calls.
    answers: HashMap<Hash, Response>,
}

/// An evaluator that enforces a budget. A call beyond it fails as an error of the definition, without a worker.
pub(crate) struct Within<'e> {
    pub evaluator: &'e dyn Evaluator,
    /// The organization that sends the definition.
    pub tenant: &'e str,
    pub budget: &'e Budget,
    /// True for stored definitions: a bound that was added later does not stop them.
    pub is_stored: bool,
}

/// As [`Within`], for work that owns its evaluator.
pub(crate) struct Charged {
    pub evaluator: Arc<dyn Evaluator>,
    /// The organization that sends the definition.
    pub tenant: String,
    pub budget: Arc<Budget>,
}

impl Evaluator for Charged {
    fn call(&self, request: &Request) -> Response {
        let Self { evaluator, tenant, budget } = self;
        Within { evaluator: &**evaluator, tenant, budget, is_stored: false }.call(request)
    }
}

impl Budget {
    /// True if a call failed because no worker was free. The definition is then neither valid nor invalid.
    pub(crate) fn is_late(&self) -> bool {
        self.spent().is_late
    }

    fn spent(&self) -> MutexGuard<'_, Spent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spent {
    fn take_patterns(&mut self, schema: &str) -> Result<(), Fault> {
        let count = serde_json::from_str(schema).map_or(0, |schema: Value| patterns(&schema));
        self.patterns = self.patterns.saturating_add(count);
        if self.patterns <= PATTERNS_MAX {
            return Ok(());
        }
        let message = format!(
            "the schemas of this request have more than {PATTERNS_MAX} regular expressions (`pattern`, \
             `patternProperties`): use fewer, or save the workflows one at a time"
        );
        Err(Fault::new(FaultKind::SourceTooLarge, message))
    }

    /// The time left for a call, or the reason for its rejection.
    fn room(&mut self, request: &Request) -> Result<Duration, Fault> {
        if let Call::CheckSchema { schema } = &request.call {
            self.take_patterns(schema)?;
        }
        COMPILING_MAX.checked_sub(self.compiling).filter(|left| !left.is_zero()).ok_or_else(|| {
            let message = format!(
                "it was not checked: the functions and schemas of this request took more than {} s already; make \
                 them smaller, or send fewer at a time",
                COMPILING_MAX.as_secs()
            );
            Fault::new(FaultKind::TimeExceeded, message)
        })
    }

    /// Counts the cost of an answer.
    fn answered(&mut self, answer: &Response, took: Duration, waited: Duration) -> Result<(), Fault> {
        self.waiting += waited;
        self.compiling += took.saturating_sub(waited);
        self.crashes += u32::from(answer.result.as_ref().is_err_and(|fault| fault.kind == FaultKind::Crashed));
        if self.crashes <= CRASHES_MAX {
            return Ok(());
        }
        let message = "the process that checked it ended, as it did for another one of this request: simplify it";
        Err(Fault::new(FaultKind::MemoryExceeded, message))
    }
}

/// Counts the regular expressions of a schema.
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

fn refused(fault: Fault) -> Response {
    Response { result: Err(fault), console: Console::default(), ticks: 0 }
}

/// Cache key of a call: its content without its limits.
fn name(call: &Call) -> Option<Hash> {
    match call {
        Call::CheckSchema { schema } => Some(Hash::of(&[b"schema ", schema.as_bytes()].concat())),
        Call::CheckFunction { source } => Some(Hash::of(&[b"function ", source.as_bytes()].concat())),
        _ => None,
    }
}

impl Evaluator for Within<'_> {
    fn call(&self, request: &Request) -> Response {
        let name = name(&request.call);
        if let Some(known) = name.and_then(|name| self.budget.spent().answers.get(&name).cloned()) {
            return known;
        }
        let mut request = request.clone();
        if !self.is_stored {
            match self.budget.spent().room(&request) {
                Ok(left) => {
                    let left_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1);
                    request.limits.wall_ms_max = request.limits.wall_ms_max.min(left_ms);
                }
                Err(fault) => return refused(fault),
            }
        }
        let wait_max = WAITING_MAX.saturating_sub(self.budget.spent().waiting);
        let began = Instant::now();
        let called = self.evaluator.call_within(self.tenant, &request, wait_max);
        let mut spent = self.budget.spent();
        match called {
            Ok((answer, waited)) => {
                if let Err(fault) = spent.answered(&answer, began.elapsed(), waited) {
                    return refused(fault);
                }
                let lasts = |fault: &Fault| !matches!(fault.kind, FaultKind::Crashed | FaultKind::Unavailable);
                if let Some(name) = name.filter(|_| answer.result.as_ref().err().is_none_or(lasts)) {
                    spent.answers.insert(name, answer.clone());
                }
                answer
            }
            Err(busy) => {
                spent.is_late = true;
                refused(busy)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Counts its calls, and fails each with the given kind.
    struct Counting(AtomicUsize, Option<FaultKind>);

    impl Evaluator for Counting {
        fn call(&self, request: &Request) -> Response {
            assert!(request.limits.wall_ms_max <= 10_000);
            self.0.fetch_add(1, Ordering::Relaxed);
            let result = self.1.map_or_else(|| Ok("null".into()), |kind| Err(Fault::new(kind, "no")));
            Response { result, console: Console::default(), ticks: 0 }
        }
    }

    /// A pool with a free worker after the given time, and never after more than ten seconds.
    struct Busy(Duration);

    impl Evaluator for Busy {
        fn call(&self, _: &Request) -> Response {
            unreachable!("the wait has a bound")
        }

        fn call_within(&self, _: &str, _: &Request, wait_max: Duration) -> Result<(Response, Duration), Fault> {
            if self.0 > wait_max {
                return Err(Fault::new(FaultKind::Unavailable, "busy"));
            }
            Ok((Response { result: Ok("null".into()), console: Console::default(), ticks: 0 }, self.0))
        }
    }

    fn within<'a>(evaluator: &'a dyn Evaluator, budget: &'a Budget) -> Within<'a> {
        Within { evaluator, tenant: "acme", budget, is_stored: false }
    }

    /// A schema with the given number of patterns; the title makes it distinct.
    fn schema(patterns: u32, title: &str) -> Request {
        let properties: serde_json::Map<_, _> =
            (0..patterns).map(|number| (number.to_string(), serde_json::json!({ "pattern": "a" }))).collect();
        let schema = serde_json::json!({ "title": title, "properties": properties }).to_string();
        Request { call: Call::CheckSchema { schema }, limits: mainspring_sandbox::Limits::default() }
    }

    #[test]
    fn patterns_are_counted_over_all_schemas_of_a_request() {
        let (evaluator, budget) = (Counting(AtomicUsize::new(0), None), Budget::default());
        let within = within(&evaluator, &budget);
        assert!(within.call(&schema(PATTERNS_MAX - 1, "a")).result.is_ok());
        assert!(within.call(&schema(1, "b")).result.is_ok());
        let fault = within.call(&schema(1, "c")).result.unwrap_err();
        assert_eq!(fault.kind, FaultKind::SourceTooLarge);
        assert_eq!(evaluator.0.load(Ordering::Relaxed), 2, "no worker is asked for what is refused");
        let nested = serde_json::json!({ "anyOf": [{ "patternProperties": { "a": { "pattern": "b" }, "c": {} } }] });
        assert_eq!(patterns(&nested), 3);
    }

    #[test]
    fn a_retried_request_spends_no_more() {
        let (evaluator, budget) = (Counting(AtomicUsize::new(0), None), Budget::default());
        for _ in 0..5 {
            assert!(within(&evaluator, &budget).call(&schema(PATTERNS_MAX - 1, "a")).result.is_ok());
        }
        assert_eq!(evaluator.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn only_cached_results_are_used_after_the_deadline() {
        let (evaluator, budget) = (Counting(AtomicUsize::new(0), None), Budget::default());
        budget.spent().compiling = COMPILING_MAX;
        let within = within(&evaluator, &budget);
        assert_eq!(within.call(&schema(0, "a")).result.unwrap_err().kind, FaultKind::TimeExceeded);
        assert_eq!(evaluator.0.load(Ordering::Relaxed), 0);
        let stored = Within { is_stored: true, ..within };
        assert!(stored.call(&schema(PATTERNS_MAX + 1, "b")).result.is_ok());
    }

    #[test]
    fn the_wait_for_a_worker_is_not_the_definitions_fault() {
        let (slow, budget) = (Busy(Duration::from_secs(4)), Budget::default());
        for title in ["a", "b"] {
            assert!(within(&slow, &budget).call(&schema(0, title)).result.is_ok());
        }
        assert!(!budget.is_late() && budget.spent().compiling < Duration::from_secs(1));
        assert_eq!(within(&slow, &budget).call(&schema(0, "c")).result.unwrap_err().kind, FaultKind::Unavailable);
        assert!(budget.is_late(), "twelve seconds in all are too long");
        let (mut spent, second) = (Spent::default(), Duration::from_secs(1));
        let (answer, _) = slow.call_within("acme", &schema(0, "d"), second * 9).unwrap();
        spent.answered(&answer, second * 9, second * 8).unwrap();
        assert_eq!((spent.compiling, spent.waiting), (second, second * 8));
    }

    #[test]
    fn the_second_worker_that_dies_is_the_definitions_fault() {
        let (evaluator, budget) = (Counting(AtomicUsize::new(0), Some(FaultKind::Crashed)), Budget::default());
        let within = within(&evaluator, &budget);
        assert_eq!(within.call(&schema(0, "a")).result.unwrap_err().kind, FaultKind::Crashed);
        assert_eq!(within.call(&schema(0, "a")).result.unwrap_err().kind, FaultKind::MemoryExceeded);
    }
}
