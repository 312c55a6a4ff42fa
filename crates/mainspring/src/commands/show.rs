//! `mainspring show`: shows one execution with its steps and attempts.

use std::ops::Range;

use clap::Args;
use mainspring_engine::{EngineError, envelope, execution_tree::ExecutionTree};
use mainspring_kernel::{
    history::{AttemptHistory, History},
    json::compact,
    time::rfc3339,
    value::Value,
};

use super::remote;
use crate::output::summary::Summary;
use crate::{
    cli::Global,
    error::{CliError, Exit},
    output::terminal::{Terminal, bold, dim, duration, print_out, sign},
    output::text::{one_line, paragraph, shown},
    read_store::{find, open_read_only},
};

/// Show an execution.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The execution: its id, the beginning of it, or `last`
    pub(super) id: String,
    /// Include the resolved input and the output of every attempt
    #[arg(long, short)]
    verbose: bool,
    /// Skip this many attempts
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: usize,
    /// At most this many attempts
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

/// An execution as it is displayed, of a local store or of a server.
pub(crate) struct ExecutionView {
    /// The name of the workflow.
    pub(crate) name: String,
    /// The hash of the definition that it started with: `sha256:…`.
    pub(crate) workflow_hash: String,
    /// The start time, the initiator and the execution key.
    pub(crate) began: Option<(u64, String, String)>,
    /// The parent execution, if there is one.
    pub(crate) parent: Option<String>,
    /// The reason, if it is quarantined.
    pub(crate) quarantined: Option<String>,
    pub(crate) attempts: Vec<AttemptHistory>,
    /// The status and the results.
    pub(crate) summary: Summary,
}

pub(crate) fn show(show: &Show, global: &Global, _: &Terminal) -> Result<Exit, CliError> {
    if let Some(client) = global.client()? {
        return remote::show(show, &client, global);
    }
    let opened = open_read_only(global)?;
    let row = find(&*opened.store, &show.id)?;
    let mut history = History::default();
    let read =
        opened.loader.frames(row.key, |state, frame| history.add(&state.plan, frame)).map_err(EngineError::from)?;
    let read = read.ok_or(EngineError::NoSuchExecution)?;
    let state = read.journal.state;
    let tree = ExecutionTree::of(&opened.loader, &opened.key, &state)?;
    if global.json {
        let (count, page) = (history.attempts.len(), show.page(history.attempts.len()));
        history.attempts = history.attempts.drain(page.clone()).collect();
        show.answer(envelope::of_execution(&state, &history, &tree.gates), count, row.started_by());
        return Ok(Exit::Fine);
    }
    show.print(&ExecutionView {
        name: state.plan.name.clone().unwrap_or_else(|| "workflow".into()),
        workflow_hash: state.plan.workflow_hash.prefixed(),
        began: state.start.as_ref().map(|start| (start.at, start.by.clone(), row.key.to_string())),
        parent: row.started_by(),
        quarantined: read.quarantined,
        attempts: history.attempts,
        summary: Summary::of(&state, &tree),
    });
    Ok(Exit::Fine)
}

impl Show {
    /// The range of attempts that the flags select.
    pub(super) fn page(&self, all: usize) -> Range<usize> {
        let first = self.skip.min(all);
        first..self.limit.map_or(all, |limit| first.saturating_add(limit).min(all))
    }

    /// Prints an envelope with one page of `count` attempts, and the parent execution.
    pub(super) fn answer(&self, mut envelope: Value, count: usize, parent: Option<String>) {
        if let (Value::Map(map), Some(parent)) = (&mut envelope, parent) {
            map.insert("parentExecutionId".into(), parent.into());
        }
        if let (Value::Map(map), true) = (&mut envelope, self.page(count).len() < count) {
            map.insert("stepCount".into(), (count as u64).into());
        }
        print_out!("{}", compact(&envelope));
    }

    /// Prints an execution as text.
    pub(super) fn print(&self, view: &ExecutionView) {
        print_out!("{}  {}", bold(&shown(&view.name)), dim(&shown(&view.workflow_hash)));
        if let Some((at, by, key)) = &view.began {
            print_out!("{}", dim(&format!("started {} by {}, key {}", rfc3339(*at), shown(by), shown(key))));
        }
        if let Some(parent) = &view.parent {
            print_out!("{}", dim(&shown(&format!("child of {parent}"))));
        }
        if let Some(reason) = &view.quarantined {
            print_out!("  quarantined: {}", paragraph(reason));
        }
        let (count, page) = (view.attempts.len(), self.page(view.attempts.len()));
        for attempt in &view.attempts[page.clone()] {
            show_attempt(attempt, self.verbose);
        }
        if page.len() < count {
            let (first, last) = (page.start + 1, page.end);
            let range = if page.is_empty() { "none".into() } else { format!("{first} to {last}") };
            let more = if last < count { format!("; --skip {last} continues from here") } else { String::new() };
            print_out!("  {}", dim(&format!("{range} of {count} attempts{more}")));
        }
        view.summary.show();
    }
}

fn show_attempt(attempt: &AttemptHistory, verbose: bool) {
    let number = if attempt.attempt > 1 { format!(" #{}", attempt.attempt) } else { String::new() };
    let took = attempt
        .ended_at
        .map(|at| dim(&format!("  {}", duration(at.saturating_sub(attempt.started_at)))))
        .unwrap_or_default();
    let runs = if attempt.ended_at.is_some() { "ran" } else { "runs" };
    let child = attempt.child.map(|child| format!("{runs} {child}"));
    let mut words: Vec<String> = child.into_iter().collect();
    words.extend(attempt.failure.iter().map(|failure| format!("{}: {}", failure.code, failure.message)));
    words.extend(attempt.note.clone());
    let words = one_line(&words.join("; "));
    let words = if words.is_empty() { words } else { format!("  {words}") };
    print_out!("  {} {}{number}{took}{words}", sign(attempt.status), shown(&attempt.step));
    for line in &attempt.log {
        let text = paragraph(line.get("text").and_then(Value::as_text).unwrap_or_default());
        let gap = if text.is_empty() { "" } else { " " };
        print_out!("      {}{gap}{text}", dim("│"));
    }
    if verbose {
        print_out!("      {} {}", dim("because"), shown(&attempt.because));
        let details = attempt.failure.as_ref().map(|failure| &failure.details);
        for (what, value) in [("input", Some(&attempt.input)), ("output", Some(&attempt.output)), ("details", details)]
        {
            if let Some(value) = value.filter(|value| **value != Value::Null) {
                print_out!("      {} {}", dim(what), shown(&compact(value)));
            }
        }
    }
}
