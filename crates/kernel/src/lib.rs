//! What a workflow means: definitions, plans, records, decide and apply.
//!
//! Pure by absence: no std, no clock, no randomness, no I/O. Time and entropy come in as data, and whatever leaves is
//! data as well. Everything here is a function of its arguments.

#![no_std]

extern crate alloc;

pub mod apply;
pub mod cbor;
pub mod condition;
pub mod decide;
pub mod definition;
pub mod diagnostic;
pub mod document;
pub mod effect;
pub mod evaluation;
pub mod failure;
pub mod frame;
pub mod hash;
pub mod input;
pub mod instance;
pub mod journal;
pub mod json;
pub mod key;
pub mod limits;
pub mod note;
pub mod plan;
pub mod record;
pub mod reference;
pub mod script;
pub mod span;
pub mod state;
pub mod stored;
pub mod template;
pub mod time;
pub mod trace;
pub mod value;
pub mod yaml;
