//! One execution as text: its attempts, its summary and its approvals.

use std::ops::Range;

use mainspring_kernel::{history::AttemptHistory, json::compact, time::rfc3339, value::Value};

use super::{
    summary::Summary,
    terminal::{bold, dim, duration, print_out, sign},
    text::{one_line, paragraph, shown},
};

/// An execution as it is displayed, of a local store or of a server.
pub(crate) struct ExecutionView {
    /// The name of the workflow.
    pub(crate) name: String,
    /// The hash of the definition that it started with: `sha256:…`.
    pub(crate) workflow_hash: String,
    /// The start time, the initiator, and the execution key (at a server the id).
    pub(crate) began: Option<(u64, String, String)>,
    /// The parent execution, if there is one.
    pub(crate) parent: Option<String>,
    /// The reason, if it is quarantined.
    pub(crate) quarantined: Option<String>,
    /// The next command, if it has not ended and no process runs it.
    pub(crate) unattended: Option<String>,
    pub(crate) attempts: Vec<AttemptHistory>,
    /// The status and the results.
    pub(crate) summary: Summary,
}

/// Selects attempts of an execution.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptPage {
    /// The number of attempts to skip.
    pub(crate) skip: usize,
    /// The maximum number of attempts.
    pub(crate) limit: Option<usize>,
}

impl AttemptPage {
    /// The selected range of `all` attempts.
    pub(crate) fn range(&self, all: usize) -> Range<usize> {
        let first = self.skip.min(all);
        first..self.limit.map_or(all, |limit| first.saturating_add(limit).min(all))
    }
}

impl ExecutionView {
    /// Prints the execution. `verbose` adds the inputs and outputs of the attempts.
    pub(crate) fn print(&self, page: AttemptPage, verbose: bool) {
        print_out!("{}  {}", bold(&shown(&self.name)), dim(&shown(&self.workflow_hash)));
        if let Some((at, by, key)) = &self.began {
            print_out!("{}", dim(&format!("started {} by {}, key {}", rfc3339(*at), shown(by), shown(key))));
        }
        if let Some(parent) = &self.parent {
            print_out!("{}", dim(&shown(&format!("child of {parent}"))));
        }
        if let Some(words) = &self.unattended {
            print_out!("  {}", paragraph(words));
        }
        if let Some(reason) = &self.quarantined {
            print_out!("  quarantined: {}", paragraph(reason));
        }
        let (count, page) = (self.attempts.len(), page.range(self.attempts.len()));
        for attempt in &self.attempts[page.clone()] {
            show_attempt(attempt, verbose);
        }
        if page.len() < count {
            let (first, last) = (page.start + 1, page.end);
            let range = if page.is_empty() { "none".into() } else { format!("{first} to {last}") };
            let more = if last < count { format!("; --skip {last} continues from here") } else { String::new() };
            print_out!("  {}", dim(&format!("{range} of {count} attempts{more}")));
        }
        self.summary.show();
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
