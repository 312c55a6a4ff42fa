//! `mainspring tail`: follows an execution that another process runs.

use std::time::Duration;

use clap::Args;
use mainspring_engine::{EngineError, family::Family, progress::Events};
use mainspring_kernel::frame::Frame;

use super::{remote, summary::Summary};
use crate::{
    cli::Global,
    exit::{self, Exit, Refusal},
    naming::{Looked, block_on, find, look},
    progress::Progress,
    runner::{self, Signals},
    terminal::{Terminal, say},
};

/// Follow an execution.
#[derive(Debug, Args)]
pub(crate) struct Tail {
    /// The execution: its id, the beginning of it, or `last`
    pub(super) id: String,
    /// Show past events and return
    #[arg(long)]
    pub(super) no_follow: bool,
}

impl Tail {
    /// The flags that follow an execution until it has settled.
    pub(super) fn of(id: String) -> Self {
        Self { id, no_follow: false }
    }
}

/// The polling interval of the store.
const LOOK: Duration = Duration::from_millis(100);

/// Polls for a delegated execution before it counts as unknown.
const LOOKS_FOR_A_START: u32 = 50;

/// Polls without a running engine before the user is told.
const LOOKS_ALONE: u32 = 20;

/// Follows an execution until it has settled.
pub(crate) fn tail(tail: &Tail, global: &Global, terminal: &Terminal) -> Result<Exit, Refusal> {
    if let Some(client) = global.client()? {
        return remote::tail(tail, client, global, terminal);
    }
    block_on(async {
        let mut signals = Signals::new()?;
        let mut again = tokio::time::interval(LOOK);
        let looked = look(global)?;
        let mut looks = 0;
        let row = loop {
            match find(&*looked.store, &tail.id) {
                Err(_) if looks < LOOKS_FOR_A_START && looked.is_worked_on() => looks += 1,
                found => break found?,
            }
            again.tick().await;
        };
        let mut shown = Shown { next: 0, progress: Progress::new(*terminal) };
        let mut alone = 0;
        loop {
            tokio::select! {
                () = signals.any() => return Ok(Exit::Fine),
                _ = again.tick() => {}
            }
            let state = shown.look(&looked, row.key, global)?;
            let rests = runner::rests(state.status());
            if rests || tail.no_follow {
                let family = Family::of(&looked.loader, &looked.key, &state)?;
                let is_worked_on = looked.is_worked_on();
                if family.is_about_to_move && is_worked_on && !tail.no_follow {
                    continue;
                }
                shown.progress.finish();
                if !global.json {
                    Summary::of(&state, &family).show();
                }
                return Ok(exit::of_execution(&state));
            }
            alone = if looked.is_worked_on() { 0 } else { alone + 1 };
            if alone > LOOKS_ALONE {
                shown.progress.finish();
                let help = match looked.ground.home() {
                    Some(_) => format!("`mainspring resume {}` continues", tail.id),
                    None => looked.ground.help(),
                };
                terminal.remark(&format!("no process runs it: {help}"));
                return Ok(Exit::Fine);
            }
            if !global.json {
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
    fn look(
        &mut self,
        looked: &Looked,
        key: mainspring_kernel::key::ExecutionKey,
        global: &Global,
    ) -> Result<mainspring_kernel::state::State, Refusal> {
        let mut frames: Vec<Frame> = Vec::new();
        let read = looked.loader.frames(key, |_, frame| frames.push(frame.clone())).map_err(EngineError::from)?;
        let state = read.ok_or(EngineError::NoSuchExecution)?.journal.state;
        let id = state.start.as_ref().map(|start| start.execution_id.clone()).unwrap_or_default();
        let mut events = Events::new(&id, &state.plan);
        for frame in &frames {
            for record in &frame.records {
                let event = events.of_record(record, frame.now);
                if frame.sequence < self.next {
                    continue;
                }
                match (global.json, event) {
                    (true, Some(event)) => say!("{}", mainspring_kernel::json::compact(&event)),
                    (true, None) => {}
                    (false, _) => self.progress.record(&state.plan, record, frame.now),
                }
            }
            let is_told = global.json && frame.sequence >= self.next;
            if let Some(event) = events.cancel_requested(&frame.records, frame.now).filter(|_| is_told) {
                say!("{}", mainspring_kernel::json::compact(&event));
            }
        }
        self.next = frames.last().map_or(0, |frame| frame.sequence + 1);
        if global.json && state.ended_at.is_some() {
            say!("{}", mainspring_kernel::json::compact(&events.finished(&state, state.now)));
        }
        Ok(state)
    }
}
