//! The pure core of the engine: the workflow language, its compiler, and the deterministic state machine that executes
//! plans.
//!
//! The crate has no std, no clock, no randomness and no I/O. Time and entropy are passed in as data, and effects are
//! returned as data for a caller to perform, so every function depends on its arguments alone. Storing journals,
//! running effects and keeping leases belong to the crates above.

#![no_std]

extern crate alloc;

pub mod agent;
pub mod apply;
pub mod budget;
pub mod cbor;
pub mod condition;
pub mod decide;
mod decide_version;
pub mod definition;
pub mod diagnostic;
pub mod document;
pub mod effect;
pub mod effect_policy;
pub mod error_codes;
pub mod evaluation;
pub mod failure;
pub mod fix;
pub mod flow;
pub mod form;
pub mod frame;
pub mod hash;
pub mod history;
pub mod input;
pub mod instance;
pub mod journal;
pub mod json;
pub mod key;
pub mod label;
pub mod leases;
pub mod limits;
pub mod migration;
pub mod note;
pub mod payload;
pub mod plan;
pub mod receipt;
pub mod record;
pub mod recording;
pub mod reference;
pub mod script;
pub mod secret;
pub mod state;
pub mod stored_frame;
pub mod template;
pub mod time;
pub mod trace_context;
pub mod value;
mod value_size;
pub mod yaml;
