//! Execution trees: the open gates of an execution and of the children that it waits for. This module reads journals
//! and changes nothing.

use mainspring_kernel::{
    decide::child_key,
    instance::Instance,
    key::ExecutionKey,
    state::{ExecutionStatus, GateState, State},
};

use crate::{
    clock::now_ms,
    error::EngineError,
    journal_loader::{LoadError, Loader},
    resume_token,
};

/// The open gates of an execution and its children.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExecutionTree {
    /// The open gates: its own in the order of the plan, then those of each child.
    pub gates: Vec<OpenGate>,
    /// True if the engine will continue without a decision: a gate has expired, or a child continues and its notice has
    /// not reached its parent.
    pub is_about_to_move: bool,
}

/// An open gate and its position in the tree.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenGate {
    /// The path from the root of this tree: `gate`, or `sub/gate` in the child of the step `sub`.
    pub path: String,
    /// The execution of the gate, which receives the decision.
    pub execution: ExecutionKey,
    /// The public id of that execution, if it is a child.
    pub child_id: Option<String>,
    /// The step instance of the gate.
    pub instance: Instance,
    /// The name of the step instance.
    pub step: String,
    /// The prompt and items of the gate.
    pub gate: GateState,
    /// The resume token of the gate.
    pub token: String,
}

impl ExecutionTree {
    /// Reads the tree below an execution with this state. The key creates the tokens.
    pub fn of(loader: &Loader, key: &[u8; 32], state: &State) -> Result<Self, EngineError> {
        let mut tree = Self::default();
        tree.add(loader, key, state, "", None)?;
        Ok(tree)
    }

    /// The gates with this path or, if there is none, those whose path ends with it.
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
            let is_held = state.open.held_children.contains(instance);
            // An unreadable child is reported by requests about that child. Other children are read anyway, and
            // this execution is notified of the quarantine.
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
            let is_active = child.status() != ExecutionStatus::WaitingApproval || read.quarantined.is_some();
            self.is_about_to_move |= is_held && is_active;
            let way = format!("{way}{}/", instance.name(&state.plan));
            let id = child.start.as_ref().map_or_else(|| child.key.to_string(), |start| start.execution_id.clone());
            self.add(loader, key, &child, &way, Some(&id))?;
        }
        Ok(())
    }
}

/// The gates of the execution itself.
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
            token: resume_token::token(key, state, instance, gate),
        }
    })
}

/// The children that open attempts wait for. A child that has not started has no journal.
fn children(state: &State) -> impl Iterator<Item = (&Instance, ExecutionKey)> {
    state.open.attempts.iter().filter_map(|instance| {
        let attempt = state.steps.get(instance)?.attempt;
        let is_child = state.started_workflow(instance).is_some();
        is_child.then(|| (instance, child_key(state, instance, attempt)))
    })
}

/// True if a gate has expired, so that the engine is about to close it.
fn is_overdue(state: &State) -> bool {
    let is_due = state.next_timer().is_some_and(|(at, _)| *at <= now_ms());
    state.status() == ExecutionStatus::WaitingApproval && is_due
}
