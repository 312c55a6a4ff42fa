//! Generates workflows, scripts and inboxes from random numbers.
//!
//! A generated workflow is always accepted, since references only name steps that have certainly ended. Chance decides
//! whether a reference resolves to a value, and about results, failures and times.

use mainspring_kernel::{
    failure::{Class, Failure},
    plan::{Constraints, Decision},
    value::{Map, Value},
};

use crate::{
    faults::Rng,
    fixture::Given,
    scenario::{Answer, At, Entry, EntryAction, Reached, Script, Scripts},
};

/// Steps of one workflow, above which no more containers are generated.
const STEPS_MAX: usize = 24;

/// Nesting of blocks.
const DEPTH_MAX: usize = 3;

/// A workflow and the arguments of its start.
#[derive(Debug, Clone)]
pub(super) struct Made {
    pub(super) definition: Value,
    pub(super) given: Given,
}

pub(super) fn make(rng: &mut Rng) -> Made {
    let mut maker = Maker { rng, steps: Vec::new(), effects: Scripts::new(), is_cleanup: false, opaque: Vec::new() };
    let count = 1 + maker.rng.below(5) as usize;
    let (steps, known) = maker.sequence(count, 0, &[]);
    let mut definition = Map::from([("steps".into(), Value::List(steps))]);
    if maker.rng.chance(35) {
        maker.is_cleanup = true;
        let count = 1 + maker.rng.below(3) as usize;
        let (steps, _) = maker.sequence(count, DEPTH_MAX, &known);
        definition.insert("finally".into(), Value::List(steps));
    }
    let definition = Value::Map(definition);
    let given = Given {
        workflows: std::collections::BTreeMap::new(),
        sandbox: crate::fixture::Sandbox(std::sync::Arc::new(mainspring_engine::evaluator::InProcess)),
        input: Value::map([("n", maker.rng.below(8).into())]),
        variables: Map::from([("flag".into(), Value::Bool(maker.rng.chance(50)))]),
        bounds: maker.bounds(),
        policy: mainspring_kernel::effect_policy::EffectPolicy::default(),
        execution_id: None,
        inbox: maker.inbox(),
        effects: maker.effects.into(),
    };
    Made { definition, given }
}

struct Maker<'d> {
    rng: &'d mut Rng,
    /// The ids so far.
    steps: Vec<String>,
    effects: Scripts,
    /// True for the steps of `finally`.
    is_cleanup: bool,
    /// Steps whose output has no known shape, so references may go into it.
    opaque: Vec<String>,
}

