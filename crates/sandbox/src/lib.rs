//! Runs untrusted code: JavaScript and TypeScript functions, and checks against JSON Schemas. It takes bytes, returns
//! bytes and enforces limits. It is independent of workflows.
//!
//! ```text
//!  Request ──▶ Workers ── socket ──▶ worker::serve ──▶ evaluate ──▶ Response
//!              kills at the wall     confines itself    counts ticks, memory, stack
//! ```
//!
//! A [`Request`] is a [`Call`] with [`Limits`]: run a JavaScript or TypeScript function, check that a function could be
//! run, or validate a value against a JSON Schema. An [`Response`] is JSON text or a [`Fault`], and the output to the
//! console. The same request always has the same answer: a function's only inputs are those in its request.
//!
//! | kind of fault | meaning |
//! |---|---|
//! | `syntax` | the source is neither TypeScript nor JavaScript |
//! | `import_refused` | the source imports something; there are no modules to import |
//! | `no_function` | there is no default export that can be called |
//! | `threw` | the code threw a value, or its promise was rejected |
//! | `ticks_exceeded` | more ticks than allowed, also inside of regular expressions |
//! | `time_exceeded` | more time than allowed; also where the worker was killed during a native call |
//! | `memory_exceeded` | more memory than allowed, even where the code caught the error |
//! | `stack_exceeded` | calls nested too deeply, even where the code caught the error |
//! | `never_settles` | the code awaits a promise that nothing can settle any more |
//! | `not_json` | the result is a function, a symbol, a BigInt or cyclic |
//! | `input_invalid` | the input is not JSON, or too large |
//! | `result_too_large` | the result is larger than allowed |
//! | `source_too_large` | the source or the schema is larger than allowed |
//! | `schema_invalid` | the schema is invalid, refers to itself without end, or refers to another document |
//! | `schema_mismatch` | the value does not match; each mismatch has its location |
//! | `crashed` | the worker died or misbehaved, which is a bug of the sandbox |
//! | `unavailable` | no worker could be started |
//!
//! # A known gap
//!
//! A failed allocation is not detected if all of this holds: it is too large on its own, a native function that the
//! engine calls directly for a promise makes it, and the code handles the rejection. The call then continues. Every
//! smaller allocation beyond the limit is detected.

mod confine;
mod evaluate;
mod fault;
mod javascript;
pub mod limits;
mod request;
mod response;
mod schema;
mod source_map;
mod text;
mod transpile;
mod types;
mod wire;
pub mod worker;
mod workers;

pub use evaluate::evaluate;
pub use fault::{Fault, FaultKind, Mismatch};
pub use limits::Limits;
pub use request::{Call, Function, Request, Validate};
pub use response::{Console, Level, Line, Response};
pub use workers::{WorkerCommand, Workers};
