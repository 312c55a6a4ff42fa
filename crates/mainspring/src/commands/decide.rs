//! `mainspring approve` and `deny`: decides an approval, after which the execution continues.

use clap::Args;
use mainspring_engine::{
    EngineError, EngineScope,
    execution_tree::{ExecutionTree, OpenGate},
};
use mainspring_kernel::{
    frame::Frame, input::Input, limits::REASON_CHARS_MAX, plan::Decision, record::Record, state::State, value::Value,
};

use super::{
    audit_entry,
    delegate::delegate,
    follow::{From, Gates, follow, no_approver},
    remote,
    resume::leave,
};
use crate::output::summary::show_items;
use crate::{
    cli::Global,
    error::{CliError, Exit},
    output::terminal::{Terminal, bold, print_out},
    output::text::paragraph,
    paths,
    read_store::{ReadStore, block_on, engine, find, open_read_only},
    runner::{self, Signals},
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

pub(crate) fn approve(approve: &Approve, global: &Global, terminal: &Terminal) -> Result<Exit, CliError> {
    decide(&approve.at, Decision::Approve, global, terminal)
}

pub(crate) fn deny(deny: &Deny, global: &Global, terminal: &Terminal) -> Result<Exit, CliError> {
    decide(&deny.at, Decision::Deny, global, terminal)
}

fn decide(at: &At, decision: Decision, global: &Global, terminal: &Terminal) -> Result<Exit, CliError> {
    check_reason(at.reason.as_deref())?;
    if let Some(client) = global.client()? {
        return remote::decide(at, decision, &client, global, terminal);
    }
    let opened = open_read_only(global)?;
    let row = find(&*opened.store, &at.id)?;
    let read = opened.loader.journal(row.key).map_err(EngineError::from)?.ok_or(EngineError::NoSuchExecution)?;
    let state = read.journal.state;
    let tree = ExecutionTree::of(&opened.loader, &opened.key, &state)?;
    let open = open_gate(&tree, &state, at)?.clone();
    let by = paths::user();
    if !open.gate.accepts(open.gate.number, &by, mainspring_engine::clock::now_ms()) {
        return Err(no_approver(&open, &by));
    }
    if !global.json {
        print_out!("{}", bold(&paragraph(&open.gate.prompt)));
        show_items(&open.gate.items);
    }
    let reason = at.reason.as_deref().map_or(Value::Null, Value::from);
    let (instance, gate) = (open.instance.clone(), open.gate.number);
    let entry = audit_entry::decision(&row, &open, decision, &reason, &by);
    let input = Input::Decide { instance, gate, decision, by, reason };
    if opened.is_others() {
        let delegated = delegate(&opened, open.execution, &input, entry, global)?;
        if delegated.accepted {
            counted(&opened, &open, &input)?;
        }
        return Ok(delegated.tell(global, terminal));
    }
    drop(opened);
    block_on(async {
        let mut signals = Signals::new()?;
        let engine = engine(global, EngineScope::named()).await?;
        engine.activate(row.key);
        let before = runner::snapshot(&engine, row.key, |_, _| ())?;
        let taken = engine.take(open.execution, input, entry).await?;
        let from = From::Frame(before.next_sequence);
        let exit = match taken {
            true => follow(&engine, row.key, Gates::Ask, from, global, terminal, &mut signals).await,
            false => Err(CliError::contract("not_open", "the approval was already decided")),
        };
        leave(&engine, exit, terminal, &mut signals).await
    })
}

/// Rejects a reason above the limit of journals and audit logs.
fn check_reason(reason: Option<&str>) -> Result<(), CliError> {
    if reason.is_none_or(|reason| reason.chars().count() <= REASON_CHARS_MAX) {
        return Ok(());
    }
    let message = format!("--reason must have at most {REASON_CHARS_MAX} characters");
    Err(CliError::bad_input("reason_too_long", message))
}

/// Checks in the journal that a received decision counted. It did not if the gate was closed before.
fn counted(opened: &ReadStore, open: &OpenGate, input: &Input) -> Result<(), CliError> {
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
    let read = opened
        .loader
        .frames(open.execution, collect)
        .map_err(EngineError::from)?
        .ok_or(EngineError::NoSuchExecution)?;
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
fn open_gate<'a>(tree: &'a ExecutionTree, state: &State, at: &At) -> Result<&'a OpenGate, CliError> {
    let names = |gates: &mut dyn Iterator<Item = &OpenGate>| {
        gates.map(|open| open.path.as_str()).collect::<Vec<_>>().join(", ")
    };
    let several = |gates: &[&OpenGate]| {
        let names = names(&mut gates.iter().copied());
        CliError::bad_input("several_gates", format!("several gates are open; name one with --step: {names}"))
    };
    let all: Vec<&OpenGate> = tree.gates.iter().collect();
    let Some(step) = &at.step else {
        return match all.as_slice() {
            [] => Err(nobody(state, at)),
            [only] => Ok(only),
            _ => Err(several(&all)),
        };
    };
    match tree.named(step).as_slice() {
        _ if all.is_empty() => Err(nobody(state, at)),
        [only] => Ok(only),
        [] => {
            let names = names(&mut tree.gates.iter());
            Err(CliError::contract("no_open_gate", format!("no gate is open at `{step}`; open are: {names}")))
        }
        found => Err(several(found)),
    }
}

fn nobody(state: &State, at: &At) -> CliError {
    CliError::contract(
        "no_open_gate",
        format!("`{}` has no open approval: its status is {}", at.id, state.status().name()),
    )
}
