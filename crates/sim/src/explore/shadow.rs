//! Compares shadow runs with real runs. Everything is generated from a seed.
//!
//! A seed generates a workflow, a mutation of it, and a world: an answer for each call, which depends on the step, the
//! effect, the parameters and the attempt. The workflow runs on the simulated node and is recorded. Its replay with the
//! mutated plan must be the beginning of the real run of that plan in the same world, in which calls that the recording
//! does not answer hang. If the replay ends, it must be all of the real run.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use mainspring_kernel::{
    definition::compile,
    document::Document,
    effect::{Attempt, Outcome},
    evaluation::{Evaluated, Evaluation},
    failure::{Class, Failure},
    frame::Frame,
    hash::Hash,
    input::Input,
    json,
    plan::{Decision, Plan, Work},
    record::Record,
    value::{Map, Value},
};
use mainspring_review::shadow::{Change, Grade, Recorder, Recording, compare, replay};

use super::workflow;
use crate::{
    faults::{Faults, Rng},
    fixture::{Fixture, Given, START_MS},
    run::{Finished, run},
    scenario::{At, Entry, EntryAction, Reached},
    world::Answers,
};

/// The totals and the violations of a search.
#[derive(Debug, Clone, Default)]
pub struct ShadowsExplored {
    /// Seeds whose mutation compiles.
    pub compared: u64,
    /// Replays that ended.
    pub ended: u64,
    /// Replays of each grade.
    pub grades: BTreeMap<&'static str, u64>,
    /// Records that were compared.
    pub records: u64,
    /// Violations, each with its seed.
    pub found: Vec<String>,
}

/// Searches a range of seeds.
pub fn explore_shadows(seeds: Range<u64>) -> ShadowsExplored {
    let mut explored = ShadowsExplored::default();
    for seed in seeds {
        match compare_seed(seed) {
            Ok(None) => {}
            Ok(Some(compared)) => {
                explored.compared += 1;
                explored.ended += u64::from(compared.has_ended);
                explored.records += compared.records;
                *explored.grades.entry(compared.grade.name()).or_default() += 1;
            }
            Err(why) => explored.found.push(format!("seed {seed}: {why}")),
        }
    }
    explored
}

struct Compared {
    has_ended: bool,
    grade: Grade,
    records: u64,
}

/// Compares one seed; `None` if the mutated workflow does not compile.
fn compare_seed(seed: u64) -> Result<Option<Compared>, String> {
    let mut rng = Rng::new(seed);
    let made = workflow::make(&mut rng);
    let inbox = inbox(&mut rng);
    let Some(old) = plan_of(&made.definition) else { return Err("the generated workflow is refused".into()) };
    let mut definition = made.definition.clone();
    // Every eighth seed replays the plan itself.
    for _ in 0..rng.below(8).min(3) {
        mutate(&mut definition, &mut rng);
    }
    let Some(new) = plan_of(&definition) else { return Ok(None) };
    let of_seed: Answer = Arc::new(move |attempt| world(seed, attempt));
    let recorded = real(&old, &made.given, &inbox, (of_seed, Faults::NONE, 0))?;
    let recording = record(&recorded)?;
    let known = answered(&recorded);
    let answers = move |attempt: &Attempt| {
        let same = known.get(&(attempt.step.clone(), attempt.number));
        same.filter(|(effect, params)| *effect == attempt.effect && *params == attempt.params)?;
        world(seed, attempt)
    };
    let run = real(&new, &made.given, &recorded_inbox(&recorded), (Arc::new(answers), Faults::NONE, 0))?;
    let expected = records(&run.frames);
    let change = Change { plan: Arc::new(new.clone()), plan_hash: Hash::of(&new.encode()) };
    let mut replayed: Vec<(u64, Record)> = Vec::new();
    let mut evaluate =
        |_: &[&Evaluation]| -> Option<Vec<Evaluated>> { panic!("a generated workflow has no functions") };
    let result = replay(&recording, &change, &mut evaluate, &mut |now, turn| {
        replayed.extend(turn.iter().map(|record| (now, without_id(record))));
    });
    let is_same = replayed.iter().zip(&expected).take_while(|(replayed, expected)| replayed == expected).count();
    let (has_ended, count) = (result.end.is_some(), replayed.len());
    // The simulator does not advance the time for the timeout of a gate alone.
    let is_at_gate =
        is_same == expected.len() && matches!(replayed.get(is_same), Some((_, Record::GateDecided { by: None, .. })));
    if !is_at_gate && (is_same < count || (has_ended && count != expected.len())) {
        let sides = (replayed.get(is_same), expected.get(is_same));
        return Err(format!(
            "record {is_same} of {count} and {}: replayed {:?}, real {:?}\n{}\nmutated\n{}",
            expected.len(),
            sides.0,
            sides.1,
            json::pretty(&made.definition),
            json::pretty(&definition)
        ));
    }
    let report = compare(&recording, result, true);
    let is_unchanged = new.workflow_hash == old.workflow_hash;
    if is_unchanged && recording.end.is_some() && report.grade != Grade::Same {
        return Err(format!("the same plan is graded {}: {:?}", report.grade.name(), report));
    }
    Ok(Some(Compared { has_ended, grade: report.grade, records: count as u64 }))
}

