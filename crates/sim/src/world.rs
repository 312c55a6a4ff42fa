//! The environment of a simulated node: calls, their scripted responses, and the loss of both when a node dies.
//!
//! The environment learns of a call from the durable frame that starts its attempt, and checks the engine against it. A
//! call that was not recorded, a second call of the same attempt, or a call with other arguments is a bug of the
//! engine.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use mainspring_kernel::{
    definition::nearest,
    effect::{Attempt, Outcome},
    instance::Instance,
    key::ExecutionKey,
    value::Value,
};

use crate::scenario::{Effects, arguments, called, names};

/// Answers that are a function of the attempt: a delay in milliseconds with an outcome, or none.
#[derive(Clone)]
pub(crate) struct Answers(pub(crate) Arc<AnswerFunction>);

/// Returns the answer of an attempt and its delay in milliseconds; `None` for none.
type AnswerFunction = dyn Fn(&Attempt) -> Option<(u64, Outcome)> + Send + Sync;

impl std::fmt::Debug for Answers {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Answers")
    }
}

/// All calls so far, in the order of the journal.
#[derive(Debug)]
pub(crate) struct World {
    scripts: Effects,
    /// Answers instead of the scripts.
    answers: Option<Answers>,
    /// The number of calls so far, by the name of their script.
    used: BTreeMap<String, usize>,
    calls: Vec<Call>,
    by_attempt: BTreeMap<(ExecutionKey, Instance, u32), usize>,
    /// One counter for all pending events: of two at the same time, the one that was created first arrives first.
    orders: u64,
}

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) instance: Instance,
    pub(crate) attempt: Attempt,
    answer: Option<(u64, Outcome)>,
    order: u64,
    /// The position of the response to a stop in the order of events; set when the stop became durable.
    stop_order: Option<u64>,
    stage: Stage,
}

/// The progress of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Stage {
    /// Recorded, and not made yet.
    Written,
    /// Made. Its response arrives at a time, or never.
    Out(Option<Arriving>),
    /// Made, and its response has arrived.
    Answered,
    /// Made, and killed with its node.
    Killed,
}

/// A response that has not arrived yet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Arriving {
    pub(crate) at: u64,
    pub(crate) order: u64,
    pub(crate) outcome: Outcome,
}

/// A call in the form for reports and comparisons.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Made {
    pub(crate) tool: String,
    pub(crate) arguments: Value,
}

impl World {
    pub(crate) fn new(scripts: Effects, answers: Option<Answers>) -> Self {
        Self { scripts, answers, used: BTreeMap::new(), calls: Vec::new(), by_attempt: BTreeMap::new(), orders: 0 }
    }

    pub(crate) fn next_order(&mut self) -> u64 {
        self.orders += 1;
        self.orders
    }

    /// Records a durable start of an attempt. Its response is determined now, so that it does not depend on the time of
    /// the call.
    pub(crate) fn expect(&mut self, instance: &Instance, id: &str, attempt: Attempt) -> Result<(), String> {
        let answer = match &self.answers {
            Some(Answers(answer)) => answer(&attempt),
            None => self.scripted(id, &attempt)?,
        };
        let key = (attempt.execution, instance.clone(), attempt.number);
        let order = self.next_order();
        let instance = instance.clone();
        self.calls.push(Call { instance, attempt, answer, order, stop_order: None, stage: Stage::Written });
        match self.by_attempt.insert(key, self.calls.len() - 1) {
            None => Ok(()),
            Some(_) => Err("an attempt started twice".into()),
        }
    }

    /// Returns the next answer of the script of an attempt.
    fn scripted(&mut self, id: &str, attempt: &Attempt) -> Result<Option<(u64, Outcome)>, String> {
        let name = names(attempt, id).find(|name| self.scripts.get(name).is_some());
        let Some(name) = name.map(String::from) else {
            let (step, tool) = (&attempt.step, called(attempt));
            let near = nearest(step, self.scripts.all_names());
            let near = near.map(|near| format!("; is {near:?} meant for it?")).unwrap_or_default();
            let help = format!("write effects: {{{step}: {{return: …}}}}{near}");
            return Err(format!("step `{step}` calls {tool:?}, and no script answers; {help}"));
        };
        let place = self.used.entry(name.clone()).or_default();
        let script = self.scripts.get(&name).and_then(|scripts| scripts.get(*place).or(scripts.last()));
        *place += 1;
        match script {
            Some(script) => script.outcome(attempt).map_err(|why| format!("step `{}`: {why}", attempt.step)),
            None => Ok(None),
        }
    }

