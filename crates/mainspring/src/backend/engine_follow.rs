//! Follows an execution until it has settled, and shows its progress or its events.

use mainspring_engine::{
    Engine, EngineError, envelope,
    execution_tree::{ExecutionTree, OpenGate},
    progress::Events,
};
use mainspring_kernel::{
    decide::is_permission,
    input::Input,
    json::compact,
    key::ExecutionKey,
    plan::{Decision, Plan},
    record::{Purpose, Record},
    state::{ExecutionStatus, GateState, State},
    value::Value,
};

use super::audit_entry;
use crate::{
    context::Context,
    error::{self, CliError, Exit},
    output::{
        progress::Progress,
        prompt::{PromptAnswer, ask},
        summary::Summary,
        terminal::print_out,
    },
    paths,
    runner::{self, Followed, Snapshot, print_event},
};

/// The handling of open approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gates {
    /// Approves each, as the owner.
    Approve,
    /// Prompts for each, if there is a terminal.
    Ask,
}

/// Selects the past that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// Everything from this frame on.
    Frame(u64),
    /// New frames only; in JSON mode all frames.
    Now,
}

/// Follows an execution until it has ended, or only approvals are left that this process does not decide. `signals`
/// must exist before the engine opens, so that an early interrupt prints the same message.
pub(crate) async fn follow(
    engine: &Engine,
    key: ExecutionKey,
    gates: Gates,
    from: From,
    context: &Context,
) -> Result<Exit, CliError> {
    let mut shown = match from {
        From::Frame(sequence) => sequence,
        From::Now if context.global.json => 0,
        From::Now => runner::snapshot(engine, key, |_, _| ())?.next_sequence,
    };
    loop {
        let (followed, snapshot) = until_settled(engine, key, shown, context).await?;
        shown = snapshot.next_sequence;
        if followed == Followed::Interrupted {
            return interrupted(engine, &snapshot, context).await;
        }
        let waits = snapshot.state.status() == ExecutionStatus::WaitingApproval;
        if !waits || !decide_all(engine, &snapshot.state, gates, context).await? {
            return conclude(engine, &snapshot, context);
        }
    }
}

async fn until_settled(
    engine: &Engine,
    key: ExecutionKey,
    shown: u64,
    context: &Context,
) -> Result<(Followed, Snapshot), CliError> {
    let mut watch = engine.watch(key);
    let mut frames = Vec::new();
    let mut from = runner::snapshot(engine, key, |frame, state| frames.push((frame.clone(), state.plan.clone())))?;
    let id = name(&from.state);
    let (mut events, mut progress) = (Events::new(&id), Progress::new(context.terminal));
    for (frame, plan) in &frames {
        let is_new = frame.sequence >= shown;
        if is_new {
            show(&mut events, &mut progress, (plan, &frame.records, frame.now), context);
            continue;
        }
        for record in &frame.records {
            events.of_record(plan, record, frame.now);
            progress.remember(plan, record, frame.now);
        }
    }
    let (mut tick, mut partial) = (tokio::time::interval(REDRAW), engine.partial_texts().watch(key));
    let is_live = context.terminal.is_live && !context.global.json;
    let shown = std::cell::RefCell::new((events, progress));
    let following = runner::follow(engine, &mut watch, &mut from, &context.signals, |plan, records, now| {
        let (events, progress) = &mut *shown.borrow_mut();
        show(events, progress, (plan, records, now), context);
    });
    tokio::pin!(following);
    let followed = loop {
        tokio::select! {
            followed = &mut following => break followed,
            _ = tick.tick(), if is_live => {
                let progress = &mut shown.borrow_mut().1;
                partial.take(PARTIAL_BYTES_MAX).iter().for_each(|piece| progress.partial(&piece.step, &piece.text));
                progress.tick();
            }
        }
    };
    shown.borrow_mut().1.finish();
    Ok((followed?, runner::snapshot(engine, key, |_, _| ())?))
}

/// The interval in which durations of running steps are redrawn.
const REDRAW: std::time::Duration = std::time::Duration::from_millis(100);

/// Bytes of model output that are shown at a time.
const PARTIAL_BYTES_MAX: usize = 8 * 1024;

/// Shows the records of a frame.
fn show(
    events: &mut Events<'_>,
    progress: &mut Progress,
    (plan, records, now): (&Plan, &[Record], u64),
    context: &Context,
) {
    for record in records {
        if context.global.json {
            events.of_record(plan, record, now).iter().for_each(print_event);
        } else {
            progress.record(plan, record, now);
        }
    }
    if context.global.json {
        events.cancel_requested(records, now).iter().for_each(print_event);
    }
}

