//! The interface to the sandbox, which evaluates functions and schemas in this process or in worker processes.

use std::{
    num::NonZero,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use mainspring_kernel::{
    decide::{Decided, Paused},
    definition::{Complaint, FunctionTypes, Inspector},
    evaluation::{Check, Evaluated, Evaluation, Function},
    failure::{Class, Failure},
    input::ORGANIZATION_IN_TRIGGER,
    json,
    limits::OUTPUT_BYTES_MAX,
    state::State,
    value::{Map, Value},
};
use mainspring_sandbox::{
    Call, Console, Fault, FaultKind, Limits, Request, Response, Validate, WorkerCommand, Workers, limits::TICKS_PER_MS,
};

use crate::turn::{DecidedTurn, UndecidedTurn};

/// Runs functions and checks schemas.
pub trait Evaluator: Send + Sync {
    /// Answers one request of the sandbox. Returns within the time limit of the request, even if the function never
    /// ends.
    fn call(&self, request: &Request) -> Response;

    /// Answers a request of a tenant: an organization, or an empty string for the user of this machine. A pool provides
    /// separate processes to each tenant and a fair share of them. The default ignores the tenant.
    fn call_for(&self, _tenant: &str, request: &Request) -> Response {
        self.call(request)
    }

    /// Like [`call_for`](Self::call_for), with a bound of the wait for a worker. Returns the duration of that wait as
    /// well.
    ///
    /// # Errors
    /// Fails if no worker becomes free in time.
    fn call_within(&self, tenant: &str, request: &Request, _wait_max: Duration) -> Result<(Response, Duration), Fault> {
        Ok((self.call_for(tenant, request), Duration::ZERO))
    }
}

/// An evaluator for the requests of one tenant.
#[derive(Clone, Copy)]
pub struct ForTenant<'e> {
    /// The evaluator that answers the requests.
    pub evaluator: &'e dyn Evaluator,
    /// The organization whose definitions and values are evaluated.
    pub tenant: &'e str,
}

impl Evaluator for ForTenant<'_> {
    fn call(&self, request: &Request) -> Response {
        self.evaluator.call_for(self.tenant, request)
    }

    fn call_for(&self, tenant: &str, request: &Request) -> Response {
        self.evaluator.call_for(tenant, request)
    }

    fn call_within(&self, tenant: &str, request: &Request, wait_max: Duration) -> Result<(Response, Duration), Fault> {
        self.evaluator.call_within(tenant, request, wait_max)
    }
}

/// The organization of an execution, as [`Evaluator::call_for`] takes it.
pub fn tenant_of(state: &State) -> &str {
    let start = state.start.as_ref();
    start.and_then(|start| start.trigger.get(ORGANIZATION_IN_TRIGGER)?.as_text()).unwrap_or_default()
}

/// Evaluates in this process: for tests, and for trusted functions that are known to end.
#[derive(Debug, Clone, Copy, Default)]
pub struct InProcess;

impl Evaluator for InProcess {
    fn call(&self, request: &Request) -> Response {
        mainspring_sandbox::evaluate(request)
    }
}

impl Evaluator for Workers {
    fn call(&self, request: &Request) -> Response {
        self.call_for("", request)
    }

    fn call_for(&self, tenant: &str, request: &Request) -> Response {
        Workers::call(self, tenant, request)
    }

    fn call_within(&self, tenant: &str, request: &Request, wait_max: Duration) -> Result<(Response, Duration), Fault> {
        Workers::call_within(self, tenant, request, wait_max)
    }
}

/// The hidden argument that makes an executable of Mainspring a sandbox worker.
pub const WORKER_ARGUMENT: &str = "evaluate-for-parent";

/// Follows [`WORKER_ARGUMENT`] to run code even if the system does not support confinement.
pub const UNCONFINED_ARGUMENT: &str = "unconfined";

/// Workers that run this executable with [`WORKER_ARGUMENT`].
pub fn workers(unconfined: bool) -> Workers {
    let arguments = [WORKER_ARGUMENT].into_iter().chain(unconfined.then_some(UNCONFINED_ARGUMENT));
    Workers::new(WorkerCommand { program: "/proc/self/exe".into(), arguments: arguments.map(Into::into).collect() })
}

/// A paused turn, with the state that it has partly changed.
#[derive(Debug)]
pub struct Suspended {
    /// The state, with the changes of the turn so far.
    pub state: State,
    /// The rest of the turn.
    pub rest: Rest,
    /// Set if the result is not needed any more: remaining evaluations are skipped.
    pub abandoned: Arc<AtomicBool>,
}

/// The rest of a turn.
#[derive(Debug)]
pub enum Rest {
    /// It waits for evaluations.
    Paused(Box<Paused>),
    /// Nothing of it is decided yet.
    Undecided(Box<UndecidedTurn>),
}

