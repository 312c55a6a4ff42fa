//! Stored bytes, under libFuzzer.
#![no_main]
#![allow(dead_code, reason = "each target calls one of these functions")]

#[path = "../../crates/kernel/tests/fuzz/targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::frames(bytes));
