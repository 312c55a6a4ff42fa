//! Calls that are in progress, and those that are held open while people fill in a form.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use mainspring_effects::{AttemptName, CancelHandle, CancelSignal};
use mainspring_kernel::{effect::Outcome, hash::Hash, key::ExecutionKey, value::Value};
use rmcp::model::ElicitResult;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::timeout,
};

use crate::{
    connection::{Answer, Call, Given},
    forms::{self, AskedForm},
    limits::{HELD_CALLS_MAX, HOLD_TIMEOUT},
    pool::Lease,
};

/// A call with the values that it needs for as long as it lasts.
pub(crate) struct OwnedCall {
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    pub(crate) intent: Hash,
    pub(crate) step: String,
    pub(crate) given: Given,
}

/// The next event of a call.
pub(crate) enum Next {
    /// It has ended, or continues in another form.
    Answered(Answer),
    /// It asks for a form: `{message, form}`.
    Asked(Value),
}

/// A call that runs in a task of its own, so that it continues while its attempt waits for a person. Dropping it cancels the
/// call.
pub(crate) struct LiveCall {
    connection: Arc<Lease>,
    tool: String,
    answer: oneshot::Receiver<Answer>,
    /// Changes to true once the answer is there.
    has_ended: watch::Receiver<bool>,
    asked: mpsc::Receiver<AskedForm>,
    reply: Option<oneshot::Sender<ElicitResult>>,
    stop: CancelHandle,
}

impl LiveCall {
    /// Sends a call. `can_ask` is true if people can be asked for forms.
    pub(crate) fn start(connection: Lease, call: OwnedCall, can_ask: bool) -> Self {
        let (stop, mut stopped) = CancelHandle::pair();
        let (desk, asked) = forms::desk();
        let (answers, answer) = oneshot::channel();
        let (ended, has_ended) = watch::channel(false);
        let connection = Arc::new(connection);
        let (used, tool_name) = (connection.clone(), call.tool.clone());
        tokio::spawn(async move {
            let OwnedCall { tool, arguments, intent, step, given } = call;
            let call = Call { tool: &tool, arguments: &arguments, intent, step: &step };
            let desk = can_ask.then_some(&desk);
            let answer = used.call(call, given, desk, &mut stopped).await;
            let answer = answer.unwrap_or_else(|error| Answer::Ended(Outcome::Failed(error.to_failure(&step))));
            // A connection whose calls have all been answered is unused, and may be closed.
            drop(used);
            // The attempt may have ended.
            let _ = answers.send(answer);
            ended.send_replace(true);
        });
        Self { connection, tool: tool_name, answer, has_ended, asked, reply: None, stop }
    }

    pub(crate) fn connection(&self) -> &Lease {
        &self.connection
    }

    pub(crate) fn tool(&self) -> &str {
        &self.tool
    }

    /// Gives the server the answer to its last form.
    pub(crate) fn give(&mut self, answer: &Value) {
        if let Some(reply) = self.reply.take() {
            // The server may have withdrawn its request.
            let _ = reply.send(forms::result_of(answer));
        }
    }

    /// Cancels the call, and returns its answer if there is one. The server is told that the people canceled its form.
    pub(crate) async fn end(mut self) -> Option<(Self, Answer)> {
        self.reply = None;
        self.stop.cancel();
        match (&mut self.answer).await {
            Ok(answer) => Some((self, answer)),
            Err(_) => None,
        }
    }

    /// Waits for the next form or for the end. After a cancellation the end comes soon.
    pub(crate) async fn next(&mut self, stop: &mut CancelSignal) -> Next {
        let mut is_stopped = false;
        loop {
            tokio::select! {
                biased;
                answer = &mut self.answer => return Next::Answered(answer.unwrap_or(Answer::Ended(Outcome::Interrupted))),
                Some(AskedForm { form, reply }) = self.asked.recv(), if !is_stopped => {
                    if !reply.is_closed() {
                        self.reply = Some(reply);
                        return Next::Asked(form);
                    }
                }
                () = stop.requested(), if !is_stopped => {
                    is_stopped = true;
                    self.stop.cancel();
                }
            }
        }
    }
}

impl Drop for LiveCall {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The name of an attempt, as a key.
type Key = (ExecutionKey, String, u32);

fn key(attempt: AttemptName<'_>) -> Key {
    (attempt.execution, attempt.step.to_owned(), attempt.number)
}

/// The calls that are held open.
#[derive(Default)]
pub(crate) struct HeldCalls(Mutex<State>);

#[derive(Default)]
struct State {
    held: BTreeMap<Key, Held>,
    /// The outcomes of calls that ended while they were held, until their receipts are durable.
    ends: BTreeMap<Key, Outcome>,
}

struct Held {
    organization: Option<String>,
    call: LiveCall,
    /// Changes to true when the call continues.
    taken: watch::Sender<bool>,
}

/// The call of an attempt that a person has answered.
pub(crate) enum Taken {
    /// It is still open.
    Open(LiveCall),
    /// It has ended by itself.
    Ended(Outcome),
}

impl HeldCalls {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds a call that has asked for a form. Returns the call if too many are held.
    pub(crate) fn hold(
        &self,
        attempt: AttemptName<'_>,
        organization: Option<&str>,
        call: LiveCall,
    ) -> Result<(), Box<LiveCall>> {
        let mut state = self.state();
        let count = state.held.values().filter(|held| held.organization.as_deref() == organization).count();
        if count >= HELD_CALLS_MAX {
            return Err(Box::new(call));
        }
        let (taken, _) = watch::channel(false);
        state.held.insert(key(attempt), Held { organization: organization.map(Into::into), call, taken });
        Ok(())
    }

    /// Takes a call, to continue it. `None` if this process does not hold it.
    pub(crate) fn take(&self, attempt: AttemptName<'_>) -> Option<Taken> {
        let mut state = self.state();
        if let Some(outcome) = state.ends.get(&key(attempt)) {
            return Some(Taken::Ended(outcome.clone()));
        }
        let Held { call, taken, .. } = state.held.remove(&key(attempt))?;
        taken.send_replace(true);
        Some(Taken::Open(call))
    }

    /// Waits until a held call continues or ends by itself, and returns its outcome if it has ended. The call is canceled
    /// once `stop` is requested or the time to hold it is over.
    pub(crate) async fn ended(
        &self,
        attempt: AttemptName<'_>,
        stop: &mut CancelSignal,
        outcome_of: impl FnOnce(&LiveCall, Answer) -> Outcome,
    ) -> Option<Outcome> {
        let (mut has_ended, mut taken) = {
            let state = self.state();
            let held = state.held.get(&key(attempt))?;
            (held.call.has_ended.clone(), held.taken.subscribe())
        };
        tokio::select! {
            biased;
            _ = taken.wait_for(|taken| *taken) => return None,
            _ = timeout(HOLD_TIMEOUT, has_ended.wait_for(|ended| *ended)) => {}
            () = stop.requested() => {}
        }
        let mut state = self.state();
        // Without an answer, the end of the value cancels the call.
        let mut call = state.held.remove(&key(attempt))?.call;
        let outcome = call.answer.try_recv().ok().map(|answer| outcome_of(&call, answer))?;
        state.ends.insert(key(attempt), outcome.clone());
        Some(outcome)
    }

    /// Forgets an attempt whose receipt is durable. A call that is still open is canceled.
    pub(crate) fn forget(&self, attempt: AttemptName<'_>) {
        let mut state = self.state();
        state.ends.remove(&key(attempt));
        let held = state.held.remove(&key(attempt));
        drop(state);
        drop(held);
    }
}
