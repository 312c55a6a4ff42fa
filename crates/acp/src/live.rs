//! Agents that run, each in a task of its own, also those that are held while a report becomes durable or people decide.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use mainspring_effects::{
    AttemptName, CancelHandle, CancelSignal,
    stdio::{ProcessSpec, StartProcess, Started},
};
use mainspring_kernel::{key::ExecutionKey, value::Value};
use tokio::sync::{mpsc, oneshot, watch};

use crate::{
    error::AgentError,
    limits::RUNNING_MAX,
    session::{Command, End, Event, Link, Session, Task},
};

/// The messages between an agent and its attempt: each side waits for the other one.
const CHANNEL: usize = 8;

/// The next step of an agent.
pub(crate) enum Next {
    Event(Event),
    Ended(Result<End, AgentError>),
}

/// An agent that runs. Dropping it ends its process.
pub(crate) struct LiveAgent {
    events: mpsc::Receiver<Event>,
    commands: mpsc::Sender<Command>,
    end: oneshot::Receiver<Result<End, AgentError>>,
    /// Changes to true once the end is there.
    has_ended: watch::Receiver<bool>,
    stop: CancelHandle,
}

impl LiveAgent {
    /// Starts an agent. `place` counts it until its process has ended.
    pub(crate) fn start(starter: Arc<dyn StartProcess>, spec: ProcessSpec, task: Task, place: Place) -> Self {
        let (stop, stopped) = CancelHandle::pair();
        let (event_sender, events) = mpsc::channel(CHANNEL);
        let (commands, command_receiver) = mpsc::channel(CHANNEL);
        let (ends, end) = oneshot::channel();
        let (ended, has_ended) = watch::channel(false);
        tokio::spawn(async move {
            let link = Link { events: event_sender, commands: command_receiver, stop: stopped };
            let result = run(starter, spec, task, link).await;
            drop(place);
            // The attempt may have ended.
            let _ = ends.send(result);
            ended.send_replace(true);
        });
        Self { events, commands, end, has_ended, stop }
    }

    /// Sends a message to the session. One that has ended does not read it.
    pub(crate) fn tell(&self, command: Command) {
        let _ = self.commands.try_send(command);
    }

    /// Waits for the next event or the end. After a cancellation the end comes soon.
    pub(crate) async fn next(&mut self, stop: &mut CancelSignal) -> Next {
        let killed = stop.clone();
        let mut is_stopped = false;
        loop {
            tokio::select! {
                biased;
                Some(event) = self.events.recv(), if !is_stopped => return Next::Event(event),
                end = &mut self.end => return Next::Ended(end.unwrap_or(Err(AgentError::Ended))),
                () = killed.killed() => return Next::Ended(Ok(End::Stopped(Value::Null))),
                () = stop.requested(), if !is_stopped => {
                    is_stopped = true;
                    if stop.is_leaving() { self.stop.leave() } else { self.stop.cancel() }
                }
            }
        }
    }

    /// Cancels the turn, and returns the end.
    pub(crate) async fn cancel(mut self) -> Result<End, AgentError> {
        self.stop.cancel();
        (&mut self.end).await.unwrap_or(Err(AgentError::Ended))
    }

    fn has_ended(&self) -> bool {
        *self.has_ended.borrow()
    }
}

/// Starts the process, runs the session, and ends the process.
async fn run(starter: Arc<dyn StartProcess>, spec: ProcessSpec, task: Task, mut link: Link) -> Result<End, AgentError> {
    let is_new = task.resume.is_none();
    let Started { output, input, process } = starter.start(&spec).await.map_err(AgentError::NotStarted)?;
    let mut session = Session::new(output, input, task);
    let mut result = session.run(&mut link).await;
    if is_new && !session.is_open() && matches!(result, Err(AgentError::Ended)) {
        result = Err(AgentError::EndedEarly(process.error_output().await));
    }
    process.stop().await;
    match result {
        Err(_) if link.stop.is_requested() => Ok(End::Stopped(Value::Null)),
        result => result,
    }
}

/// Counts the agents of an organization that run.
#[derive(Debug, Default)]
pub(crate) struct Places(Mutex<BTreeMap<Option<String>, usize>>);

/// An agent that counts, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    organization: Option<String>,
}

impl Places {
    fn counts(&self) -> MutexGuard<'_, BTreeMap<Option<String>, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an agent. `None` if too many of the organization run.
    pub(crate) fn take(self: &Arc<Self>, organization: Option<&str>) -> Option<Place> {
        let organization = organization.map(str::to_owned);
        let mut counts = self.counts();
        let count = counts.entry(organization.clone()).or_default();
        if *count >= RUNNING_MAX {
            return None;
        }
        *count += 1;
        Some(Place { places: self.clone(), organization })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.places.counts();
        if let Some(count) = counts.get_mut(&self.organization) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.organization);
            }
        }
    }
}

/// The name of an attempt, as a key.
type Key = (ExecutionKey, String, u32);

fn key(attempt: AttemptName<'_>) -> Key {
    (attempt.execution, attempt.step.to_owned(), attempt.number)
}

/// The agents that are held.
#[derive(Default)]
pub(crate) struct HeldAgents(Mutex<BTreeMap<Key, Held>>);

struct Held {
    agent: LiveAgent,
    /// Changes to true when the agent continues.
    taken: watch::Sender<bool>,
}

impl HeldAgents {
    fn held(&self) -> MutexGuard<'_, BTreeMap<Key, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds an agent. Each agent has a [`Place`], which bounds their number.
    pub(crate) fn hold(&self, attempt: AttemptName<'_>, agent: LiveAgent) {
        let mut held = self.held();
        // The attempts of those that have ended may have gone to other nodes.
        held.retain(|_, held| !held.agent.has_ended());
        held.insert(key(attempt), Held { agent, taken: watch::channel(false).0 });
    }

    /// Takes an agent, to continue it. `None` if this process does not hold it, or if it has ended.
    pub(crate) fn take(&self, attempt: AttemptName<'_>) -> Option<LiveAgent> {
        let Held { agent, taken } = self.held().remove(&key(attempt))?;
        taken.send_replace(true);
        (!agent.has_ended()).then_some(agent)
    }

    /// Waits until a held agent continues or ends. Returns true if it has ended. It is ended once `stop` is requested.
    pub(crate) async fn ended(&self, attempt: AttemptName<'_>, stop: &mut CancelSignal) -> bool {
        let (mut has_ended, mut taken) = {
            let held = self.held();
            let Some(held) = held.get(&key(attempt)) else { return false };
            (held.agent.has_ended.clone(), held.taken.subscribe())
        };
        tokio::select! {
            biased;
            _ = taken.wait_for(|taken| *taken) => return false,
            _ = has_ended.wait_for(|ended| *ended) => {}
            () = stop.requested() => {}
        }
        let held = self.held().remove(&key(attempt));
        held.is_some_and(|held| held.agent.has_ended())
    }

    /// Ends the agent of an attempt whose receipt is durable.
    pub(crate) fn forget(&self, attempt: AttemptName<'_>) {
        let held = self.held().remove(&key(attempt));
        drop(held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_of_an_organization_are_bounded() {
        let places = Arc::new(Places::default());
        let taken: Vec<_> = (0..RUNNING_MAX).map(|_| places.take(Some("a")).unwrap()).collect();
        assert!(places.take(Some("a")).is_none());
        assert!(places.take(Some("b")).is_some() && places.take(None).is_some());
        drop(taken);
        assert!(places.take(Some("a")).is_some());
        assert!(places.counts().is_empty());
    }
}
