//! Follows an execution of a store that another process or node runs.

use std::{sync::Arc, time::Duration};

use mainspring_engine::{EngineError, execution_tree::ExecutionTree, progress::Events};
use mainspring_kernel::{frame::Frame, json::compact, key::ExecutionKey, plan::Plan, state::State};

use super::read_store::{ReadStore, find, open_read_only};
use crate::{
    context::{Context, block_on},
    error::{self, CliError, Exit},
    output::{progress::Progress, summary::Summary, terminal::print_out},
    runner,
};

/// The polling interval of the store.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Polls for a delegated execution before it counts as unknown.
const POLLS_FOR_A_START: u32 = 50;

/// Polls without a running engine before a message is printed.
const POLLS_ALONE: u32 = 20;

/// Follows an execution until it has settled.
pub(super) fn tail(name: &str, is_past_only: bool, context: &Context) -> Result<Exit, CliError> {
    block_on(async {
        context.signals.install()?;
        let mut again = tokio::time::interval(POLL_INTERVAL);
        let read = open_read_only(&context.global)?;
        let mut polls = 0;
        let row = loop {
            match find(&*read.store, name) {
                Err(_) if polls < POLLS_FOR_A_START && read.has_engine() => polls += 1,
                found => break found?,
            }
            again.tick().await;
        };
        let mut shown = Shown { next: 0, progress: Progress::new(context.terminal) };
        let mut alone = 0;
        loop {
            tokio::select! {
                () = context.signals.any() => return Ok(Exit::Fine),
                _ = again.tick() => {}
            }
            let state = shown.poll(&read, row.key, context)?;
            let is_settled = runner::is_settled(state.status());
            if is_settled || is_past_only {
                let tree = ExecutionTree::of(&read.loader, &read.key, &state)?;
                let has_engine = read.has_engine();
                if tree.is_about_to_move && has_engine && !is_past_only {
                    continue;
                }
                shown.progress.finish();
                if !context.global.json {
                    Summary::of(&state, &tree).show();
                }
                return Ok(error::of_execution(&state));
            }
            alone = if read.has_engine() { 0 } else { alone + 1 };
            if alone > POLLS_ALONE {
                shown.progress.finish();
                context.terminal.note(&read.unattended(name));
                return Ok(Exit::Fine);
            }
            if !context.global.json {
                shown.progress.tick();
            }
        }
    })
}

struct Shown {
    next: u64,
    progress: Progress,
}

impl Shown {
    fn poll(&mut self, read: &ReadStore, key: ExecutionKey, context: &Context) -> Result<State, CliError> {
        let mut frames: Vec<(Frame, Arc<Plan>)> = Vec::new();
        let read = read
            .loader
            .frames(key, |state, frame| frames.push((frame.clone(), state.plan.clone())))
            .map_err(EngineError::from)?;
        let state = read.ok_or(EngineError::NoSuchExecution)?.journal.state;
        let id = state.start.as_ref().map(|start| start.execution_id.clone()).unwrap_or_default();
        let mut events = Events::new(&id);
        for (frame, plan) in &frames {
            for record in &frame.records {
                let event = events.of_record(plan, record, frame.now);
                if frame.sequence < self.next {
                    continue;
                }
                match (context.global.json, event) {
                    (true, Some(event)) => print_out!("{}", compact(&event)),
                    (true, None) => {}
                    (false, _) => self.progress.record(plan, record, frame.now),
                }
            }
            let is_told = context.global.json && frame.sequence >= self.next;
            if let Some(event) = events.cancel_requested(&frame.records, frame.now).filter(|_| is_told) {
                print_out!("{}", compact(&event));
            }
        }
        self.next = frames.last().map_or(0, |(frame, _)| frame.sequence + 1);
        if context.global.json && state.end.ended_at.is_some() {
            print_out!("{}", compact(&events.finished(&state, state.now)));
        }
        Ok(state)
    }
}
