//! Erasing the values of an execution that has ended.

use mainspring_kernel::{
    frame::Frame,
    input::{Input, Timer},
    instance::Instance,
    key::ExecutionKey,
    note::{Note, Subject},
    plan::Plan,
    record::Record,
};
use mainspring_store::{HeadRow, Most};

use crate::{
    EngineError,
    aside::{Act, Place},
    engine::now_ms,
    load::LoadError,
};

/// Frames read at a time.
const FRAMES_AT_A_TIME: usize = 1_000;

/// Erases the values of an execution: all of them, or those that stand in what steps took in, gave and were told. Each has a
/// sealed note of who erased it and why. The receipts that came too late for it go as well. Returns how many values and
/// receipts are gone now and were not before.
///
/// Only of an execution that has ended: one that goes on would decide by null. A copy in the journal of another execution,
/// its parent or a child, is that execution's.
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
        let frames = place.store.frames(execution, next, Most::of(FRAMES_AT_A_TIME))?;
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
    // Also where nothing is left in the journal: a receipt may have come after the last time.
    Ok(place.store.erase(execution, &act.noted(&notes))?)
}

/// The instance that an input is for.
fn instance_of(input: &Input) -> Option<&Instance> {
    match input {
        Input::Receipt { instance, .. } | Input::Decide { instance, .. } | Input::ChildWaits { instance, .. } => {
            Some(instance)
        }
        Input::Timer(Timer::Attempt(instance, _)) => Some(instance),
        _ => None,
    }
}

/// Whether a step is named: by its id, which means every round of it, or by the name of one instance.
fn is_named(plan: &Plan, instance: &Instance, steps: &[String]) -> bool {
    steps.iter().any(|step| *step == plan.id(instance.step) || *step == instance.name(plan))
}

fn is_step(plan: &Plan, step: &str) -> bool {
    Instance::parse(step, plan).is_some() || plan.steps.iter().any(|planned| planned.id == step)
}
