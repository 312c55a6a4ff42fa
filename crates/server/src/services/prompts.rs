//! Prompts of schedules with the target `orchestrator`: accepted in the transaction that decides the tick, sent to the
//! endpoint of the organization until it has accepted them.

pub mod orchestrators;
pub(crate) mod queue;
pub(crate) mod requests;
pub mod sender;
