//! Following an execution to its rest, with what a person or a program wants to see on the way.

use std::{io::Write, sync::OnceLock};

use mainspring_engine::{Engine, engine::now_ms};
use mainspring_kernel::{
    instance::Instance,
    json::{compact, pretty},
    key::ExecutionKey,
    plan::Decision,
    state::{ExecutionStatus, State},
    value::Value,
};

use tokio::sync::{Mutex, mpsc::UnboundedReceiver};

use crate::{
    cli::Global,
    envelope,
    events::{self, Events},
    exit::{self, Exit, Refusal},
    place,
    runner::{self, Followed, Signals, Standing},
    terminal::{Progress, Terminal, bold, dim, duration, say, status},
    text::{lines_shown, paragraph, shown},
};

/// How gates are met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gates {
    /// Approved, as the owner.
    Approve,
    /// Shown to whoever is at the terminal, if somebody is.
    Ask,
}

/// What of an execution is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// From a frame on.
    Frame(u64),
    /// What is new, and in JSON everything.
    Now,
}

/// Follows an execution until it has ended, or nothing but gates is left that nobody here decides. `signals` were heard
/// since before the engine was opened: who interrupts in the first moment is told how it goes on as well.
pub(crate) async fn follow(
    engine: &Engine,
    key: ExecutionKey,
    gates: Gates,
    from: From,
    global: &Global,
    terminal: &Terminal,
    signals: &mut Signals,
) -> Result<Exit, Refusal> {
    let mut shown = match from {
        From::Frame(sequence) => sequence,
        From::Now if global.json => 0,
        From::Now => runner::standing(engine, key, |_, _| ())?.next_sequence,
    };
    loop {
        let (followed, standing) = to_rest(engine, key, shown, global, terminal, signals).await?;
        shown = standing.next_sequence;
        if followed == Followed::Interrupted {
            return interrupted(engine, &standing, global, terminal).await;
        }
        let waits = standing.state.status() == ExecutionStatus::WaitingApproval;
        if !waits || !decide_all(engine, key, &standing.state, gates, global, terminal, signals).await? {
            return Ok(conclude(engine, &standing, global));
        }
    }
}

async fn to_rest(
    engine: &Engine,
    key: ExecutionKey,
    shown: u64,
    global: &Global,
    terminal: &Terminal,
    signals: &mut Signals,
) -> Result<(Followed, Standing), Refusal> {
    let mut watch = engine.watch(key);
    let mut frames = Vec::new();
    let from = runner::standing(engine, key, |frame, _| frames.push(frame.clone()))?;
    let plan = from.state.plan.clone();
    let id = name(&from.state);
    let (mut events, mut progress) = (Events::new(&id, &plan), Progress::new(*terminal));
    for frame in &frames {
        let is_new = frame.sequence >= shown;
        for record in &frame.records {
            match is_new {
                true => show(&mut events, &mut progress, record, frame.now, global),
                false => {
                    events.of_record(record, frame.now);
                    progress.remember(&plan, record, frame.now);
                }
            }
        }
    }
    let mut tick = tokio::time::interval(REDRAW);
    let shown = std::cell::RefCell::new((events, progress));
    let following = runner::follow(engine, &mut watch, &from, signals, |_, record, now| {
        let (events, progress) = &mut *shown.borrow_mut();
        show(events, progress, record, now, global);
    });
    tokio::pin!(following);
    let followed = loop {
        tokio::select! {
            followed = &mut following => break followed,
            _ = tick.tick(), if terminal.is_live && !global.json => shown.borrow_mut().1.tick(),
        }
    };
    shown.borrow_mut().1.finish();
    Ok((followed?, runner::standing(engine, key, |_, _| ())?))
}

/// How often the times of running steps are redrawn.
const REDRAW: std::time::Duration = std::time::Duration::from_millis(100);

fn show(
    events: &mut Events<'_>,
    progress: &mut Progress,
    record: &mainspring_kernel::record::Record,
    now: u64,
    global: &Global,
) {
    if global.json {
        events.of_record(record, now).iter().for_each(events::print);
    } else {
        progress.record(events.plan(), record, now);
    }
}

/// Decides at every open gate; false if one stays open.
async fn decide_all(
    engine: &Engine,
    key: ExecutionKey,
    state: &State,
    gates: Gates,
    global: &Global,
    terminal: &Terminal,
    signals: &mut Signals,
) -> Result<bool, Refusal> {
    let by = place::user();
    let open: Vec<(Instance, u32)> =
        state.open_gates().map(|(instance, gate)| (instance.clone(), gate.number)).collect();
    for (instance, gate) in open {
        let (decision, reason) = match gates {
            Gates::Approve => (Decision::Approve, Value::from("as the owner, with --yes")),
            Gates::Ask if !terminal.can_ask || global.json => return Ok(false),
            Gates::Ask => match ask(engine, key, state, &instance, signals).await? {
                Answer::Decided(decision) => (decision, Value::from("at the terminal")),
                Answer::Later => return Ok(false),
                Answer::Elsewhere => return Ok(true),
            },
        };
        let taken = engine.decide(key, instance.clone(), gate, decision, &by, reason).await?;
        let is_open = engine.state(key)?.open_gates().any(|(open, now)| *open == instance && now.number == gate);
        if !taken && !is_open {
            terminal.remark("the gate was decided meanwhile, or its time is over");
        } else if !taken {
            let message = format!(
                "the gate `{}` does not take a decision of {by}: {}",
                instance.name(&state.plan),
                who(state, &instance)
            );
            return Err(Refusal::contract("not_an_approver", message));
        }
    }
    Ok(true)
}

