//! An execution together with those that it has started and waits for: the gates that are open in any of them.

use mainspring_kernel::{
    decide::child_key,
    instance::Instance,
    key::ExecutionKey,
    plan::Work,
    state::{ExecutionStatus, GateState, State},
};

use crate::{
    EngineError,
    engine::now_ms,
    load::{LoadError, Loader},
    token,
};

/// What an execution and those below it wait for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Family {
    /// The open gates: its own in the order of the plan, then those of each child.
    pub gates: Vec<OpenGate>,
    /// Whether something is about to happen although only people seem to be waited for: a gate's time is over, or a child
    /// goes on and its word for that has not reached its parent.
    pub is_about_to_move: bool,
}

/// An open gate, and where it is.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenGate {
    /// The way to it from the execution that was asked about: `gate`, or `sub/gate` in the child of the step `sub`.
    pub path: String,
    /// The execution that it belongs to, which is the one that takes the decision.
    pub execution: ExecutionKey,
    /// The name of that execution, if it is not the one that was asked about.
    pub child_id: Option<String>,
    /// Where it is there.
    pub instance: Instance,
    /// The name of that place.
    pub step: String,
    /// What it is.
    pub gate: GateState,
    /// What opens it.
    pub token: String,
}

impl Family {
    /// Reads the family of an execution that stands like this; tokens are made with the key.
    pub fn of(loader: &Loader, key: &[u8; 32], state: &State) -> Result<Self, EngineError> {
        let mut family = Self::default();
        family.add(loader, key, state, "", None)?;
        Ok(family)
    }

    /// The gates whose path is the name, or else ends with it.
    pub fn named<'a>(&'a self, name: &str) -> Vec<&'a OpenGate> {
        let exact: Vec<_> = self.gates.iter().filter(|open| open.path == name).collect();
        let is_end = |path: &str| path.strip_suffix(name).is_some_and(|way| way.ends_with('/'));
        if exact.is_empty() { self.gates.iter().filter(|open| is_end(&open.path)).collect() } else { exact }
    }

    fn add(
        &mut self,
        loader: &Loader,
        key: &[u8; 32],
        state: &State,
        way: &str,
        child_id: Option<&str>,
    ) -> Result<(), EngineError> {
        self.gates.extend(own_gates(key, state).map(|own| OpenGate {
            path: format!("{way}{}", own.step),
            child_id: child_id.map(Into::into),
            ..own
        }));
        self.is_about_to_move |= is_overdue(state);
        for (instance, child) in children(state) {
            let is_held = state.held_children.contains(instance);
            // What cannot be read is told by whoever asks for that execution; the others go on without it, and this one is told
            // that its child is quarantined.
            let read = match loader.journal(child) {
                Ok(Some(read)) => read,
                Ok(None) => continue,
                Err(LoadError::Broken(_)) => {
                    self.is_about_to_move |= is_held;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let child = read.journal.state;
            let goes_on = child.status() != ExecutionStatus::WaitingApproval || read.quarantined.is_some();
            self.is_about_to_move |= is_held && goes_on;
            let way = format!("{way}{}/", instance.name(&state.plan));
            let id = child.start.as_ref().map_or_else(|| child.key.to_string(), |start| start.execution_id.clone());
            self.add(loader, key, &child, &way, Some(&id))?;
        }
        Ok(())
    }
}

/// The gates of an execution itself.
pub fn own_gates<'a>(key: &'a [u8; 32], state: &'a State) -> impl Iterator<Item = OpenGate> + 'a {
    state.open_gates().map(|(instance, gate)| {
        let step = instance.name(&state.plan);
        OpenGate {
            path: step.clone(),
            execution: state.key,
            child_id: None,
            instance: instance.clone(),
            step,
            gate: gate.clone(),
            token: token::token(key, state, instance, gate),
        }
    })
}

/// The executions that the attempts that are out wait for. One that has not begun yet has no journal.
fn children(state: &State) -> impl Iterator<Item = (&Instance, ExecutionKey)> {
    state.open_attempts.iter().filter_map(|instance| {
        let attempt = state.steps.get(instance)?.attempt;
        let is_child = matches!(state.plan.step(instance.step).work, Work::Subworkflow { .. });
        is_child.then(|| (instance, child_key(state, instance, attempt)))
    })
}

/// Whether a gate's time is over, so that the engine is about to decide it: what it says to that is waited for.
fn is_overdue(state: &State) -> bool {
    let is_due = state.next_timer().is_some_and(|(at, _)| *at <= now_ms());
    state.status() == ExecutionStatus::WaitingApproval && is_due
}