impl Maker<'_> {
    /// Generates consecutive steps, and returns the ids that can be referred to after them.
    fn sequence(&mut self, count: usize, depth: usize, known: &[String]) -> (Vec<Value>, Vec<String>) {
        let mut known = known.to_vec();
        let mut steps = Vec::new();
        for _ in 0..count {
            let (step, ended) = self.step(depth, &known);
            steps.push(step);
            known.extend(ended);
        }
        (steps, known)
    }

    /// Generates a step, and returns the ids in it.
    fn step(&mut self, depth: usize, known: &[String]) -> (Value, Vec<String>) {
        let id = format!("s{}", self.steps.len());
        self.steps.push(id.clone());
        let mut step = Map::from([("id".into(), Value::from(id.as_str()))]);
        if self.rng.chance(15) {
            step.insert("when".into(), self.condition(known));
        }
        if self.rng.chance(25) {
            step.insert("onError".into(), "continue".into());
        }
        if self.rng.chance(30) && !self.is_cleanup {
            step.insert("outputVariable".into(), format!("out_{id}").into());
        }
        let mut inside = vec![id.clone()];
        let may_contain = depth < DEPTH_MAX && self.steps.len() < STEPS_MAX;
        match self.rng.below(100) {
            0..15 if may_contain => inside.extend(self.conditional(&mut step, depth, known)),
            15..38 if may_contain => inside.extend(self.parallel(&mut step, depth, known)),
            38..48 => self.approval(&mut step),
            48..56 => self.sleep(&mut step),
            56..64 => self.signal(&mut step),
            64..67 if !self.is_cleanup => self.return_step(&mut step, known),
            _ => self.effect(&id, &mut step, known),
        }
        (Value::Map(step), inside)
    }

    fn conditional(&mut self, step: &mut Map, depth: usize, known: &[String]) -> Vec<String> {
        step.insert("type".into(), "conditional".into());
        step.insert("condition".into(), self.condition(known));
        let mut inside = Vec::new();
        let has_else = self.rng.chance(50);
        for branch in ["then", "else"].into_iter().take(1 + usize::from(has_else)) {
            let count = 1 + self.rng.below(3) as usize;
            let (steps, after) = self.sequence(count, depth + 1, known);
            step.insert(branch.into(), Value::List(steps));
            inside.extend(after.into_iter().skip(known.len()));
        }
        inside
    }

    fn parallel(&mut self, step: &mut Map, depth: usize, known: &[String]) -> Vec<String> {
        step.insert("type".into(), "parallel".into());
        let (mut branches, mut inside) = (Vec::new(), Vec::new());
        for _ in 0..1 + self.rng.below(5) {
            let (branch, ids) = self.step(depth + 1, known);
            branches.push(branch);
            inside.extend(ids);
        }
        step.insert("steps".into(), Value::List(branches));
        inside
    }

    fn approval(&mut self, step: &mut Map) {
        step.insert("type".into(), "approval".into());
        if self.rng.chance(50) {
            step.insert("ttlMs".into(), (1000 * (1 + self.rng.below(60))).into());
        }
        if self.rng.chance(30) {
            step.insert("onTimeout".into(), (*self.rng.pick(&["approve", "deny"])).into());
        }
        if self.rng.chance(30) {
            step.insert("count".into(), 2u64.into());
        }
    }

    fn sleep(&mut self, step: &mut Map) {
        step.insert("type".into(), "sleep".into());
        step.insert("durationMs".into(), (1000 * self.rng.below(20)).into());
    }

    fn signal(&mut self, step: &mut Map) {
        step.insert("type".into(), "signal".into());
        step.insert("signal".into(), (*self.rng.pick(&["go", "stop"])).into());
    }

    fn return_step(&mut self, step: &mut Map, known: &[String]) {
        step.insert("type".into(), "return".into());
        step.insert("input".into(), self.value(known));
    }

    fn effect(&mut self, id: &str, step: &mut Map, known: &[String]) {
        match self.rng.below(4) {
            0 => {
                step.insert("type".into(), "bash".into());
                step.insert("command".into(), "true".into());
            }
            1 => {
                step.insert("type".into(), "agent".into());
                step.insert("goal".into(), "be done".into());
            }
            _ => {
                step.insert("type".into(), "tool".into());
                self.opaque.push(id.into());
                step.insert("tool".into(), "WORK".into());
                let arguments = Value::map([("of", self.value(known)), ("n", "@input.n".into())]);
                step.insert("arguments".into(), arguments);
            }
        }
        if self.rng.chance(60) {
            step.insert("retry".into(), self.retry());
        }
        if self.rng.chance(40) {
            step.insert("timeoutMs".into(), (1000 * (1 + self.rng.below(20))).into());
        }
        if self.rng.chance(40) {
            step.insert("onInterrupted".into(), (*self.rng.pick(&["retry", "ask", "fail"])).into());
        }
        let answers = (0..1 + self.rng.below(4)).map(|_| self.script()).collect();
        self.effects.insert(id.into(), answers);
    }

    fn retry(&mut self) -> Value {
        let backoff = *self.rng.pick(&["fixed", "linear", "exponential"]);
        let jitter = mainspring_kernel::value::Number::double(*self.rng.pick(&[0.0, 0.2, 1.0]));
        Value::map([
            ("maxAttempts", (1 + self.rng.below(4)).into()),
            ("initialDelayMs", (1000 * self.rng.below(8)).into()),
            ("backoff", backoff.into()),
            ("jitter", jitter.map_or(Value::Null, Value::Number)),
        ])
    }

    fn script(&mut self) -> Script {
        let after_ms = *self.rng.pick(&[0, 0, 1000, 5000, 10_000, 25_000]);
        let classes = [Class::Transient, Class::Timeout, Class::Failed, Class::Unavailable, Class::Invalid];
        let answer = match self.rng.below(10) {
            0..6 => {
                let ok = Value::Bool(self.rng.chance(70));
                Answer::Return(Value::map([("v", self.rng.below(8).into()), ("ok", ok)]))
            }
            6..9 => Answer::Error(Failure::new(*self.rng.pick(&classes), "scripted", "injected failure")),
            _ => Answer::Hang,
        };
        Script { answer, after_ms }
    }

    /// Generates a reference, usually to an existing value.
    fn value(&mut self, known: &[String]) -> Value {
        if known.is_empty() {
            return "@input.n".into();
        }
        let step = self.rng.pick(known).clone();
        let opaque = self.opaque(known);
        match (self.rng.below(20), opaque) {
            (9..12, Some(step)) => format!("@{step}.v").into(),
            (12, Some(step)) => format!("is @{step}.missing there").into(),
            (0..13, _) => format!("@{step}").into(),
            _ => Value::from(7u64),
        }
    }

    /// Picks a step whose output has no known shape.
    fn opaque(&mut self, known: &[String]) -> Option<String> {
        let opaque: Vec<String> = known.iter().filter(|id| self.opaque.contains(id)).cloned().collect();
        if opaque.is_empty() { None } else { Some(self.rng.pick(&opaque).clone()) }
    }

    fn condition(&mut self, known: &[String]) -> Value {
        let flag = || Value::map([("variable", "flag".into()), ("equals", true.into())]);
        if known.is_empty() || self.rng.chance(40) {
            return if self.rng.chance(50) { flag() } else { self.rng.chance(70).into() };
        }
        let Some(step) = self.opaque(known) else { return flag() };
        match self.rng.below(10) {
            0..4 => Value::map([("ref", format!("@{step}.ok").into())]),
            4..8 => Value::map([("ref", format!("@{step}.v").into()), ("exists", self.rng.chance(50).into())]),
            8 => Value::map([("ref", format!("@{step}.v").into()), ("gt", 3u64.into())]),
            _ => Value::map([("not", flag())]),
        }
    }

    fn bounds(&mut self) -> Constraints {
        let max_steps = self.rng.chance(20).then(|| 2 + self.rng.below(12) as u32);
        let max_parallel = self.rng.chance(60).then(|| 1 + self.rng.below(4) as u32);
        let timeout_ms = self.rng.chance(25).then(|| 1000 * (1 + self.rng.below(60)));
        Constraints { max_steps, max_parallel, timeout_ms, ..Constraints::default() }
    }

    fn inbox(&mut self) -> Vec<Entry> {
        (0..self.rng.below(7)).map(|_| Entry { at: self.at(), action: self.action() }).collect()
    }

    fn at(&mut self) -> At {
        if self.rng.chance(50) {
            return At::Time(1000 * self.rng.below(90));
        }
        let (_, reached) = *self.rng.pick(&Reached::ALL);
        At::Step(reached, self.rng.pick(&self.steps).clone())
    }

    fn action(&mut self) -> EntryAction {
        let by = (*self.rng.pick(&["owner", "admin"])).to_string();
        match self.rng.below(20) {
            0..8 => {
                let decision = if self.rng.chance(80) { Decision::Approve } else { Decision::Deny };
                EntryAction::Decide { decision, by }
            }
            8..14 => {
                let name = (*self.rng.pick(&["go", "stop"])).to_string();
                EntryAction::Signal { name, payload: Value::from(self.rng.below(9)) }
            }
            14 => EntryAction::Cancel { reason: "user_stop".into(), by },
            15..17 => EntryAction::Crash,
            _ => EntryAction::MonotonicMs,
        }
    }
}
