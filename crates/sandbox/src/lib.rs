//! How is strangers' code run? Bytes in, bytes out, limits.
//!
//! ```text
//!  Request ──▶ Workers ── socket ──▶ worker::serve ──▶ evaluate ──▶ Answer
//!              kills at the wall     confines itself    counts ticks, memory, stack
//! ```
//!
//! A [`Request`] is a [`Call`] with [`Limits`]: run a function in JavaScript or TypeScript, look whether one could be
//! run, or check a value against a JSON Schema. An [`Answer`] is JSON text or a [`Fault`], and what was written to the
//! console. The same request has the same answer, always: what a function knows is in its request.
//!
//! | kind of fault | what happened |
//! |---|---|
//! | `syntax` | the source is neither TypeScript nor JavaScript |
//! | `import_refused` | the source imports something; there is nothing to import from |
//! | `no_function` | there is no default export that can be called |
//! | `threw` | the code threw something, or its promise was rejected |
//! | `ticks_exceeded` | more ticks than allowed, also inside of regular expressions |
//! | `time_exceeded` | more time than allowed; also where a native call had to be ended from outside |
//! | `memory_exceeded` | more memory than allowed, even where the code caught the error |
//! | `stack_exceeded` | calls nested too deeply, even where the code caught the error |
//! | `never_settles` | a promise is waited for that nothing can settle any more |
//! | `not_json` | the result is a function, a symbol, a BigInt or a ring |
//! | `input_invalid` | the input is no JSON, or too large |
//! | `result_too_large` | the result is larger than allowed |
//! | `source_too_large` | the source or the schema is larger than allowed |
//! | `schema_invalid` | the schema cannot be used; or refers to itself without end, or to somewhere else |
//! | `schema_mismatch` | the value does not fit; each mismatch has its place |
//! | `crashed` | the worker died or broke; ours to mend |
//! | `unavailable` | no worker could be started |
//!
//! # What is not noticed
//!
//! An allocation that is refused because it alone is too large is not noticed where a native function, called by the
//! engine of promises with no frame of the code's own between, fails with it and the code handles that rejection. The
//! call then goes on as the code says. Everything smaller is noticed always.

mod answer;
mod confine;
mod evaluate;
mod fault;
mod javascript;
pub mod limits;
mod place;
mod prepare;
mod request;
mod schema;
mod text;
mod wire;
pub mod worker;
mod workers;

pub use answer::{Answer, Console, Level, Line};
pub use evaluate::evaluate;
pub use fault::{Fault, FaultKind, Mismatch};
pub use limits::Limits;
pub use request::{Call, Function, Request, Validate};
pub use workers::{WorkerCommand, Workers};
