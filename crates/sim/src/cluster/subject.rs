//! An author's case in the simulated cluster: the executions, the scripted outcomes of their calls, the decisions and
//! signals.

use std::{collections::BTreeMap, sync::Arc};

use mainspring_kernel::{
    effect::{Attempt, Outcome},
    key::ExecutionKey,
    plan::{Constraints, Decision, Plan},
    value::{Map, Value},
};

use crate::scenario::{At, Effects, Entry, EntryAction, Reached, called, names};

/// The case that every execution of a seed runs.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) plan: Arc<Plan>,
    pub(crate) workflows: BTreeMap<String, Arc<Plan>>,
    pub(crate) input: Value,
    pub(crate) variables: Map,
    pub(crate) bounds: Constraints,
    pub(crate) effects: Effects,
    pub(crate) inbox: Vec<Entry>,
    /// Duration of the case without faults, in virtual milliseconds.
    pub(crate) takes_ms: u64,
}

impl Subject {
    /// Returns the decision for a gate of a step, by the number of the gate. Gates beyond the case's decisions get its
    /// last one.
    pub(super) fn decision(&self, step: &str, gate: u32) -> Option<(Decision, &str)> {
        let decisions: Vec<(Decision, &str)> = self.inbox.iter().filter_map(|entry| decision_of(entry, step)).collect();
        let place = usize::try_from(gate.saturating_sub(1)).unwrap_or(usize::MAX);
        decisions.get(place).or(decisions.last()).copied()
    }

    /// Lists the signals with this name, each with its index in the inbox of the case. An execution receives each of
    /// them once.
    pub(super) fn signals(&self, name: &str) -> impl Iterator<Item = (usize, &Value)> {
        self.inbox.iter().enumerate().filter_map(move |(place, entry)| match &entry.action {
            EntryAction::Signal { name: signal, payload } if signal == name => Some((place, payload)),
            _ => None,
        })
    }
}

/// Returns the decision of an entry that applies to a gate of the step. A decision at a time applies to every open
/// gate.
fn decision_of<'e>(entry: &'e Entry, step: &str) -> Option<(Decision, &'e str)> {
    let EntryAction::Decide { decision, by } = &entry.action else { return None };
    match &entry.at {
        At::Step(Reached::Waiting | Reached::Started, waiting) if waiting != step => None,
        _ => Some((*decision, by)),
    }
}

/// The number of used outcomes, by execution and name of the script.
#[derive(Debug, Default)]
pub(super) struct UsedOutcomes(BTreeMap<(ExecutionKey, String), usize>);

impl UsedOutcomes {
    /// Returns the delay in milliseconds and the outcome of a call; `None` if it never ends by itself.
    pub(super) fn next(
        &mut self,
        subject: &Subject,
        attempt: &Attempt,
        id: &str,
    ) -> Result<Option<(u64, Outcome)>, String> {
        let found = names(attempt, id).find_map(|name| Some((name, subject.effects.get(name)?)));
        let Some((name, scripts)) = found else {
            let (step, tool) = (&attempt.step, called(attempt));
            return Err(format!("step `{step}` calls {tool:?}, and no script answers; write effects: {{{tool}: …}}"));
        };
        let place = self.0.entry((attempt.execution, name.to_owned())).or_default();
        let script = scripts.get(*place).or(scripts.last());
        *place += 1;
        match script {
            Some(script) => script.outcome(attempt).map_err(|why| format!("step `{}`: {why}", attempt.step)),
            None => Ok(None),
        }
    }
}
