//! The reason for which a gate takes no decision: for people who decide too late, too early, or at another name.

use std::fmt;

use mainspring_kernel::{
    definition::nearest,
    frame::Frame,
    instance::Instance,
    plan::{Decision, Work},
    record::Record,
    state::{State, Status},
};

use crate::{error::EngineError, execution_tree::OpenGate, journal_loader::Loader};

/// Maximum number of open gates that a message names.
const LISTED_MAX: usize = 10;

/// A gate that is not open, by the name of its step instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClosedGate {
    /// A person decided; `None` if the gate expired.
    Decided(String, Decision, Option<String>),
    /// The step has ended without a decision, with this status.
    Ended(String, Status),
    /// The step has not asked yet.
    NotYet(String),
    /// The step is no approval.
    NoApproval(String),
    /// The execution has no such step; the most similar one that asks.
    Unknown(String, Option<String>),
}

impl ClosedGate {
    /// Finds the reason for the gate of a step instance; without a number for the last one of the instance.
    pub fn find(loader: &Loader, state: &State, step: &str, number: Option<u32>) -> Result<Self, EngineError> {
        let plan = &state.plan;
        let name = step.to_string();
        let asks = |step: u32| matches!(plan.step(step).work, Work::Approval(_)) || plan.step(step).guard.is_some();
        let Some(wanted) = Instance::parse(step, plan) else {
            let all = (0..plan.steps.len() as u32).filter(|step| asks(*step)).map(|step| plan.id(step));
            return Ok(Self::Unknown(name, nearest(step, all).map(Into::into)));
        };
        let mut decided = None;
        let each = |_: &State, frame: &Frame| {
            for record in &frame.records {
                match record {
                    Record::GateDecided { instance, gate, decision, by, .. }
                        if *instance == wanted && number.is_none_or(|number| number == *gate) =>
                    {
                        decided = Some((*decision, by.clone()));
                    }
                    _ => {}
                }
            }
        };
        loader.frames(state.key, each)?;
        Ok(match (decided, state.step_status(&wanted)) {
            (Some((decision, by)), _) => Self::Decided(name, decision, by),
            (None, status) if status.is_final() => Self::Ended(name, status),
            (None, _) if asks(wanted.step) => Self::NotYet(name),
            (None, _) => Self::NoApproval(name),
        })
    }

    /// Finds the reason for a resume token; `None` if it is no token of this execution.
    pub fn of_token(loader: &Loader, key: &[u8; 32], state: &State, token: &str) -> Result<Option<Self>, EngineError> {
        let Some((step, number)) = crate::resume_token::closed_gate_of(key, state, token) else { return Ok(None) };
        Self::find(loader, state, &step, Some(number)).map(Some)
    }

    /// True if the execution has or had the gate, or will have it.
    pub fn is_known(&self) -> bool {
        !matches!(self, Self::Unknown(..) | Self::NoApproval(_))
    }

    /// The reason as a constant, for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Decided(_, _, Some(_)) => "decided",
            Self::Decided(_, _, None) => "expired",
            Self::Ended(..) => "ended",
            Self::NotYet(_) => "not_yet_open",
            Self::NoApproval(_) | Self::Unknown(..) => "unknown",
        }
    }
}

impl fmt::Display for ClosedGate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let past = |decision: &Decision| match decision {
            Decision::Approve => "approved",
            Decision::Deny => "denied",
        };
        match self {
            Self::Decided(step, decision, Some(by)) => {
                write!(out, "the approval `{step}` was already decided: {} by {by}", past(decision))
            }
            Self::Decided(step, decision, None) => {
                write!(out, "the time of the approval `{step}` is over, so it was {} by itself", past(decision))
            }
            Self::Ended(step, status) => {
                write!(out, "the step `{step}` has ended without a decision: it is {}", status.name())
            }
            Self::NotYet(step) => write!(out, "the approval `{step}` is not open yet: its step has not asked so far"),
            Self::NoApproval(step) => write!(out, "the step `{step}` is no approval"),
            Self::Unknown(step, None) => write!(out, "there is no approval `{step}` in this execution"),
            Self::Unknown(step, Some(near)) => {
                write!(out, "there is no approval `{step}` in this execution: did you mean `{near}`?")
            }
        }
    }
}

/// Lists the open gates, for the end of a message.
pub fn open_now<'g>(gates: impl IntoIterator<Item = &'g OpenGate>, state: &State) -> String {
    let mut gates = gates.into_iter();
    let listed: Vec<String> = gates.by_ref().take(LISTED_MAX).map(|open| format!("`{}`", open.path)).collect();
    let more = gates.count();
    match (listed.as_slice(), more) {
        ([], _) => format!("no approval is open: the execution is {}", state.status().name()),
        (listed, 0) => format!("open now: {}", listed.join(", ")),
        (listed, more) => format!("open now: {} and {more} more", listed.join(", ")),
    }
}
