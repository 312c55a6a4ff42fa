//! Inputs for executions of a store: decisions, signals, messages and cancels, with the checks before and after each.

use mainspring_engine::{
    Engine, EngineError, EngineScope,
    closed_gate::{ClosedGate, open_now},
    execution_tree::{ExecutionTree, OpenGate},
};
use mainspring_kernel::{
    frame::Frame,
    input::Input,
    key::ExecutionKey,
    record::Record,
    state::{ExecutionStatus, MessageRejection, SignalRejection, State},
    value::Value,
};
use mainspring_store::{AuditEntry, ExecutionRow};

use super::{
    audit_entry,
    contract::{DecideRequest, MessageRequest, Sent, SignalRequest},
    delegate::delegate,
    engine_follow::{From, Gates, follow, no_approver},
    idle::leave,
    read_store::{ReadStore, engine, find},
};
use crate::{
    context::{Context, block_on},
    error::CliError,
    paths, runner,
};

/// An input that passed its checks.
pub(super) struct Delivery {
    /// The execution that the command names.
    row: ExecutionRow,
    /// The receiver: the named execution, or a child of it.
    receiver: ExecutionKey,
    input: Input,
    entry: Option<AuditEntry>,
    kind: Kind,
}

/// The kind of an input, with the data for the checks afterwards.
enum Kind {
    Cancel {
        skips_cleanup: bool,
    },
    /// A signal or a message, which the execution keeps.
    Kept,
    Decision(Box<OpenGate>),
}

impl Delivery {
    /// A cancel of an execution that has not ended.
    pub(super) fn cancel(store: &ReadStore, name: &str, reason: &str, skips_cleanup: bool) -> Result<Self, CliError> {
        let row = unfinished(store, name)?;
        let by = paths::user();
        let entry = audit_entry::cancel(&row, reason, &by);
        // A second cancel also skips the cleanup of the first one.
        let is_second = state_of(store, row.key)?.end.is_cancel_requested;
        let input = match is_second {
            true => Input::SkipCleanup { by },
            false => Input::Cancel { reason: reason.into(), by },
        };
        Ok(Self { receiver: row.key, row, input, entry, kind: Kind::Cancel { skips_cleanup } })
    }

    /// A signal to an execution that has not ended.
    pub(super) fn signal(store: &ReadStore, name: &str, signal: &SignalRequest) -> Result<Self, CliError> {
        let row = unfinished(store, name)?;
        let SignalRequest { id, name, payload } = signal;
        if let Some(why) = state_of(store, row.key)?.plan.refused_signal(name) {
            return Err(CliError::contract("signal_not_kept", format!("the signal is not kept: `{}`: {why}", row.id)));
        }
        let input = Input::Signal { id: id.clone(), name: name.clone(), payload: payload.clone() };
        let entry = audit_entry::signal(&row, name, &paths::user());
        Ok(Self { receiver: row.key, row, input, entry, kind: Kind::Kept })
    }

    /// A message to a conversation of an execution that has not ended.
    pub(super) fn message(store: &ReadStore, name: &str, message: &MessageRequest) -> Result<Self, CliError> {
        let row = unfinished(store, name)?;
        let MessageRequest { id, conversation, content, interrupt } = message;
        let by = paths::user();
        let entry = audit_entry::message(&row, conversation.as_deref(), *interrupt, &by);
        let content = Value::from(content.as_str());
        let (id, conversation) = (id.clone(), conversation.clone());
        let input = Input::Message { id, conversation, content, interrupt: *interrupt, by };
        Ok(Self { receiver: row.key, row, input, entry, kind: Kind::Kept })
    }

    /// A decision of an open approval, of the execution or of a child.
    pub(super) fn decision(
        store: &ReadStore,
        request: &DecideRequest<'_>,
        announce: &dyn Fn(&str, &Value),
    ) -> Result<Self, CliError> {
        let row = find(&*store.store, request.name)?;
        let state = state_of(store, row.key)?;
        let tree = ExecutionTree::of(&store.loader, &store.key, &state)?;
        let open = open_gate(store, &tree, &state, request)?.clone();
        let by = paths::user();
        if !open.gate.accepts(open.gate.number, &by, mainspring_engine::clock::now_ms()) {
            return Err(no_approver(&open, &by));
        }
        announce(&open.gate.prompt, &open.gate.items);
        let reason = request.words.clone().to_reason(&open.gate, request.decision);
        let reason = reason.map_err(|why| CliError::bad_input("unfit_answer", why))?;
        let entry = audit_entry::decision(&row, &open, request.decision, &reason, &by);
        let (instance, gate, decision) = (open.instance.clone(), open.gate.number, request.decision);
        let input = Input::Decide { instance, gate, decision, by, reason };
        Ok(Self { receiver: open.execution, row, input, entry, kind: Kind::Decision(Box::new(open)) })
    }

