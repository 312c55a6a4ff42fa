//! `mainspring show`: shows one execution with its steps and attempts.

use std::ops::Range;

use clap::Args;
use mainspring_engine::{EngineError, envelope, family::Family};
use mainspring_kernel::{
    history::{AttemptHistory, History},
    json::compact,
    time::rfc3339,
    value::Value,
};

use super::{remote, summary::Summary};
use crate::{
    cli::Global,
    exit::{Exit, Refusal},
    naming::{find, look},
    terminal::{Terminal, bold, dim, duration, say, sign},
    text::{one_line, paragraph, shown},
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
pub(crate) struct Picture {
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

pub(crate) fn show(show: &Show, global: &Global, _: &Terminal) -> Result<Exit, Refusal> {
    if let Some(client) = global.client()? {
        return remote::show(show, &client, global);
    }
    let looked = look(global)?;
    let row = find(&*looked.store, &show.id)?;
    let mut history = History::default();
    let read =
        looked.loader.frames(row.key, |state, frame| history.add(&state.plan, frame)).map_err(EngineError::from)?;
    let read = read.ok_or(EngineError::NoSuchExecution)?;
    let state = read.journal.state;
    let family = Family::of(&looked.loader, &looked.key, &state)?;
    if global.json {
        let (count, page) = (history.attempts.len(), show.page(history.attempts.len()));
        history.attempts = history.attempts.drain(page.clone()).collect();
        show.answer(envelope::of_execution(&state, &history, &family.gates), count, row.started_by());
        return Ok(Exit::Fine);
    }
    show.print(&Picture {
        name: state.plan.name.clone().unwrap_or_else(|| "workflow".into()),
        workflow_hash: state.plan.workflow_hash.prefixed(),
        began: state.start.as_ref().map(|start| (start.at, start.by.clone(), row.key.to_string())),
        parent: row.started_by(),
        quarantined: read.quarantined,
        attempts: history.attempts,
        summary: Summary::of(&state, &family),
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
        say!("{}", compact(&envelope));
    }

    /// Prints an execution as text.
    pub(super) fn print(&self, picture: &Picture) {
        say!("{}  {}", bold(&shown(&picture.name)), dim(&shown(&picture.workflow_hash)));
        if let Some((at, by, key)) = &picture.began {
            say!("{}", dim(&format!("started {} by {}, key {}", rfc3339(*at), shown(by), shown(key))));
        }
        if let Some(parent) = &picture.parent {
            say!("{}", dim(&shown(&format!("child of {parent}"))));
        }
        if let Some(reason) = &picture.quarantined {
            say!("  quarantined: {}", paragraph(reason));
        }
        let (count, page) = (picture.attempts.len(), self.page(picture.attempts.len()));
        for attempt in &picture.attempts[page.clone()] {
            show_attempt(attempt, self.verbose);
        }
        if page.len() < count {
            let (first, last) = (page.start + 1, page.end);
            let range = if page.is_empty() { "none".into() } else { format!("{first} to {last}") };
            let more = if last < count { format!("; --skip {last} continues from here") } else { String::new() };
            say!("  {}", dim(&format!("{range} of {count} attempts{more}")));
        }
        picture.summary.show();
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
    say!("  {} {}{number}{took}{words}", sign(attempt.status), shown(&attempt.step));
    for line in &attempt.log {
        let text = paragraph(line.get("text").and_then(Value::as_text).unwrap_or_default());
        let gap = if text.is_empty() { "" } else { " " };
        say!("      {}{gap}{text}", dim("│"));
    }
    if verbose {
        say!("      {} {}", dim("because"), shown(&attempt.because));
        let details = attempt.failure.as_ref().map(|failure| &failure.details);
        for (what, value) in [("input", Some(&attempt.input)), ("output", Some(&attempt.output)), ("details", details)]
        {
            if let Some(value) = value.filter(|value| **value != Value::Null) {
                say!("      {} {}", dim(what), shown(&compact(value)));
            }
        }
    }
}
