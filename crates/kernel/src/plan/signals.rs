//! The signals for which a plan waits.

use alloc::{collections::BTreeSet, format, string::String, vec::Vec};

use super::{Loop, Over, Plan, Work};
use crate::definition::nearest;

/// Maximum number of names in a message.
const LISTED_MAX: usize = 10;

impl Plan {
    /// Returns the names of the signals for which steps wait.
    pub fn signals(&self) -> BTreeSet<&str> {
        let names = self.steps.iter().filter_map(|step| match &step.work {
            Work::Signal { name } => Some(name.as_str()),
            _ => None,
        });
        names.collect()
    }

    /// Returns the reason for which no step ever waits for a signal of this name; `None` if one does. A signal may arrive
    /// before its step.
    pub fn refused_signal(&self, name: &str) -> Option<String> {
        let known = self.signals();
        if known.contains(name) {
            return None;
        }
        let no_step = format!("no step of this execution waits for the signal `{name}`");
        if let Some(near) = nearest(name, known.iter().copied()) {
            return Some(format!("{no_step}: did you mean `{near}`?"));
        }
        let others = match known.is_empty() {
            true => format!("{no_step}, nor for any other one"),
            false => {
                let listed: Vec<String> = known.iter().take(LISTED_MAX).map(|name| format!("`{name}`")).collect();
                let more = if known.len() > LISTED_MAX { ", …" } else { "" };
                format!("{no_step}; its steps wait for {}{more}", listed.join(", "))
            }
        };
        Some(match self.starts_workflows() {
            true => format!("{others}. Send a signal for a workflow that it starts to the id of the child"),
            false => others,
        })
    }

    /// True if a step starts other workflows, itself or by the calls of a model.
    fn starts_workflows(&self) -> bool {
        self.steps.iter().any(|step| match &step.work {
            Work::Subworkflow { .. } => true,
            Work::Loop(Loop { over: Over::Turns(agent), .. }) => agent.workflows().next().is_some(),
            _ => false,
        })
    }
}
