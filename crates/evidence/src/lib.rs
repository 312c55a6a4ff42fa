//! Evidence: archives of executions that can be checked with a public key alone, and signed checkpoints of a store.
//!
//! An [`archive`] holds the journals with everything that explains them, and a signed list of the digests of its files.
//! [`verify`] checks signatures and digests, decides every input of every journal again, and derives the readable documents
//! again. [`pin`] is a signed list of the heads of a store, which shows later that a store was rewound. Nothing here reads a
//! clock, a file or a store: bytes in, bytes out, and equal contents give equal bytes.

pub mod archive;
pub mod documents;
pub mod dsse;
mod execution;
pub mod journal;
pub mod limits;
pub mod pin;
pub mod receipts;
mod signatures;
pub mod signing;
mod verify;

pub use execution::{Execution, ExecutionFiles, files_of};
pub use signatures::{EXECUTOR_KEYS, Late, write_keys};
pub use verify::{Checked, CheckedExecution, NOT_EXPORTED, Trust, verify};