    /// Sends the input through the inbox to the process or node that runs the execution.
    pub(super) fn delegate(self, store: &ReadStore, context: &Context) -> Result<Sent, CliError> {
        let Self { row, receiver, input, entry, kind } = self;
        if let Kind::Kept = kind {
            was_kept(&row, &state_of(store, row.key)?, &input)?;
        }
        if matches!(kind, Kind::Cancel { skips_cleanup: true }) {
            // Comes first: after the cancel, cleanup begins at once.
            delegate(store, receiver, &Input::SkipCleanup { by: paths::user() }, None, context)?;
        }
        let delegated = delegate(store, receiver, &input, entry, context)?;
        match &kind {
            Kind::Decision(open) if delegated.accepted => counted(store, open, &input)?,
            Kind::Kept if delegated.accepted && !was_kept(&row, &state_of(store, row.key)?, &input)? => {
                return Err(not_kept(&row, &input, SignalRejection::Full.words()));
            }
            _ => {}
        }
        Ok(Sent::Delegated(delegated))
    }

    /// Processes the input on an engine of this process, and runs the execution until it has settled.
    pub(super) fn process(self, context: &Context) -> Result<Sent, CliError> {
        block_on(async {
            context.signals.install()?;
            let engine = engine(&context.global, EngineScope::named()).await?;
            let (key, is_decision) = (self.row.key, matches!(self.kind, Kind::Decision(_)));
            // The engine needs the whole tree of executions before it decides an approval of a child.
            if is_decision {
                engine.activate(key);
            }
            let before = runner::snapshot(&engine, key, |_, _| ())?;
            let exit = match self.take(&engine, context).await? {
                Ok(()) => {
                    if !is_decision {
                        engine.activate(key);
                    }
                    follow(&engine, key, Gates::Ask, From::Frame(before.next_sequence), context).await
                }
                Err(error) => Err(error),
            };
            Ok(Sent::Followed(leave(&engine, exit, context).await?))
        })
    }

    /// Processes the input. The inner error is that of an input without effect.
    async fn take(self, engine: &Engine, context: &Context) -> Result<Result<(), CliError>, CliError> {
        let Self { row, receiver, input, entry, kind } = self;
        if matches!(kind, Kind::Cancel { skips_cleanup: true }) {
            engine.take(receiver, Input::SkipCleanup { by: paths::user() }, None).await?;
        }
        let is_taken = engine.take(receiver, input.clone(), entry).await?;
        if is_taken {
            return Ok(Ok(()));
        }
        Ok(match kind {
            Kind::Cancel { .. } => Ok(()),
            Kind::Decision(_) => Err(CliError::contract("not_open", "the approval was already decided")),
            Kind::Kept => {
                let kept = was_kept(&row, &engine.state(row.key)?, &input);
                if kept.is_ok() {
                    context
                        .terminal
                        .note(&format!("nothing has changed: a {} of this identity came before", word(&input)));
                }
                kept.map(|_| ())
            }
        })
    }
}

fn unfinished(store: &ReadStore, name: &str) -> Result<ExecutionRow, CliError> {
    let row = find(&*store.store, name)?;
    if mainspring_store::is_final(&row.status) {
        return Err(CliError::contract("ended", format!("`{}` has ended: it is {}", row.id, row.status)));
    }
    Ok(row)
}

fn state_of(store: &ReadStore, key: ExecutionKey) -> Result<State, CliError> {
    let read = store.loader.journal(key).map_err(EngineError::from)?;
    Ok(read.ok_or(EngineError::NoSuchExecution)?.journal.state)
}

/// Returns true if the execution has received this signal or message already. One that it would not keep is an error.
fn was_kept(row: &ExecutionRow, state: &State, input: &Input) -> Result<bool, CliError> {
    match input {
        Input::Signal { id, name, payload } => match state.signal_rejection(id, name, payload) {
            None => Ok(false),
            Some(SignalRejection::Repeated) => Ok(true),
            Some(rejection) => Err(not_kept(row, input, rejection.words())),
        },
        Input::Message { id, conversation, content, .. } => {
            match state.message_rejection(id, conversation.as_deref(), content) {
                None => Ok(false),
                Some(MessageRejection::Repeated) => Ok(true),
                Some(rejection) => Err(not_kept(row, input, rejection.words())),
            }
        }
        _ => Ok(true),
    }
}