/// Decides every open gate, those of children too. Returns false if one stays open, or there is none.
async fn decide_all(engine: &Engine, state: &State, gates: Gates, context: &Context) -> Result<bool, CliError> {
    let by = paths::user();
    let row = engine.store().execution(state.key).map_err(EngineError::from)?;
    let tree = ExecutionTree::of(engine.loader(), engine.key(), state)?;
    for open in &tree.gates {
        if open.gate.purpose == Purpose::Form && !is_permission(&open.gate) {
            context.terminal.note(FORM_NOTE);
            return Ok(false);
        }
        let (decision, reason) = match gates {
            Gates::Approve => (Decision::Approve, Value::from("as the owner, with --yes")),
            Gates::Ask if !context.terminal.can_ask || context.global.json => return Ok(false),
            Gates::Ask => match asked(engine, open, context).await? {
                PromptAnswer::Decided(decision) => (decision, Value::from("at the terminal")),
                PromptAnswer::Later => return Ok(false),
                PromptAnswer::Elsewhere => return Ok(true),
            },
        };
        let entry = row.as_ref().and_then(|row| audit_entry::decision(row, open, decision, &reason, &by));
        let (instance, gate) = (open.instance.clone(), open.gate.number);
        let input = Input::Decide { instance, gate, decision, by: by.clone(), reason };
        let taken = engine.take(open.execution, input, entry).await?;
        if !taken && !still_open(engine, open)? {
            context.terminal.note("the approval was already decided, or its timeout has expired");
        } else if !taken {
            return Err(no_approver(open, &by));
        }
    }
    Ok(!tree.gates.is_empty())
}

/// The note about a gate that neither `--yes` nor a prompt can answer.
pub(super) const FORM_NOTE: &str = "a tool server asks for a form to be filled in: `mainspring approvals` shows it, and \
    `mainspring approve ID --content JSON` answers it";

/// The interval in which an open prompt polls the gate.
const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(200);

async fn asked(engine: &Engine, open: &OpenGate, context: &Context) -> Result<PromptAnswer, CliError> {
    ask(&open.gate.prompt, &open.gate.items, POLL_INTERVAL, &context.signals, async || still_open(engine, open)).await
}

fn still_open(engine: &Engine, open: &OpenGate) -> Result<bool, CliError> {
    let now = engine.state(open.execution)?;
    Ok(now.open_gates().any(|(instance, gate)| *instance == open.instance && gate.number == open.gate.number))
}

/// The error for a decision of a user who is not an approver, or has already approved.
pub(crate) fn no_approver(open: &OpenGate, by: &str) -> CliError {
    let message = format!("`{by}` cannot decide the approval `{}`: {}", open.path, who(&open.gate));
    CliError::contract("not_an_approver", message)
}

/// The approvers of a gate, as text.
fn who(gate: &GateState) -> String {
    let has = names(&gate.approved_by);
    if gate.approvers.is_empty() {
        return format!("{} must approve, {has} has", gate.count);
    }
    format!("its approvers are {}, {} of them must approve, {has} has", gate.approvers.join(", "), gate.count)
}

fn names(names: &[String]) -> String {
    if names.is_empty() { "nobody".into() } else { names.join(", ") }
}

fn conclude(engine: &Engine, snapshot: &Snapshot, context: &Context) -> Result<Exit, CliError> {
    let Snapshot { state, history, .. } = snapshot;
    let tree = ExecutionTree::of(engine.loader(), engine.key(), state)?;
    if context.global.json {
        let id = name(state);
        let events = Events::new(&id);
        events.gates(&tree.gates, state.now).iter().for_each(print_event);
        print_event(&events.finished(state, state.now));
        print_out!("{}", compact(&envelope::of_execution(state, history, &tree.gates)));
    } else {
        Summary::of(state, &tree).show();
    }
    Ok(error::of_execution(state))
}

async fn interrupted(engine: &Engine, snapshot: &Snapshot, context: &Context) -> Result<Exit, CliError> {
    let id = name(&snapshot.state);
    context.terminal.note("stopping running steps …");
    engine.drain().await;
    let message = format!("interrupted; nothing is lost: `mainspring resume {id}` continues");
    if context.global.json {
        let failure = CliError::internal("interrupted", message.clone()).failure;
        print_out!("{}", compact(&envelope::of_refusal(Some(&id), &failure)));
    }
    context.terminal.note(&message);
    Ok(Exit::Failed)
}

fn name(state: &State) -> String {
    state.start.as_ref().map(|start| start.execution_id.clone()).unwrap_or_default()
}