/// Who may decide at a gate, in words.
pub(crate) fn who(state: &State, instance: &Instance) -> String {
    let gate = state.steps.get(instance).and_then(|step| step.gate.as_ref());
    match gate {
        Some(gate) if !gate.approvers.is_empty() => {
            format!(
                "its approvers are {}, {} of them must approve, {} has",
                gate.approvers.join(", "),
                gate.count,
                names(&gate.approved_by)
            )
        }
        Some(gate) => format!("{} must approve, {} has", gate.count, names(&gate.approved_by)),
        None => "it is not open".into(),
    }
}

fn names(names: &[String]) -> String {
    if names.is_empty() { "nobody".into() } else { names.join(", ") }
}

/// What came of a question.
enum Answer {
    Decided(Decision),
    Later,
    /// The gate is no longer open: somebody else has decided, or nobody in time.
    Elsewhere,
}

/// How often it is looked whether a question still stands.
const LOOK: std::time::Duration = std::time::Duration::from_millis(200);

/// Asks whoever is at the terminal. The engine goes on meanwhile, and Ctrl-C leaves the gate open.
async fn ask(
    engine: &Engine,
    key: ExecutionKey,
    state: &State,
    instance: &Instance,
    signals: &mut Signals,
) -> Result<Answer, Refusal> {
    let Some(gate) = state.steps.get(instance).and_then(|step| step.gate.as_ref()) else { return Ok(Answer::Later) };
    say!("\n  {}", bold(&paragraph(&gate.prompt)));
    show_items(&gate.items);
    let mut look = tokio::time::interval(LOOK);
    prompt();
    loop {
        tokio::select! {
            () = signals.any() => {
                say!();
                return Ok(Answer::Later);
            }
            _ = look.tick() => {
                let now = engine.state(key)?;
                if !now.open_gates().any(|(open, now)| open == instance && now.number == gate.number) {
                    say!();
                    return Ok(Answer::Elsewhere);
                }
            }
            line = typed() => match line.as_deref().map(str::trim) {
                Some("y" | "yes") => return Ok(Answer::Decided(Decision::Approve)),
                Some("n" | "no") => return Ok(Answer::Decided(Decision::Deny)),
                Some("l" | "later") | None => return Ok(Answer::Later),
                Some(_) => prompt(),
            },
        }
    }
}

fn prompt() {
    let mut out = anstream::stdout().lock();
    let _ = write!(out, "  {} ", bold("[y]es, [n]o, [l]ater?"));
    let _ = out.flush();
}

/// The next line that is typed; nothing once there are no more. One thread reads for the whole process: a second one
/// would take the other's lines.
async fn typed() -> Option<String> {
    static LINES: OnceLock<Mutex<UnboundedReceiver<String>>> = OnceLock::new();
    let lines = LINES.get_or_init(|| {
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
        std::thread::spawn(move || {
            for line in std::io::stdin().lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Mutex::new(receiver)
    });
    lines.lock().await.recv().await
}

/// What is approved, as it is bound to the decision.
pub(crate) fn show_items(items: &Value) {
    let is_empty = matches!(items, Value::Null) || items.as_list().is_some_and(<[Value]>::is_empty);
    if !is_empty {
        for line in pretty(items).lines().map(shown) {
            say!("    {line}");
        }
    }
}

fn conclude(engine: &Engine, standing: &Standing, global: &Global) -> Exit {
    let Standing { state, trace, .. } = standing;
    let id = name(state);
    if global.json {
        let events = Events::new(&id, &state.plan);
        events.gates(state, engine.key(), state.now).iter().for_each(events::print);
        events::print(&events.finished(state, state.now));
        say!("{}", compact(&envelope::of_execution(state, trace, engine.key())));
        return exit::of_execution(state);
    }
    summary(state);
    exit::of_execution(state)
}

/// The last lines about an execution.
pub(crate) fn summary(state: &State) {
    let id = name(state);
    let word = state.status().name();
    let took = state.start.as_ref().map_or(0, |start| state.ended_at.unwrap_or_else(now_ms).saturating_sub(start.at));
    let note = if state.with_failures { " with failures let through" } else { "" };
    say!("\n{} {}{note} {}", bold(&shown(&id)), status(word), dim(&format!("after {}", duration(took))));
    if let Some(output) =
        state.output().filter(|output| **output != Value::Null && output.as_map().is_none_or(|map| !map.is_empty()))
    {
        say!("{}", lines_shown(&pretty(output)));
    }
    let error = envelope::error(state);
    if let Some(message) = error.get("message").and_then(Value::as_text) {
        let code = error.get("code").and_then(Value::as_text).unwrap_or_default();
        say!("  {}: {}", shown(code), paragraph(message));
    }
    for (instance, gate) in state.open_gates() {
        say!("  waits at `{}`: {}", shown(&instance.name(&state.plan)), paragraph(&gate.prompt));
        show_items(&gate.items);
        say!("  {}", dim(&shown(&format!("mainspring approve {id}    or    mainspring deny {id}"))));
    }
}

async fn interrupted(
    engine: &Engine,
    standing: &Standing,
    global: &Global,
    terminal: &Terminal,
) -> Result<Exit, Refusal> {
    let id = name(&standing.state);
    terminal.remark("stopping what runs …");
    engine.drain().await;
    let message = format!("interrupted; nothing is lost: `mainspring resume {id}` goes on");
    if global.json {
        let failure = Refusal::internal("interrupted", message.clone()).failure;
        say!("{}", compact(&envelope::of_refusal(Some(&id), &failure)));
    }
    terminal.remark(&message);
    Ok(Exit::Failed)
}

fn name(state: &State) -> String {
    state.start.as_ref().map(|start| start.execution_id.clone()).unwrap_or_default()
}