/// A turn that was decided up to its end or to its next evaluations.
#[derive(Debug)]
pub enum Begun {
    /// Decided to its end.
    Finished(Box<Finished>),
    /// It waits for evaluations.
    Paused(Box<Suspended>),
}

/// The state after a turn, with the decided turn or a message about a fault of the engine.
pub type Finished = (State, Result<DecidedTurn, String>);

/// The message of an abandoned turn. The shard ignores it.
const ABANDONED: &str = "the caller of this turn has stopped waiting";

impl Suspended {
    /// Decides the turn up to its next evaluations. An abandoned turn is not decided.
    pub fn begin(self) -> Begun {
        let Self { mut state, rest, abandoned } = self;
        if abandoned.load(Ordering::Relaxed) {
            return Begun::Finished(Box::new((state, Err(ABANDONED.into()))));
        }
        let whole = match rest {
            Rest::Paused(_) => return Begun::Paused(Box::new(Self { state, rest, abandoned })),
            Rest::Undecided(turn) => turn,
        };
        match whole.decide(&mut state) {
            Ok(Ok(decision)) => Begun::Finished(Box::new((state, Ok(decision)))),
            Ok(Err(paused)) => Begun::Paused(Box::new(Self { state, rest: Rest::Paused(paused), abandoned })),
            Err(why) => Begun::Finished(Box::new((state, Err(why)))),
        }
    }

    /// Decides and evaluates until the turn is complete. An error is a message about a fault of the engine. `is_over`
    /// is checked between evaluations: if it returns true, the turn ends with the last ones.
    pub fn finish(self, evaluator: &dyn Evaluator, is_over: &mut dyn FnMut() -> bool) -> Finished {
        let Self { mut state, rest, abandoned } = match self.begin() {
            Begun::Finished(finished) => return *finished,
            Begun::Paused(suspended) => *suspended,
        };
        let Rest::Paused(paused) = rest else { return (state, Err("a turn was not started".into())) };
        let mut decided = Decided::Paused(paused);
        loop {
            match decided {
                Decided::Turn(turn) => return (state, Ok(turn.into())),
                Decided::Paused(mut paused) => {
                    let results = evaluate_all(&paused.evaluations().collect::<Vec<_>>(), evaluator, &abandoned);
                    if abandoned.load(Ordering::Relaxed) {
                        return (state, Err(ABANDONED.into()));
                    }
                    if is_over() {
                        paused.yield_after();
                    }
                    decided = match paused.resume(&mut state, results) {
                        Ok(decided) => decided,
                        Err(illegal) => return (state, Err(illegal.message)),
                    };
                }
            }
        }
    }
}

/// Runs some evaluations in parallel, and returns their results in order.
fn evaluate_all(evaluations: &[&Evaluation], evaluator: &dyn Evaluator, abandoned: &AtomicBool) -> Vec<Evaluated> {
    let evaluate = |evaluation: &&Evaluation| match abandoned.load(Ordering::Relaxed) {
        true => Evaluated::of(Ok(Value::Null)),
        false => evaluate(evaluation, evaluator),
    };
    let at_a_time = std::thread::available_parallelism().map_or(1, NonZero::get);
    let share = evaluations.len().div_ceil(at_a_time).max(1);
    if evaluations.len() <= 1 || at_a_time == 1 {
        return evaluations.iter().map(evaluate).collect();
    }
    std::thread::scope(|scope| {
        let work = |share: &'_ [&Evaluation]| share.iter().map(evaluate).collect::<Vec<_>>();
        let threads: Vec<_> = evaluations.chunks(share).map(|share| scope.spawn(move || work(share))).collect();
        let results = threads.into_iter().zip(evaluations.chunks(share));
        let results =
            results.flat_map(|(thread, share)| thread.join().unwrap_or_else(|_| vec![panicked(); share.len()]));
        results.collect()
    })
}

fn panicked() -> Evaluated {
    let message = "the evaluation failed; this is a fault of ours";
    Evaluated::of(Err(Failure::new(Class::Internal, "evaluation_panicked", message)))
}

/// Runs one evaluation. A panic counts as its failure.
pub fn evaluate(evaluation: &Evaluation, evaluator: &dyn Evaluator) -> Evaluated {
    catch_unwind(AssertUnwindSafe(|| answer_to(evaluation, evaluator))).unwrap_or_else(|_| panicked())
}

fn answer_to(evaluation: &Evaluation, evaluator: &dyn Evaluator) -> Evaluated {
    let answer = match evaluation {
        Evaluation::Function(function) => evaluator.call(&function_request(function)),
        Evaluation::Check(check) => evaluator.call(&check_request(check)),
    };
    let outcome = match answer.result {
        Ok(text) => value_of(&text),
        Err(fault) => Err(failure(&fault)),
    };
    Evaluated { outcome, log: log(&answer.console) }
}

