//! The signals for which a plan waits.

use alloc::{collections::BTreeSet, format, string::String, vec::Vec};

use super::{Plan, Work};
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
        Some(match nearest(name, known.iter().copied()) {
            Some(near) => format!("{no_step}: did you mean `{near}`?"),
            None if known.is_empty() => format!("{no_step}, nor for any other one"),
            None => {
                let listed: Vec<String> = known.iter().take(LISTED_MAX).map(|name| format!("`{name}`")).collect();
                let more = if known.len() > LISTED_MAX { ", …" } else { "" };
                format!("{no_step}; its steps wait for {}{more}", listed.join(", "))
            }
        })
    }
}
