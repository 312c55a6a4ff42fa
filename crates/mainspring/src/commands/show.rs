//! `mainspring show`: one execution, step by step and attempt by attempt.

use std::ops::Range;

use clap::Args;
use mainspring_engine::{EngineError, envelope, family::Family};
use mainspring_kernel::{
    json::compact,
    time::rfc3339,
    trace::{AttemptTrace, Trace},
    value::Value,
};

use super::summary::Summary;
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
    /// The execution: its name, the beginning of it, or `last`
    id: String,
    /// With the resolved input and the output of every attempt
    #[arg(long, short)]
    verbose: bool,
    /// Without this many attempts at the beginning
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: usize,
    /// At most this many attempts
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

impl Show {
    /// The attempts that are asked for, of all.
    fn page(&self, all: usize) -> Range<usize> {
        let first = self.skip.min(all);
        first..self.limit.map_or(all, |limit| first.saturating_add(limit).min(all))
    }
}

/// Shows an execution.
pub(crate) fn show(show: &Show, global: &Global, _: &Terminal) -> Result<Exit, Refusal> {
    let looked = look(global)?;
    let row = find(&*looked.store, &show.id)?;
    let mut trace = Trace::default();
    let read =
        looked.loader.frames(row.key, |state, frame| trace.add(&state.plan, frame)).map_err(EngineError::from)?;
    let read = read.ok_or(EngineError::NoSuchExecution)?;
    let state = read.journal.state;
    let family = Family::of(&looked.loader, &looked.key, &state)?;
    let (count, page) = (trace.attempts.len(), show.page(trace.attempts.len()));
    trace.attempts = trace.attempts.drain(page.clone()).collect();
    if global.json {
        let mut envelope = envelope::of_execution(&state, &trace, &family.gates);
        if let (Value::Map(map), true) = (&mut envelope, page.len() < count) {
            map.insert("stepCount".into(), (count as u64).into());
        }
        say!("{}", compact(&envelope));
        return Ok(Exit::Fine);
    }
    let name = state.plan.name.as_deref().unwrap_or("workflow");
    say!("{}  {}", bold(&shown(name)), dim(&state.plan.workflow_hash.prefixed()));
    if let Some(start) = &state.start {
        let by = shown(&start.by);
        say!("{}", dim(&format!("started {} by {by}, key {}", rfc3339(start.at), row.key)));
    }
    if let Some(reason) = read.quarantined {
        say!("  set aside: {}", paragraph(&reason));
    }
    for attempt in &trace.attempts {
        show_attempt(attempt, show.verbose);
    }
    if page.len() < count {
        let (first, last) = (page.start + 1, page.end);
        let range = if page.is_empty() { "none".into() } else { format!("{first} to {last}") };
        let more = if last < count { format!("; --skip {last} goes on from here") } else { String::new() };
        say!("  {}", dim(&format!("{range} of {count} attempts{more}")));
    }
    Summary::of(&state, &family).show();
    Ok(Exit::Fine)
}

fn show_attempt(attempt: &AttemptTrace, verbose: bool) {
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