pub(super) fn plan_of(definition: &Value) -> Option<Plan> {
    compile(&Document::placeless(definition.clone())).ok().map(|compiled| compiled.plan)
}

/// The answer of the world to a call.
pub(super) fn world(seed: u64, attempt: &Attempt) -> Option<(u64, Outcome)> {
    let params = json::canonical(&attempt.params);
    let text = format!("{seed}\n{}\n{}\n{}\n{params}", attempt.step, attempt.effect, attempt.number);
    let Hash(bytes) = Hash::of(text.as_bytes());
    // Odd delays keep answers apart from timers.
    let after_ms = u64::from(bytes[0] % 6) * 4_000 + u64::from(bytes[1]) * 8 + 1;
    let outcome = match bytes[2] % 10 {
        0..6 => {
            let ok = Value::Bool(bytes[3].is_multiple_of(3));
            Outcome::Done(Value::map([("v", u64::from(bytes[4] % 8).into()), ("ok", ok)]))
        }
        6..9 => {
            let classes = [Class::Transient, Class::Failed, Class::Unavailable];
            Outcome::Failed(Failure::new(classes[usize::from(bytes[5] % 3)], "scripted", "injected failure"))
        }
        _ => return None,
    };
    Some((after_ms, outcome))
}

/// Approvals by two members at every approval, and signals at fixed times.
pub(super) fn inbox(rng: &mut Rng) -> Vec<Entry> {
    let mut entries = Vec::new();
    for by in ["owner", "admin"] {
        let is_there = rng.chance(70);
        entries.extend((0..24).filter(|_| is_there).map(|step| Entry {
            at: At::Step(Reached::Waiting, format!("s{step}")),
            action: EntryAction::Decide { decision: Decision::Approve, by: by.into() },
        }));
    }
    for _ in 0..rng.below(4) {
        let name = (*rng.pick(&["go", "stop"])).to_string();
        let action = EntryAction::Signal { name, payload: Value::from(rng.below(9)) };
        entries.push(Entry { at: At::Time(1_000 * rng.below(60) + 500), action });
    }
    if rng.chance(5) {
        let action = EntryAction::Cancel { reason: "user_stop".into(), by: "owner".into() };
        entries.push(Entry { at: At::Time(1_000 * rng.below(60) + 250), action });
    }
    entries
}

/// The inputs that a journal has received from people and programs.
fn recorded_inbox(run: &Finished) -> Vec<Entry> {
    let at = |now: u64| At::Time(now.saturating_sub(START_MS));
    let entry = |frame: &Frame| match frame.input.clone() {
        Input::Decide { instance, decision, by, .. } => {
            let at = At::Step(Reached::Waiting, instance.name(&run.plan));
            Some(Entry { at, action: EntryAction::Decide { decision, by } })
        }
        Input::Signal { name, payload, .. } => {
            Some(Entry { at: at(frame.now), action: EntryAction::Signal { name, payload } })
        }
        Input::Cancel { reason, by } => Some(Entry { at: at(frame.now), action: EntryAction::Cancel { reason, by } }),
        _ => None,
    };
    run.frames.iter().filter_map(entry).collect()
}

/// Removes the id of a signal, which the simulator derives from the position in the inbox.
pub(super) fn without_id(record: &Record) -> Record {
    let mut record = record.clone();
    if let Record::SignalKept { id, .. } | Record::SignalTaken { id, .. } = &mut record {
        id.clear();
    }
    record
}

pub(super) type Answer = Arc<dyn Fn(&Attempt) -> Option<(u64, Outcome)> + Send + Sync>;

/// Runs a plan on the simulated node.
pub(super) fn real(
    plan: &Plan,
    given: &Given,
    inbox: &[Entry],
    (answers, faults, seed): (Answer, Faults, u64),
) -> Result<Finished, String> {
    let is_gate = |name: &str| {
        let step = plan.number_of(name);
        step.is_some_and(|step| matches!(plan.step(step).work, Work::Approval(_)))
    };
    let is_possible = |entry: &&Entry| match &entry.at {
        At::Step(_, name) => is_gate(name),
        At::Time(_) => true,
    };
    let inbox = inbox.iter().filter(is_possible).cloned().collect();
    let mut fixture = Fixture::new(plan.clone(), Given { inbox, ..given.clone() });
    fixture.answers = Some(Answers(answers));
    run(&fixture, faults, seed).map_err(|broken| broken.why)
}

