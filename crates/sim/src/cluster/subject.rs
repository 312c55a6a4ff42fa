//! A case of an author as the subject of a simulated cluster: what is started, what the world answers, who decides.

use std::{collections::BTreeMap, sync::Arc};

use mainspring_kernel::{
    effect::{Attempt, Outcome},
    key::ExecutionKey,
    plan::{Constraints, Decision, Plan},
    value::{Map, Value},
};

use crate::scenario::{At, Effects, Entry, Reached, What, called, names};

/// What every execution of a seed is.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) plan: Arc<Plan>,
    pub(crate) workflows: BTreeMap<String, Arc<Plan>>,
    pub(crate) input: Value,
    pub(crate) variables: Map,
    pub(crate) bounds: Constraints,
    pub(crate) effects: Effects,
    pub(crate) inbox: Vec<Entry>,
    /// How long the case takes when nothing goes wrong, in virtual milliseconds.
    pub(crate) takes_ms: u64,
}

impl Subject {
    /// The decision for a gate of a step: what the case says, the last one for gates that it does not count.
    pub(super) fn decision(&self, step: &str, gate: u32) -> Option<(Decision, &str)> {
        let decisions: Vec<(Decision, &str)> = self.inbox.iter().filter_map(|entry| decision_of(entry, step)).collect();
        let place = usize::try_from(gate.saturating_sub(1)).unwrap_or(usize::MAX);
        decisions.get(place).or(decisions.last()).copied()
    }

    /// The signals of a name, each with its place among what arrives: an execution is sent each of them once.
    pub(super) fn signals(&self, name: &str) -> impl Iterator<Item = (usize, &Value)> {
        self.inbox.iter().enumerate().filter_map(move |(place, entry)| match &entry.what {
            What::Signal { name: signal, payload } if signal == name => Some((place, payload)),
            _ => None,
        })
    }
}

/// The decision that an entry is for a gate of a step. One that comes at a time is for whatever waits then.
fn decision_of<'e>(entry: &'e Entry, step: &str) -> Option<(Decision, &'e str)> {
    let What::Decide { decision, by } = &entry.what else { return None };
    match &entry.at {
        At::Step(Reached::Waiting | Reached::Started, waiting) if waiting != step => None,
        _ => Some((*decision, by)),
    }
}

/// Which script answers next, by execution and by the name of the script.
#[derive(Debug, Default)]
pub(super) struct Answered(BTreeMap<(ExecutionKey, String), usize>);

impl Answered {
    /// What a call brings and after how long; `None` if it never answers.
    pub(super) fn next(
        &mut self,
        subject: &Subject,
        attempt: &Attempt,
        id: &str,
    ) -> Result<Option<(u64, Outcome)>, String> {
        let Some(name) = names(attempt, id).find(|name| subject.effects.contains_key(*name)) else {
            let (step, tool) = (&attempt.step, called(attempt));
            return Err(format!("step `{step}` calls {tool:?}, and no script answers; write effects: {{{tool}: …}}"));
        };
        let scripts = &subject.effects[name];
        let place = self.0.entry((attempt.execution, name.to_owned())).or_default();
        let script = scripts.get(*place).or(scripts.last());
        *place += 1;
        match script {
            Some(script) => script.outcome(attempt).map_err(|why| format!("step `{}`: {why}", attempt.step)),
            None => Ok(None),
        }
    }
}
