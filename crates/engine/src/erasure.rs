//! Erasure of the values of an execution that has ended. Frames remain: only values and late receipts are erased.

use mainspring_kernel::{
    frame::Frame,
    input::{Input, Timer},
    instance::Instance,
    key::ExecutionKey,
    note::{Note, Subject},
    plan::Plan,
    record::Record,
};
use mainspring_store::{HeadRow, ReadLimit};

use crate::{
    clock::now_ms,
    error::EngineError,
    journal_loader::LoadError,
    quarantine::{Act, Place},
};

/// Frames per read.
const FRAMES_AT_A_TIME: usize = 1_000;

/// Erases the values of an execution: all of them, or the inputs, outputs and messages of some steps. Each erasure has
/// a sealed note with its user and reason. Late receipts are erased as well. Returns the number of values and receipts
/// that were erased by this call.
///
/// Only an execution that has ended can be erased, since a running one would continue with null. Copies in the journals
/// of its parent or children belong to those executions.
pub fn erase(place: Place<'_>, execution: ExecutionKey, steps: &[String], act: &Act<'_>) -> Result<usize, EngineError> {
    match place.store.head(execution)? {
        None => return Err(EngineError::NoSuchExecution),
        Some(HeadRow { ended: false, .. }) => return Err(EngineError::NotEnded),
        Some(_) => {}
    }
    let plan = match steps.is_empty() {
        true => None,
        false => {
            let read = place.loader.journal(execution)?.ok_or(EngineError::NoSuchExecution)?;
            let plan = read.journal.state.plan;
            if let Some(unknown) = steps.iter().find(|step| !is_step(&plan, step)) {
                return Err(EngineError::NoSuchStep((*unknown).clone()));
            }
            Some(plan)
        }
    };
    let (at, mut notes, mut next) = (now_ms(), Vec::new(), 0);
    loop {
        let frames = place.store.frames(execution, next, ReadLimit::of(FRAMES_AT_A_TIME))?;
        let Some(last) = frames.last() else { break };
        next = last.sequence + 1;
        for stored in &frames {
            let places: Vec<usize> = match &plan {
                None => (0..stored.values.len()).collect(),
                Some(plan) => {
                    let is_meant = |instance: &Instance| is_named(plan, instance, steps);
                    let of_input = |input: &Input| instance_of(input).is_some_and(is_meant);
                    let of_record = |record: &Record| record.instance().is_some_and(is_meant);
                    let places = Frame::places(stored, of_input, of_record);
                    let broken = |why| LoadError::Broken(format!("frame {}: {why}", stored.sequence));
                    places.map_err(broken)?.into_iter().collect()
                }
            };
            notes.extend(places.into_iter().filter(|place| stored.values[*place].body.is_some()).map(|place| {
                let subject = Subject::Erased { sequence: stored.sequence, place: place as u64 };
                Note::sealed(act.key, execution, subject, at, act.by, act.reason)
            }));
        }
    }
    // Erased even without values in the journal, since late receipts may have arrived after the last erasure.
    Ok(place.store.erase(execution, &act.audited(&notes))?)
}

/// The instance that an input concerns.
fn instance_of(input: &Input) -> Option<&Instance> {
    match input {
        Input::Receipt { instance, .. } | Input::Decide { instance, .. } | Input::ChildWaits { instance, .. } => {
            Some(instance)
        }
        Input::Timer(Timer::Attempt(instance, _)) => Some(instance),
        _ => None,
    }
}

/// True if a step is named, by its id (all rounds) or by the name of one instance.
fn is_named(plan: &Plan, instance: &Instance, steps: &[String]) -> bool {
    steps.iter().any(|step| *step == plan.id(instance.step) || *step == instance.name(plan))
}

fn is_step(plan: &Plan, step: &str) -> bool {
    Instance::parse(step, plan).is_some() || plan.steps.iter().any(|planned| planned.id == step)
}