fn record(run: &Finished) -> Result<Recording, String> {
    let mut recorder = Recorder::new(run.state.key, run.plan.clone());
    for frame in &run.frames {
        recorder.push(frame).map_err(|why| why.to_string())?;
    }
    recorder.finish().map_err(|why| why.to_string())
}

/// Returns the effect and the parameters of each call whose own answer the journal has.
fn answered(run: &Finished) -> BTreeMap<(String, u32), (String, Value)> {
    let (plan, mut asked, mut stopped, mut known) = (&run.plan, BTreeMap::new(), Vec::new(), BTreeMap::new());
    for frame in &run.frames {
        if let Input::Receipt { instance, attempt, .. } = &frame.input
            && !stopped.contains(&(instance.clone(), *attempt))
            && let Some(input) = asked.get(instance)
        {
            known.insert((instance.name(plan), *attempt), Clone::clone(input));
        }
        for record in &frame.records {
            match record {
                Record::StepStarted { instance, input, .. } => {
                    if let Work::Effect { effect, .. } = &plan.step(instance.step).work {
                        asked.insert(instance.clone(), (effect.clone(), input.value().clone()));
                    }
                }
                Record::AttemptStopping { instance, attempt, .. } => stopped.push((instance.clone(), *attempt)),
                _ => {}
            }
        }
    }
    known
}

fn records(frames: &[Frame]) -> Vec<(u64, Record)> {
    let of_frame =
        |frame: &Frame| frame.records.iter().map(|record| (frame.now, without_id(record))).collect::<Vec<_>>();
    frames.iter().flat_map(of_frame).collect()
}

/// Changes one place of a definition.
pub(super) fn mutate(definition: &mut Value, rng: &mut Rng) {
    let Value::Map(root) = definition else { return };
    if let Some(Value::List(steps)) = root.get_mut("steps") {
        mutate_list(steps, rng);
    }
}

fn mutate_list(steps: &mut Vec<Value>, rng: &mut Rng) {
    if steps.is_empty() {
        return;
    }
    let place = rng.below(steps.len() as u64) as usize;
    let is_deeper = rng.chance(60);
    if let Value::Map(step) = &mut steps[place]
        && is_deeper
    {
        for branch in ["then", "else", "steps"] {
            if let Some(Value::List(inner)) = step.get_mut(branch) {
                return mutate_list(inner, rng);
            }
        }
    }
    match rng.below(10) {
        0 => drop(steps.remove(place)),
        1 => {
            let other = rng.below(steps.len() as u64) as usize;
            steps.swap(place, other);
        }
        2 => {
            let id = format!("new{}", rng.below(100));
            let sleep = [("id", Value::from(id.as_str())), ("type", "sleep".into()), ("durationMs", 3_000u64.into())];
            steps.insert(place, Value::map(sleep));
        }
        3 => {
            let id = format!("new{}", rng.below(100));
            let tool = [("id", Value::from(id.as_str())), ("type", "tool".into()), ("tool", "WORK".into())];
            steps.insert(place, Value::map(tool));
        }
        _ => {
            if let Value::Map(step) = &mut steps[place] {
                mutate_step(step, rng);
            }
        }
    }
}

fn mutate_step(step: &mut Map, rng: &mut Rng) {
    match rng.below(7) {
        0 => drop(step.insert("when".into(), rng.chance(50).into())),
        1 => drop(step.insert("onError".into(), (*rng.pick(&["continue", "fail"])).into())),
        2 if step.contains_key("durationMs") => drop(step.insert("durationMs".into(), 7_000u64.into())),
        3 if step.contains_key("condition") => drop(step.insert("condition".into(), rng.chance(50).into())),
        4 if step.contains_key("arguments") => {
            step.insert("arguments".into(), Value::map([("of", 99u64.into()), ("n", "@input.n".into())]));
        }
        5 if step.contains_key("arguments") => drop(step.insert("timeoutMs".into(), 6_000u64.into())),
        6 if step.contains_key("arguments") => {
            let retry = [("maxAttempts", (1 + rng.below(3)).into()), ("initialDelayMs", 2_000u64.into())];
            step.insert("retry".into(), Value::map(retry));
        }
        _ => drop(step.insert("outputVariable".into(), "renamed".into())),
    }
}
