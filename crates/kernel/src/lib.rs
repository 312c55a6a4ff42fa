//! What a workflow means: definitions, plans, records, decide and apply.
//!
//! Pure by absence: no std, no clock, no randomness, no I/O. Time and entropy come in as data, and whatever leaves is
//! data as well. Everything here is a function of its arguments.

#![no_std]

extern crate alloc;

pub mod effect;
pub mod failure;
pub mod hash;
pub mod key;
pub mod limits;
pub mod stored;
pub mod time;
pub mod value;
