//! Triggers without I/O: schedules, webhook signatures, variable mappings and session keys.
//!
//! Every function takes the time as an argument, in milliseconds since 1970 in UTC. Nothing here reads a clock, a file
//! or the network; the only data from outside of the arguments is the compiled-in time zone data.

pub mod catch_up;
pub mod cron;
pub mod idempotency;
pub mod limits;
pub mod mapping;
pub mod schedule;
pub mod session_key;
pub mod webhook;
