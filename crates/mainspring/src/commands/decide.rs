//! `mainspring approve` and `deny`: decides an approval, after which the execution continues.

use clap::Args;
use mainspring_engine::{
    EngineError, Reach,
    family::{Family, OpenGate},
};
use mainspring_kernel::{
    frame::Frame, input::Input, limits::REASON_CHARS_MAX, plan::Decision, record::Record, state::State, value::Value,
};

use super::{
    follow::{From, Gates, follow, no_approver},
    hand_over::hand_over,
    noted, remote,
    resume::leave,
    summary::show_items,
};
use crate::{
    cli::Global,
    exit::{Exit, Refusal},
    naming::{Looked, block_on, engine, find, look},
    place,
    runner::{self, Signals},
    terminal::{Terminal, bold, say},
    text::paragraph,
};

/// Approve.
#[derive(Debug, Args)]
pub(crate) struct Approve {
    #[command(flatten)]
    at: At,
}

/// Deny.
#[derive(Debug, Args)]
pub(crate) struct Deny {
    #[command(flatten)]
    at: At,
}

/// The flags of a decision.
#[derive(Debug, Args)]
pub(super) struct At {
    /// The execution: its id, the beginning of it, or `last`
    pub(super) id: String,
    /// The step, if several approvals are open (`mainspring approvals` lists them); `sub/gate` for the approval `gate`
    /// of the child that step `sub` started
    #[arg(long, value_name = "STEP")]
    pub(super) step: Option<String>,
    /// The reason, up to 2,000 characters, recorded with the decision and in the organization's audit log
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
}

pub(crate) fn approve(approve: &Approve, global: &Global, terminal: &Terminal) -> Result<Exit, Refusal> {
    decide(&approve.at, Decision::Approve, global, terminal)
}

pub(crate) fn deny(deny: &Deny, global: &Global, terminal: &Terminal) -> Result<Exit, Refusal> {
    decide(&deny.at, Decision::Deny, global, terminal)
}

fn decide(at: &At, decision: Decision, global: &Global, terminal: &Terminal) -> Result<Exit, Refusal> {
    check_reason(at.reason.as_deref())?;
    if let Some(client) = global.client()? {
        return remote::decide(at, decision, &client, global, terminal);
    }
    let looked = look(global)?;
    let row = find(&*looked.store, &at.id)?;
    let read = looked.loader.journal(row.key).map_err(EngineError::from)?.ok_or(EngineError::NoSuchExecution)?;
    let state = read.journal.state;
    let family = Family::of(&looked.loader, &looked.key, &state)?;
    let open = open_gate(&family, &state, at)?.clone();
    let by = place::user();
    if !open.gate.accepts(open.gate.number, &by, mainspring_engine::engine::now_ms()) {
        return Err(no_approver(&open, &by));
    }
    if !global.json {
        say!("{}", bold(&paragraph(&open.gate.prompt)));
        show_items(&open.gate.items);
    }
    let reason = at.reason.as_deref().map_or(Value::Null, Value::from);
    let (instance, gate) = (open.instance.clone(), open.gate.number);
    let noted = noted::decision(&row, &open, decision, &reason, &by);
    let input = Input::Decide { instance, gate, decision, by, reason };
    if looked.is_others() {
        let handed = hand_over(&looked, open.execution, &input, noted, global)?;
        if handed.taken {
            counted(&looked, &open, &input)?;
        }
        return Ok(handed.tell(global, terminal));
    }
    drop(looked);
    block_on(async {
        let mut signals = Signals::new()?;
        let engine = engine(global, Reach::named()).await?;
        engine.attend(row.key);
        let before = runner::standing(&engine, row.key, |_, _| ())?;
        let taken = engine.take(open.execution, input, noted).await?;
        let from = From::Frame(before.next_sequence);
        let exit = match taken {
            true => follow(&engine, row.key, Gates::Ask, from, global, terminal, &mut signals).await,
            false => Err(Refusal::contract("not_open", "the approval was already decided")),
        };
        leave(&engine, exit, terminal, &mut signals).await
    })
}

/// Rejects a reason above the limit of journals and audit logs.
fn check_reason(reason: Option<&str>) -> Result<(), Refusal> {
    if reason.is_none_or(|reason| reason.chars().count() <= REASON_CHARS_MAX) {
        return Ok(());
    }
    let message = format!("--reason must have at most {REASON_CHARS_MAX} characters");
    Err(Refusal::bad_input("reason_too_long", message))
}

/// Checks in the journal that a received decision counted. It did not if the gate was closed before.
fn counted(looked: &Looked, open: &OpenGate, input: &Input) -> Result<(), Refusal> {
    let Input::Decide { instance: at, gate: number, decision: wanted, by: us, .. } = input else { return Ok(()) };
    let mut decisions = Vec::new();
    let look = |_: &State, frame: &Frame| {
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
        looked.loader.frames(open.execution, look).map_err(EngineError::from)?.ok_or(EngineError::NoSuchExecution)?;
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
    Err(Refusal::contract("not_open", message))
}

/// Finds the selected gate, in the execution or in a child that it waits for.
fn open_gate<'a>(family: &'a Family, state: &State, at: &At) -> Result<&'a OpenGate, Refusal> {
    let names = |gates: &mut dyn Iterator<Item = &OpenGate>| {
        gates.map(|open| open.path.as_str()).collect::<Vec<_>>().join(", ")
    };
    let several = |gates: &[&OpenGate]| {
        let names = names(&mut gates.iter().copied());
        Refusal::bad_input("several_gates", format!("several gates are open; name one with --step: {names}"))
    };
    let all: Vec<&OpenGate> = family.gates.iter().collect();
    let Some(step) = &at.step else {
        return match all.as_slice() {
            [] => Err(nobody(state, at)),
            [only] => Ok(only),
            _ => Err(several(&all)),
        };
    };
    match family.named(step).as_slice() {
        _ if all.is_empty() => Err(nobody(state, at)),
        [only] => Ok(only),
        [] => {
            let names = names(&mut family.gates.iter());
            Err(Refusal::contract("no_open_gate", format!("no gate is open at `{step}`; open are: {names}")))
        }
        found => Err(several(found)),
    }
}

fn nobody(state: &State, at: &At) -> Refusal {
    Refusal::contract(
        "no_open_gate",
        format!("`{}` has no open approval: its status is {}", at.id, state.status().name()),
    )
}