fn word(input: &Input) -> &'static str {
    if matches!(input, Input::Message { .. }) { "message" } else { "signal" }
}

fn not_kept(row: &ExecutionRow, input: &Input, why: &str) -> CliError {
    let word = word(input);
    let code = if word == "message" { "message_not_kept" } else { "signal_not_kept" };
    CliError::contract(code, format!("the {word} is not kept: `{}` {why}", row.id))
}

/// Checks in the journal that a received decision counted. It did not if the gate was closed before.
fn counted(store: &ReadStore, open: &OpenGate, input: &Input) -> Result<(), CliError> {
    let Input::Decide { instance: at, gate: number, decision: wanted, by: us, .. } = input else { return Ok(()) };
    let mut decisions = Vec::new();
    let collect = |_: &State, frame: &Frame| {
        for record in &frame.records {
            match record {
                Record::GateDecided { instance, gate, decision, by, .. } if instance == at && gate == number => {
                    decisions.push((*decision, by.clone()));
                }
                _ => {}
            }
        }
    };
    let read =
        store.loader.frames(open.execution, collect).map_err(EngineError::from)?.ok_or(EngineError::NoSuchExecution)?;
    if decisions.iter().any(|(decision, by)| decision == wanted && by.as_deref() == Some(us)) {
        return Ok(());
    }
    let others: Vec<String> = decisions
        .iter()
        .map(|(decision, by)| format!("{} by {}", decision.name(), by.as_deref().unwrap_or("the end of its time")))
        .collect();
    let state = read.journal.state;
    let others = if others.is_empty() { format!("it is {}", state.status().name()) } else { others.join(", ") };
    let message = format!("the decision has no effect: the approval `{}` was already decided ({others})", open.path);
    Err(CliError::contract("not_open", message))
}

/// Finds the selected gate, in the execution or in a child that it waits for.
fn open_gate<'a>(
    store: &ReadStore,
    tree: &'a ExecutionTree,
    state: &State,
    request: &DecideRequest<'_>,
) -> Result<&'a OpenGate, CliError> {
    let names = |gates: &mut dyn Iterator<Item = &OpenGate>| {
        gates.map(|open| open.path.as_str()).collect::<Vec<_>>().join(", ")
    };
    let several = |gates: &[&OpenGate]| {
        let names = names(&mut gates.iter().copied());
        CliError::bad_input("several_gates", format!("several gates are open; name one with --step: {names}"))
    };
    let all: Vec<&OpenGate> = tree.gates.iter().collect();
    let Some(step) = request.step else {
        return match all.as_slice() {
            [] => Err(none_open(state.status(), request)),
            [only] => Ok(only),
            _ => Err(several(&all)),
        };
    };
    match tree.named(step).as_slice() {
        [only] => Ok(only),
        [] => {
            let why = ClosedGate::find(&store.loader, state, step, None)?;
            let code = if matches!(why, ClosedGate::Decided(..)) { "not_open" } else { "no_open_gate" };
            let wait = if matches!(why, ClosedGate::NotYet(_)) { wait_for_it(request) } else { String::new() };
            Err(CliError::contract(code, format!("{why}; {}{wait}", open_now(&tree.gates, state))))
        }
        found => Err(several(found)),
    }
}

/// The error of an execution without an open gate: it has ended, or has not reached one.
pub(super) fn none_open(status: ExecutionStatus, request: &DecideRequest<'_>) -> CliError {
    let (name, status) = (request.name, status.name());
    let message = match mainspring_store::is_final(status) {
        true => format!("`{name}` has no open approval: its status is {status}"),
        false => {
            format!("`{name}` has not reached an approval that waits: its status is {status}{}", wait_for_it(request))
        }
    };
    CliError::contract("no_open_gate", message)
}

/// The commands for an approval that is not open yet, for the end of a message.
pub(super) fn wait_for_it(request: &DecideRequest<'_>) -> String {
    let (name, verb) = (request.name, request.decision.name());
    let step = request.step.map(|step| format!(" --step {step}")).unwrap_or_default();
    format!("; `mainspring tail {name}` follows it, and once it asks, type `mainspring {verb} {name}{step}` again")
}
