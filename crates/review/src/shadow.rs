//! Shadow runs: recorded executions, replayed with another plan.
//!
//! The kernel decides the new plan as it would decide a new execution. A call gets the recorded answer of the same step,
//! effect, parameters and attempt, after the recorded time; nothing is performed. A call without such an answer stays open: it
//! is the *horizon* of the replay. The replay continues with steps that do not need that answer, and ends where the outcome
//! would depend on it: at a timeout of the open call, at the deadline, or when nothing else is left.
//!
//! Everything here is a function of its arguments. Functions and schemas of the new plan are evaluated by a callback.

mod calls;
mod comparison;
mod recording;
mod replay;
mod report;
mod selection;
mod trail;

pub use comparison::{Difference, DifferenceKind};
pub use recording::{Recorder, Recording, Unusable};
pub use replay::{Change, Evaluate, Horizon, HorizonReason, Replay, Stop, replay};
pub use report::{ExecutionReport, Grade, ShadowReport, compare};
pub use selection::{Candidate, select};
pub use trail::{End, StepTrail, Trail};
