//! The world outside: calls, their scripted answers, and what becomes of both when a node dies.
//!
//! The world learns of a call when the frame that begins its attempt is durable, and holds whoever performs it to that:
//! a call nobody has written down, a second one of the same attempt, or another one than was written is a fault of ours.

use std::collections::{BTreeMap, BTreeSet};

use mainspring_kernel::{
    effect::{Attempt, Outcome},
    instance::Instance,
    key::ExecutionKey,
    value::Value,
};

use crate::scenario::{Effects, arguments, called, names};

/// Everything that was ever called, in the order of the journal.
#[derive(Debug)]
pub(crate) struct World {
    scripts: Effects,
    /// Calls so far, by the name of their script.
    used: BTreeMap<String, usize>,
    calls: Vec<Call>,
    by_attempt: BTreeMap<(ExecutionKey, Instance, u32), usize>,
    /// One counter for everything that waits for its time: what came about first arrives first.
    orders: u64,
}

/// A call.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) instance: Instance,
    pub(crate) attempt: Attempt,
    answer: Option<(u64, Outcome)>,
    order: u64,
    /// Where the answer of a stop stands among what came about; set when the stop was written down.
    stop_order: Option<u64>,
    stage: Stage,
}

/// Where a call is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Stage {
    /// Written down, and not made yet.
    Written,
    /// Made. Its answer arrives at a time, or never.
    Out(Option<Arriving>),
    /// Made and answered.
    Answered,
    /// Made, and killed with its node.
    Killed,
}

/// An answer on its way.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Arriving {
    pub(crate) at: u64,
    pub(crate) order: u64,
    pub(crate) outcome: Outcome,
}

/// A call as it is shown and compared.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Made {
    pub(crate) tool: String,
    pub(crate) arguments: Value,
}

impl World {
    pub(crate) fn new(scripts: Effects) -> Self {
        Self { scripts, used: BTreeMap::new(), calls: Vec::new(), by_attempt: BTreeMap::new(), orders: 0 }
    }

    pub(crate) fn next_order(&mut self) -> u64 {
        self.orders += 1;
        self.orders
    }

    /// An attempt of a step has begun: it is durable. Its answer is decided now, so that nothing depends on when it is
    /// performed.
    pub(crate) fn expect(&mut self, instance: &Instance, id: &str, attempt: Attempt) -> Result<(), String> {
        let name = names(&attempt, id).find(|name| self.scripts.contains_key(*name));
        let Some(name) = name.map(String::from) else {
            let (step, tool) = (&attempt.step, called(&attempt));
            return Err(format!("step `{step}` calls {tool:?}, and no script answers; write effects: {{{tool}: …}}"));
        };
        let place = self.used.entry(name.clone()).or_default();
        let scripts = &self.scripts[&name];
        let script = scripts.get(*place).or(scripts.last());
        *place += 1;
        let answer = match script {
            Some(script) => script.outcome(&attempt).map_err(|why| format!("step `{}`: {why}", attempt.step))?,
            None => None,
        };
        let key = (attempt.execution, instance.clone(), attempt.number);
        let order = self.next_order();
        let instance = instance.clone();
        self.calls.push(Call { instance, attempt, answer, order, stop_order: None, stage: Stage::Written });
        match self.by_attempt.insert(key, self.calls.len() - 1) {
            None => Ok(()),
            Some(_) => Err("an attempt began twice".into()),
        }
    }

    /// A stop is durable.
    pub(crate) fn expect_stop(&mut self, execution: ExecutionKey, instance: &Instance, number: u32) {
        let order = self.next_order();
        if let Some(call) = self.call_mut(execution, instance, number) {
            call.stop_order.get_or_insert(order);
        }
    }

    /// A node makes a call.
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

    /// A node asks a call to stop: it answers at once that it has. Whoever does not run any more does not hear it.
    pub(crate) fn stop(
        &mut self,
        now: u64,
        execution: ExecutionKey,
        instance: &Instance,
        number: u32,
    ) -> Result<(), String> {
        let Some(call) = self.call_mut(execution, instance, number) else {
            return Err("a call is stopped that nobody knows of".into());
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

    /// What a node that comes back finds of an attempt.
    pub(crate) fn stage(&self, execution: ExecutionKey, instance: &Instance, number: u32) -> Option<&Stage> {
        let place = self.by_attempt.get(&(execution, instance.clone(), number))?;
        self.calls.get(*place).map(|call| &call.stage)
    }

    /// The answer that arrives first.
    pub(crate) fn first_answer(&self) -> Option<(u64, u64, usize)> {
        let arriving = self.calls.iter().enumerate().filter_map(|(place, call)| match &call.stage {
            Stage::Out(Some(arriving)) => Some((arriving.at, arriving.order, place)),
            _ => None,
        });
        arriving.min()
    }

    /// Takes an answer off its way.
    pub(crate) fn answer(&mut self, place: usize) -> Option<(ExecutionKey, Instance, u32, Outcome)> {
        let call = self.calls.get_mut(place)?;
        match std::mem::replace(&mut call.stage, Stage::Answered) {
            Stage::Out(Some(arriving)) => {
                Some((call.attempt.execution, call.instance.clone(), call.attempt.number, arriving.outcome))
            }
            _ => None,
        }
    }

    /// The node dies with the work that is out: no answer comes of it any more.
    pub(crate) fn kill(&mut self) {
        for call in &mut self.calls {
            if matches!(call.stage, Stage::Out(_)) {
                call.stage = Stage::Killed;
            }
        }
    }

    /// The names of the scripts that were called for.
    pub(crate) fn used(&self) -> BTreeSet<String> {
        self.used.keys().cloned().collect()
    }

    /// The calls that were made, in the order of the journal.
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
