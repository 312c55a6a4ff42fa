//! Letters: how a process that does not hold the folder reaches the executions in it.

use std::{os::unix::net::UnixDatagram, sync::Arc};

use mainspring_kernel::{input::Input, key::ExecutionKey, plan::Plan};
use mainspring_store::{Letter, Store, StoredPlan};

use crate::{
    EngineError,
    engine::{new_key, now_ms},
    home::Home,
    request::{PARTITION, Request, row},
    shard::{Event, Queued, Submission},
};

/// Posts an input to an execution and rings the bell of whoever runs it. `id` makes a repeated letter the same letter.
pub fn post(
    store: &dyn Store,
    home: &Home,
    execution: ExecutionKey,
    id: String,
    input: &Input,
) -> Result<(), EngineError> {
    let letter = Letter { execution, partition: PARTITION, id, body: input.encode(), posted_at: now_ms() };
    store.post(&letter, &[])?;
    ring(home);
    Ok(())
}

/// Posts the start of an execution; whoever runs the folder begins it. One of this name that is there already is the one.
pub fn post_start(store: &dyn Store, home: &Home, request: Request) -> Result<ExecutionKey, EngineError> {
    if let Some(id) = &request.execution_id
        && let Some(row) = store.execution_by_id(id)?
    {
        return Ok(row.key);
    }
    let now = now_ms();
    let execution = new_key(now)?;
    let plans = request.stored_plans();
    let start = request.start(execution);
    let body = Input::Start(Box::new(start)).encode();
    let letter = Letter { execution, partition: PARTITION, id: "start".into(), body, posted_at: now };
    store.post(&letter, &plans)?;
    ring(home);
    Ok(execution)
}

/// Whoever holds the folder looks at its inbox anyway: a bell that is not heard only takes longer.
fn ring(home: &Home) {
    if let Ok(socket) = UnixDatagram::unbound() {
        let _ = socket.send_to(&[1], home.bell());
    }
}

/// What a letter is to a shard; why not, if it cannot be read.
pub fn event_of(store: &dyn Store, letter: Letter) -> Result<Event, String> {
    let unreadable = |why: String| format!("the letter `{}` cannot be read: {why}", letter.id);
    let input = Input::decode(&letter.body).map_err(|error| unreadable(error.to_string()))?;
    let Input::Start(start) = input else {
        let queued = Queued { input, letter: Some(letter.id), ticket: None };
        return Ok(Event::Take(letter.execution, queued));
    };
    let bytes = store.plan(start.plan_hash).map_err(|error| unreadable(error.to_string()))?;
    let bytes = bytes.ok_or_else(|| unreadable("its plan is not stored".into()))?;
    let plan = Arc::new(Plan::decode(&bytes).map_err(|error| unreadable(error.to_string()))?);
    let row = row(letter.execution, &start, &plan, letter.posted_at);
    let stored_plans = vec![StoredPlan { hash: start.plan_hash, bytes }];
    let (execution, letter) = (letter.execution, Some(letter.id));
    Ok(Event::Submit(Box::new(Submission { execution, plan, stored_plans, start, row, letter, ticket: None })))
}