fn function_request(function: &Function) -> Request {
    let call = Call::Function(mainspring_sandbox::Function {
        source: function.source.clone(),
        input: json::compact(&function.input),
        now_ms: i64::try_from(function.now).unwrap_or(i64::MAX),
        seed: function.seed.0,
    });
    // The kernel refuses a result that is too large, with a better message. JSON is longer than the kernel's encoding.
    let limits = Limits {
        wall_ms_max: function.timeout_ms,
        ticks_max: function.timeout_ms.saturating_mul(TICKS_PER_MS),
        result_bytes_max: 4 * OUTPUT_BYTES_MAX,
        ..Limits::default()
    };
    Request { call, limits }
}

fn check_request(check: &Check) -> Request {
    let (schema, value) = (json::compact(&check.schema), json::compact(&check.value));
    let call = Call::Validate(Validate { schema, value, fill_defaults: check.fills_defaults });
    Request { call, limits: Limits::default() }
}

fn value_of(text: &str) -> Result<Value, Failure> {
    json::data(text.as_bytes()).map_err(|error| {
        Failure::new(Class::Invalid, "invalid_result", format!("what it returns is no value of ours: {error}"))
    })
}

fn log(console: &Console) -> Value {
    let line = |line: &mainspring_sandbox::Line| {
        Value::map([("level", line.level.name().into()), ("text", line.text.as_str().into())])
    };
    let mut lines: Vec<Value> = console.lines.iter().map(line).collect();
    if console.truncated {
        lines.push(Value::map([("level", "warn".into()), ("text", "(more was written and is not kept)".into())]));
    }
    if lines.is_empty() { Value::Null } else { lines.into() }
}

/// Converts a fault of the sandbox to a failure of a step, whose class depends on the cause.
fn failure(fault: &Fault) -> Failure {
    let class = match fault.kind {
        FaultKind::Threw => Class::Failed,
        FaultKind::Crashed => Class::Internal,
        FaultKind::Unavailable => Class::Unavailable,
        FaultKind::TicksExceeded
        | FaultKind::TimeExceeded
        | FaultKind::MemoryExceeded
        | FaultKind::StackExceeded
        | FaultKind::NeverSettles
        | FaultKind::ResultTooLarge
        | FaultKind::SourceTooLarge => Class::Policy,
        _ => Class::Invalid,
    };
    let mut details = Map::new();
    if let (Some(line), Some(column)) = (fault.line, fault.column) {
        details.insert("line".into(), line.into());
        details.insert("column".into(), column.into());
    }
    if !fault.stack.is_empty() {
        details.insert("stack".into(), fault.stack.as_str().into());
    }
    let errors: Vec<Value> = fault.mismatches.iter().map(mismatch).collect();
    if !errors.is_empty() {
        details.insert("errors".into(), errors.into());
    }
    let details = if details.is_empty() { Value::Null } else { details.into() };
    let failure = Failure::new(class, format!("code_{}", fault.kind.name()), located(fault));
    failure.with_details(details)
}

fn mismatch(mismatch: &mainspring_sandbox::Mismatch) -> Value {
    Value::map([
        ("path", mismatch.path.as_str().into()),
        ("keyword", mismatch.keyword.as_str().into()),
        ("message", mismatch.message.as_str().into()),
    ])
}

fn located(fault: &Fault) -> String {
    match (fault.line, fault.column) {
        (Some(line), Some(column)) => format!("line {line}, column {column} of the code: {}", fault.message),
        _ => fault.message.clone(),
    }
}

/// Checks the functions and schemas of a definition in the sandbox.
pub struct SandboxInspector<'e>(pub &'e dyn Evaluator);

impl Inspector for SandboxInspector<'_> {
    fn source(&self, source: &str) -> Result<FunctionTypes, Complaint> {
        let answer = self.ask(Call::CheckFunction { source: source.into() })?;
        let result = answer.and_then(|types| json::value(types.as_bytes()).ok()).filter(|types| *types != Value::Null);
        Ok(FunctionTypes { result })
    }

    fn schema(&self, schema: &Value) -> Result<(), Complaint> {
        self.ask(Call::CheckSchema { schema: json::compact(schema) }).map(drop)
    }
}

impl SandboxInspector<'_> {
    /// Returns the answer; `None` if no worker could give one.
    fn ask(&self, call: Call) -> Result<Option<String>, Complaint> {
        let answer = self.0.call(&Request { call, limits: Limits::default() });
        match answer.result {
            Ok(answer) => Ok(Some(answer)),
            // A fault in the definition is then found when it runs.
            Err(fault) if matches!(fault.kind, FaultKind::Crashed | FaultKind::Unavailable) => Ok(None),
            Err(fault) => Err(Complaint { message: located(&fault), help: String::new() }),
        }
    }
}
