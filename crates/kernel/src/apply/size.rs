//! Counts the memory that a state takes and the bytes that its records take in the journal.
//!
//! Like the sizes of values, they are computed from constants and lengths.

use alloc::string::String;

use crate::{
    cbor,
    leases::LeaseChange,
    record::{Ending, Fault, Record},
    state::{Message, Started, State, StepState},
    value::Value,
    value_size::{TEXT_BYTES, VALUE_BYTES, of_heap, of_identity, of_signal, of_value, of_values, of_variable},
};

/// Bytes of a step instance without its values: key, state, and share of a node of the map.
const STEP_BYTES: u64 = 640;

/// Bytes of a running block, without its steps.
const SCOPE_BYTES: u64 = 320;

/// Bytes per step of a running block: its entries in the sets of pending, unsettled and decidable steps.
const PLACE_BYTES: u64 = 40;

/// Bytes of a running loop, without its outputs.
const LOOP_BYTES: u64 = 320;

/// Bytes of a conversation, without its name and messages.
const CONVERSATION_BYTES: u64 = 320;

/// Bytes of an unread message, without its text.
const MESSAGE_BYTES: u64 = 128;

/// Bytes of a pinned tool, without its name.
const PIN_BYTES: u64 = 96;

/// Bytes of a record in the journal, without its payload.
pub(crate) const RECORD_BYTES: u64 = 32;

/// Bytes of memory of the values that an execution started with.
pub(super) fn of_start(start: &Started) -> u64 {
    of_values(&start.input, &start.variables, &start.trigger)
}

/// Bytes of memory of a running block with `step_count` steps.
pub(super) fn of_scope(step_count: usize) -> u64 {
    SCOPE_BYTES + PLACE_BYTES * step_count as u64
}

/// Bytes of memory of a loop that starts with `output_count` outputs.
pub(super) fn of_loop(output_count: usize) -> u64 {
    LOOP_BYTES + VALUE_BYTES * output_count as u64
}

/// Bytes of memory of an empty conversation.
pub(super) fn of_conversation(name: &str) -> u64 {
    CONVERSATION_BYTES + name.len() as u64
}

/// Bytes of memory of an unread message.
pub(super) fn of_message(message: &Message) -> u64 {
    MESSAGE_BYTES + of_value(&message.content)
}

/// Bytes of memory of a pinned tool.
pub(super) fn of_pin(name: &str) -> u64 {
    PIN_BYTES + name.len() as u64
}

/// Recounts a step instance if the record may have changed its values.
pub(super) fn count(state: &mut State, step: &mut StepState, record: &Record) {
    let changes_values = matches!(
        record,
        Record::StepStarted { .. }
            | Record::StepSkipped { .. }
            | Record::StepCompleted { .. }
            | Record::StepFailed { .. }
            | Record::StepCancelled { .. }
            | Record::AttemptFailed { .. }
            | Record::GateOpened { .. }
            | Record::GateDecided { .. }
            | Record::AttemptStarted { .. }
            | Record::AttemptContinued { .. }
    );
    if !changes_values {
        return;
    }
    let bytes = of_step(step);
    state.counts.memory_bytes = state.counts.memory_bytes + bytes - step.memory_bytes;
    step.memory_bytes = bytes;
}

fn of_step(step: &StepState) -> u64 {
    let failure = step.failure.as_ref().map_or(0, |failure| of_value(&failure.to_value()));
    let gate = step.gate.as_ref().map_or(0, |gate| {
        let texts = |texts: &[String]| texts.iter().map(|text| TEXT_BYTES + text.len() as u64).sum::<u64>();
        of_value(&gate.items) + gate.prompt.len() as u64 + texts(&gate.approvers) + texts(&gate.approved_by)
    });
    let call = [&step.call.handle, &step.call.answer, &step.call.answered, &step.call.carried].map(of_heap);
    STEP_BYTES + of_heap(&step.input) + of_heap(&step.output) + failure + gate + call.iter().sum::<u64>()
}

/// Approximate bytes of a record in the journal.
pub(super) fn in_journal(record: &Record) -> u64 {
    let payload = match record {
        Record::StepStarted { input: payload, .. }
        | Record::StepCompleted { output: payload, .. }
        | Record::GateOpened { question: payload, .. }
        | Record::StepFailed { fault: Fault { text: payload, .. }, .. }
        | Record::AttemptFailed { fault: Fault { text: payload, .. }, .. }
        | Record::StepLogged { lines: payload, .. }
        | Record::AnswerRejected { reason: payload, .. }
        | Record::SignalKept { payload, .. }
        | Record::MessageKept { content: payload, .. }
        | Record::LeaseChanged {
            change: LeaseChange::Granted { notice: payload, .. } | LeaseChange::Refused { notice: payload },
            ..
        }
        | Record::AttemptContinued { handle: payload, .. }
        | Record::EndingBegun { ending: Ending::Completed { output: payload } } => payload,
        // The input of the frame has the plan as well.
        Record::Migrated { plan, .. } => return RECORD_BYTES + 2 * plan.0.len() as u64,
        Record::ToolsPinned { tools } => {
            return RECORD_BYTES + tools.iter().map(|tool| of_pin(&tool.name)).sum::<u64>();
        }
        _ => return RECORD_BYTES,
    };
    RECORD_BYTES + cbor::byte_count(payload.value()) as u64
}

/// Counts the whole state from scratch. Debug builds compare the result with the incremental count.
#[cfg(debug_assertions)]
pub(crate) fn recount(state: &State) -> u64 {
    let steps = state.steps.values().map(of_step).sum::<u64>();
    let scopes = state.blocks.scopes.keys().map(|scope| of_scope(state.plan.block(scope.block).steps.len()));
    let of_outputs = |outputs: &[Value]| outputs.iter().map(of_heap).sum::<u64>();
    let loops = state.blocks.loops.values().map(|rounds| {
        let opening = rounds.opening.iter().map(of_value).sum::<u64>();
        of_loop(rounds.outputs.len()) + of_outputs(&rounds.outputs) + opening
    });
    let variables = state.outputs.iter().map(|(name, value)| of_variable(name, value));
    let kept =
        |signal: &crate::state::Signal| of_signal(&signal.id, &signal.name, &signal.payload) - of_identity(&signal.id);
    let signals = state.signals.kept.iter().map(kept).sum::<u64>();
    let identities = state.signals.seen.iter().map(|id| of_identity(id)).sum::<u64>();
    let start = state.start.as_ref().map_or(0, of_start);
    let conversations = state.signals.conversations.by_name.iter().map(|(name, conversation)| {
        let unread = conversation.unread.iter().map(of_message).sum::<u64>();
        of_conversation(name) + unread + conversation.past.iter().map(of_value).sum::<u64>()
    });
    let senders = state.signals.conversations.seen.iter().map(|id| of_identity(id)).sum::<u64>();
    let said = conversations.sum::<u64>() + senders;
    let pins = state.journal.pinned_tools.keys().map(|name| of_pin(name)).sum::<u64>();
    pins + steps
        + scopes.sum::<u64>()
        + loops.sum::<u64>()
        + variables.sum::<u64>()
        + signals
        + identities
        + start
        + said
}
