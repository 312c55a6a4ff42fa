//! `mainspring tail`: follows an execution that another process runs.

use std::time::Duration;

use clap::Args;
use mainspring_engine::{EngineError, execution_tree::ExecutionTree, progress::Events};
use mainspring_kernel::frame::Frame;

use super::remote;
use crate::output::summary::Summary;
use crate::{
    cli::Global,
    error::{self, CliError, Exit},
    output::progress::Progress,
    output::terminal::{Terminal, print_out},
    read_store::{ReadStore, block_on, find, open_read_only},
    runner::{self, Signals},
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
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Polls for a delegated execution before it counts as unknown.
const POLLS_FOR_A_START: u32 = 50;

/// Polls without a running engine before the user is told.
const POLLS_ALONE: u32 = 20;

/// Follows an execution until it has settled.
pub(crate) fn tail(tail: &Tail, global: &Global, terminal: &Terminal) -> Result<Exit, CliError> {
    if let Some(client) = global.client()? {
        return remote::tail(tail, client, global, terminal);
    }
    block_on(async {
        let mut signals = Signals::new()?;
        let mut again = tokio::time::interval(POLL_INTERVAL);
        let opened = open_read_only(global)?;
        let mut polls = 0;
        let row = loop {
            match find(&*opened.store, &tail.id) {
                Err(_) if polls < POLLS_FOR_A_START && opened.is_worked_on() => polls += 1,
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
            let state = shown.poll(&opened, row.key, global)?;
            let is_settled = runner::is_settled(state.status());
            if is_settled || tail.no_follow {
                let tree = ExecutionTree::of(&opened.loader, &opened.key, &state)?;
                let is_worked_on = opened.is_worked_on();
                if tree.is_about_to_move && is_worked_on && !tail.no_follow {
                    continue;
                }
                shown.progress.finish();
                if !global.json {
                    Summary::of(&state, &tree).show();
                }
                return Ok(error::of_execution(&state));
            }
            alone = if opened.is_worked_on() { 0 } else { alone + 1 };
            if alone > POLLS_ALONE {
                shown.progress.finish();
                let help = match opened.location.home() {
                    Some(_) => format!("`mainspring resume {}` continues", tail.id),
                    None => opened.location.help(),
                };
                terminal.note(&format!("no process runs it: {help}"));
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
    fn poll(
        &mut self,
        opened: &ReadStore,
        key: mainspring_kernel::key::ExecutionKey,
        global: &Global,
    ) -> Result<mainspring_kernel::state::State, CliError> {
        let mut frames: Vec<Frame> = Vec::new();
        let read = opened.loader.frames(key, |_, frame| frames.push(frame.clone())).map_err(EngineError::from)?;
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
                    (true, Some(event)) => print_out!("{}", mainspring_kernel::json::compact(&event)),
                    (true, None) => {}
                    (false, _) => self.progress.record(&state.plan, record, frame.now),
                }
            }
            let is_told = global.json && frame.sequence >= self.next;
            if let Some(event) = events.cancel_requested(&frame.records, frame.now).filter(|_| is_told) {
                print_out!("{}", mainspring_kernel::json::compact(&event));
            }
        }
        self.next = frames.last().map_or(0, |frame| frame.sequence + 1);
        if global.json && state.end.ended_at.is_some() {
            print_out!("{}", mainspring_kernel::json::compact(&events.finished(&state, state.now)));
        }
        Ok(state)
    }
}
