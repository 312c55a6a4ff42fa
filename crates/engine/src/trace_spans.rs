//! Spans of attempts and executions for distributed tracing, made from durable facts with the times of the journal.
//!
//! A span is made by the node that writes its end, once that is durable. Its ids are hashes
//! ([`mainspring_kernel::span`]), so no node needs to remember its start, and an end that is reported twice is one
//! span.

use std::sync::Arc;

use mainspring_kernel::{
    decide::child_key_of,
    effect::{ChildEnd, Outcome},
    failure::Class,
    hash::Hash,
    input::Input,
    instance::Instance,
    key::ExecutionKey,
    plan::{Plan, Work},
    record::{Ending, Fault, Record},
    state::{ExecutionStatus, State},
    trace_context::{SpanId, TraceId},
};

/// Receives spans without blocking.
pub type Spans = Arc<dyn Fn(Arc<Span>) + Send + Sync>;

/// An attempt or an execution that has ended. It contains no value of a payload.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// The trace of the execution tree.
    pub trace: TraceId,
    /// A hash of the execution or the attempt, equal on every node.
    pub id: SpanId,
    /// The span of the parent. `None` for a root execution.
    pub parent: Option<SpanId>,
    /// Start in Unix milliseconds.
    pub began_at: u64,
    /// End in Unix milliseconds.
    pub ended_at: u64,
    /// The execution of the span.
    pub execution: ExecutionKey,
    /// The public id of the execution.
    pub execution_id: String,
    /// The plan of the execution.
    pub plan: Arc<Plan>,
    /// The kind of the span.
    pub what: Spanned,
    /// Code and class of the failure, if it failed.
    pub fault: Option<(String, Class)>,
}

/// The kinds of spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spanned {
    /// An execution, with its final status.
    Execution(ExecutionStatus),
    /// One try of a step, which ends with its receipt.
    Attempt {
        /// The step instance of the attempt.
        instance: Instance,
        /// The number of the attempt, from 1.
        number: u32,
        /// `done`, `failed`, `stopped`, `interrupted` or `cancelled`.
        outcome: &'static str,
    },
}

/// The label of an attempt's outcome in metrics and traces.
pub(crate) fn outcome_label(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done(_) => "done",
        Outcome::Failed(_) => "failed",
        Outcome::Stopped(_) => "stopped",
        Outcome::Interrupted => "interrupted",
        Outcome::Reported(_) => "reported",
        Outcome::Cancelled(_) => "cancelled",
        Outcome::Child { end: ChildEnd::Done(_), .. } | Outcome::ChildWithUsage { end: ChildEnd::Done(_), .. } => {
            "done"
        }
        Outcome::Child { end: ChildEnd::Failed(_), .. } | Outcome::ChildWithUsage { end: ChildEnd::Failed(_), .. } => {
            "failed"
        }
        Outcome::Child { end: ChildEnd::Cancelled(_), .. }
        | Outcome::ChildWithUsage { end: ChildEnd::Cancelled(_), .. } => "cancelled",
    }
}

/// The start of the attempt whose receipt is processed. It is read before the turn, which may start the next attempt or
/// drop the step with its round.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SpanStart {
    handed_out_at: u64,
    intent: Hash,
    /// True if the attempt runs a child execution.
    has_child: bool,
}

impl SpanStart {
    pub(crate) fn of(state: &State, input: &Input) -> Self {
        match input {
            Input::Receipt { instance, .. } => Self::of_instance(state, instance),
            _ => Self::default(),
        }
    }

    fn of_instance(state: &State, instance: &Instance) -> Self {
        let step = state.steps.get(instance);
        Self {
            handed_out_at: step.map_or(0, |step| step.times.handed_out_at),
            intent: step.and_then(|step| step.intent).unwrap_or_default(),
            has_child: state.started_workflow(instance).is_some(),
        }
    }
}

/// The spans that end with a turn.
pub(crate) fn ended(state: &State, input: &Input, records: &[Record], start: SpanStart) -> Vec<Arc<Span>> {
    let mut spans = Vec::new();
    if let Input::Receipt { instance, attempt, outcome } = input
        && !matches!(outcome, Outcome::Reported(_))
    {
        let ended = Spanned::Attempt { instance: instance.clone(), number: *attempt, outcome: outcome_label(outcome) };
        let fault = records.iter().find_map(|record| fault_of(record, instance));
        spans.extend(span(state, ended, start, fault));
    }
    for record in records {
        match record {
            // A detached child: the attempt ends as soon as it has started.
            Record::AttemptStarted { instance, attempt, .. } => {
                if let Work::Subworkflow { waits: false, .. } = state.plan.step(instance.step).work {
                    let begun = Spanned::Attempt { instance: instance.clone(), number: *attempt, outcome: "done" };
                    let start = SpanStart { handed_out_at: state.now, ..SpanStart::of_instance(state, instance) };
                    spans.extend(span(state, begun, start, None));
                }
            }
            Record::Ended { .. } => {
                let fault = match &state.end.ending {
                    Some(Ending::Failed { fault, .. }) => Some(fault),
                    _ => None,
                };
                let handed_out_at = state.start.as_ref().map_or(state.now, |start| start.at);
                let start = SpanStart { handed_out_at, ..SpanStart::default() };
                spans.extend(span(state, Spanned::Execution(state.status()), start, fault));
            }
            _ => {}
        }
    }
    spans
}

fn span(state: &State, what: Spanned, start: SpanStart, fault: Option<&Fault>) -> Option<Arc<Span>> {
    let began_at = start.handed_out_at;
    let (id, parent) = match &what {
        Spanned::Execution(_) => {
            let is_child = state.lineage.depth > 0;
            (SpanId::of_execution(state.key), is_child.then(|| SpanId::of_attempt_with_child(state.key)))
        }
        Spanned::Attempt { instance, number, .. } => {
            (of_attempt(state, instance, *number, start), Some(SpanId::of_execution(state.key)))
        }
    };
    Some(Arc::new(Span {
        trace: TraceId::of_tree(state.root()),
        id,
        parent,
        began_at,
        ended_at: state.now.max(began_at),
        execution: state.key,
        execution_id: state.start.as_ref()?.execution_id.clone(),
        plan: state.plan.clone(),
        what,
        fault: fault.map(|fault| (fault.code.clone(), fault.class)),
    }))
}

fn of_attempt(state: &State, instance: &Instance, number: u32, start: SpanStart) -> SpanId {
    if start.has_child {
        return SpanId::of_attempt_with_child(child_key_of(start.intent, number, start.handed_out_at));
    }
    SpanId::of_attempt(state.key, &instance.name(&state.plan), number)
}

/// The recorded failure of an instance.
fn fault_of<'a>(record: &'a Record, of: &Instance) -> Option<&'a Fault> {
    match record {
        Record::AttemptFailed { instance, fault, .. } | Record::StepFailed { instance, fault, .. } => {
            (instance == of).then_some(fault)
        }
        _ => None,
    }
}