    /// Records a durable stop.
    pub(crate) fn expect_stop(&mut self, execution: ExecutionKey, instance: &Instance, number: u32) {
        let order = self.next_order();
        if let Some(call) = self.call_mut(execution, instance, number) {
            call.stop_order.get_or_insert(order);
        }
    }

    /// Makes a call for a node.
    pub(crate) fn perform(&mut self, now: u64, instance: &Instance, attempt: &Attempt) -> Result<(), String> {
        let name = format!("attempt {} of `{}`", attempt.number, attempt.step);
        let is_same = |call: &&Call| call.attempt.execution == attempt.execution && call.instance == *instance;
        let other = self.calls.iter().find(|call| is_same(call) && matches!(call.stage, Stage::Out(_)));
        if let Some(other) = other {
            return Err(format!("{name} is performed while attempt {} is still out", other.attempt.number));
        }
        let Some(call) = self.call_mut(attempt.execution, instance, attempt.number) else {
            return Err(format!("{name} is performed before its beginning is durable"));
        };
        if call.stage != Stage::Written {
            return Err(format!("{name} is performed a second time"));
        }
        if call.attempt != *attempt {
            return Err(format!(
                "{name} is performed otherwise than it was written: {attempt:?} for {:?}",
                call.attempt
            ));
        }
        let order = call.order;
        let arriving = |(after_ms, outcome)| Arriving { at: now.saturating_add(after_ms), order, outcome };
        call.stage = Stage::Out(call.answer.clone().map(arriving));
        Ok(())
    }

    /// Stops a call, which responds at once. A call that does not run ignores it.
    pub(crate) fn stop(
        &mut self,
        now: u64,
        execution: ExecutionKey,
        instance: &Instance,
        number: u32,
    ) -> Result<(), String> {
        let Some(call) = self.call_mut(execution, instance, number) else {
            return Err("an unknown call is stopped".into());
        };
        let Some(order) = call.stop_order else {
            return Err(format!("`{}` is stopped before that is durable", call.attempt.step));
        };
        let is_stopped = matches!(&call.stage, Stage::Out(Some(Arriving { outcome: Outcome::Stopped(_), .. })));
        if matches!(call.stage, Stage::Out(_)) && !is_stopped {
            let outcome = Outcome::Stopped(Value::Null);
            call.stage = Stage::Out(Some(Arriving { at: now, order, outcome }));
        }
        Ok(())
    }

    /// Returns the progress of an attempt, which a recovering node reads.
    pub(crate) fn stage(&self, execution: ExecutionKey, instance: &Instance, number: u32) -> Option<&Stage> {
        let place = self.by_attempt.get(&(execution, instance.clone(), number))?;
        self.calls.get(*place).map(|call| &call.stage)
    }

    /// Returns the response that arrives next.
    pub(crate) fn first_answer(&self) -> Option<(u64, u64, usize)> {
        let arriving = self.calls.iter().enumerate().filter_map(|(place, call)| match &call.stage {
            Stage::Out(Some(arriving)) => Some((arriving.at, arriving.order, place)),
            _ => None,
        });
        arriving.min()
    }

    /// Delivers a response.
    pub(crate) fn answer(&mut self, place: usize) -> Option<(ExecutionKey, Instance, u32, Outcome)> {
        let call = self.calls.get_mut(place)?;
        match std::mem::replace(&mut call.stage, Stage::Answered) {
            Stage::Out(Some(arriving)) => {
                Some((call.attempt.execution, call.instance.clone(), call.attempt.number, arriving.outcome))
            }
            _ => None,
        }
    }

    /// Kills the calls in progress together with the node: no response arrives.
    pub(crate) fn kill(&mut self) {
        for call in &mut self.calls {
            if matches!(call.stage, Stage::Out(_)) {
                call.stage = Stage::Killed;
            }
        }
    }

    /// Returns the names of the scripts that were used.
    pub(crate) fn used(&self) -> BTreeSet<String> {
        self.used.keys().cloned().collect()
    }

    /// Returns the calls that were made, in the order of the journal.
    pub(crate) fn made(&self) -> Vec<Made> {
        let made = self.calls.iter().filter(|call| call.stage != Stage::Written);
        let show =
            |call: &Call| Made { tool: called(&call.attempt).into(), arguments: arguments(&call.attempt).clone() };
        made.map(show).collect()
    }

    fn call_mut(&mut self, execution: ExecutionKey, instance: &Instance, number: u32) -> Option<&mut Call> {
        let place = self.by_attempt.get(&(execution, instance.clone(), number))?;
        self.calls.get_mut(*place)
    }
}
