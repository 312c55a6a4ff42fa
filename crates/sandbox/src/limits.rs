//! Every bound on untrusted code, each with its reason.

use std::time::Duration;

/// The limits of one call. A limit that is reached fails the whole call, even if the code catches the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Ticks of the interpreter: one for about [`TICK_POLLS`] calls, iterations of loops and steps of regular
    /// expressions. It backs up the time limit, and ends a call at the same point on every machine.
    pub ticks_max: u64,
    /// Wall-clock time from the moment the code was read, in milliseconds.
    pub wall_ms_max: u64,
    /// Memory of the interpreter in bytes. Cycles of objects count until the call ends, since there is no collection in
    /// between.
    pub memory_bytes_max: usize,
    /// Bytes of the result as JSON text.
    pub result_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            ticks_max: TICKS_DEFAULT,
            wall_ms_max: WALL_MS_DEFAULT,
            memory_bytes_max: MEMORY_BYTES_DEFAULT,
            result_bytes_max: RESULT_BYTES_DEFAULT,
        }
    }
}

/// Polls of the interpreter between two ticks (`JS_INTERRUPT_COUNTER_INIT` of QuickJS).
pub const TICK_POLLS: u64 = 10_000;

/// Ticks for each millisecond of a call: a billion calls and iterations in a second, several times the speed of the
/// interpreter. Time is the limit that usually ends a call. The counter ends it, at the same point on every machine,
/// where time does not: on a much faster machine, or if the clock stops.
pub const TICKS_PER_MS: u64 = 100;

/// Default ticks of a call.
pub const TICKS_DEFAULT: u64 = WALL_MS_DEFAULT * TICKS_PER_MS;

/// Default time of a call, in milliseconds.
pub const WALL_MS_DEFAULT: u64 = 10_000;

/// The longest time that a call can be given, in milliseconds.
pub const WALL_MS_MAX: u64 = 600_000;

/// Default memory of a call: inputs and results have a few MiB, and working with them takes a multiple.
pub const MEMORY_BYTES_DEFAULT: usize = 64 * 1024 * 1024;

/// The largest memory that a call can be given.
pub const MEMORY_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Memory of the interpreter beyond the limit, so that an error at the limit can still be made and detected.
pub(crate) const MEMORY_RESERVE_BYTES: usize = 1024 * 1024;

/// Default size of a result.
pub const RESULT_BYTES_DEFAULT: usize = 256 * 1024;

/// Bytes of a source. A handwritten function is never larger.
pub const SOURCE_BYTES_MAX: usize = 256 * 1024;

/// Nesting of brackets in a source: the depth for which the parser's stack suffices without optimization.
pub const SOURCE_DEPTH_MAX: usize = 1_000;

/// Bytes of a schema.
pub const SCHEMA_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of an input or a value to check.
pub const VALUE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The interpreter's own stack: some ten thousand calls deep. Beyond it the call fails with `stack_exceeded`.
pub(crate) const STACK_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The stack of the evaluating thread. Parsers recurse over their input; untouched pages cost nothing, and touched ones
/// stay allocated. It is far larger than [`STACK_BYTES_MAX`], so that the interpreter's limit is reached first.
pub(crate) const THREAD_STACK_BYTES: usize = 64 * 1024 * 1024;

/// Address space of a worker with all stacks and the program: the bound if every other limit has failed.
pub(crate) const ADDRESS_SPACE_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Open files of a worker: its three streams, and files that the program's loader may still hold.
pub(crate) const FILES_MAX: u64 = 8;

/// Lines of console output that are kept.
pub const CONSOLE_LINES_MAX: usize = 100;

/// Bytes of console output that are kept, over all lines.
pub const CONSOLE_BYTES_MAX: usize = 8 * 1024;

/// Bytes of a fault's message.
pub(crate) const MESSAGE_BYTES_MAX: usize = 2 * 1024;

/// Bytes of a fault's stack.
pub(crate) const TRACE_BYTES_MAX: usize = 4 * 1024;

/// Frames of an error's stack.
pub(crate) const FRAMES_MAX: usize = 10;

/// Mismatches of a value that are listed. A value with more has a more basic error.
pub const MISMATCHES_MAX: usize = 100;

/// Mismatches of a value in the message, which accompanies their list.
pub(crate) const MISMATCHES_TOLD_MAX: usize = 10;

/// Errors of a value that are sorted before the first of them are reported.
pub(crate) const ERRORS_SORTED_MAX: usize = 10_000;

/// Parsed sources and schemas in an evaluator's cache.
pub(crate) const PREPARED_MAX: usize = 64;

/// Bytes of one message between a process and its worker: an input, a schema and their lengths.
pub(crate) const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Time after its wall limit in which a worker may still answer before it is killed.
pub(crate) const WALL_GRACE: Duration = Duration::from_millis(250);

/// Time for a new worker until it has read its first request.
pub(crate) const START_MAX: Duration = Duration::from_secs(10);

/// Workers of a pool without a configured number: evaluations are short, and the machine has other work.
pub(crate) const WORKERS_DEFAULT_MAX: usize = 4;

/// Calls that one worker answers before it is replaced. A start takes some milliseconds, so that this adds microseconds
/// to a call. Code that has escaped from the interpreter sees at most these calls.
pub(crate) const CALLS_PER_WORKER_MAX: u32 = 1_000;

/// Time after which a worker without calls ends, so that inactive organizations use no memory.
pub(crate) const IDLE_MAX: Duration = Duration::from_secs(60);

/// Time after an answer in which a worker may still prepare for its next call: it drops an interpreter and makes another
/// one, which takes some hundred microseconds.
pub(crate) const PREPARATION_MAX: Duration = Duration::from_millis(1);

/// Calls within [`PREPARATION_MAX`] after which a tenant with one worker gets a second one. The two take turns then. A
/// start takes some milliseconds, which a few calls do not repay.
pub(crate) const EARLY_CALLS_MAX: u32 = 16;

/// Interval of the checks for idle workers.
pub(crate) const IDLE_LOOK: Duration = Duration::from_secs(10);

/// Time that a call waits for a worker: as long as the longest call may run, since the tenant's own calls may use its
/// whole share for that time.
pub(crate) const WORKER_WAIT_MAX: Duration = Duration::from_millis(WALL_MS_MAX);

/// Calls of one tenant that wait for a worker. Each blocks a thread of its caller, and a process has some hundred;
/// further calls fail at once.
pub(crate) const CALLS_WAITING_MAX: usize = 512;

/// Nesting of a value: the limit of `serde_json`.
pub(crate) const VALUE_DEPTH_MAX: usize = 127;

/// Schemas visited to fill in defaults for one value: each part of the value takes several, and it may have many parts.
pub(crate) const DEFAULTS_VISITS_MAX: usize = 200_000;

/// Bytes of a compiled regular expression of a schema, and of its cache.
pub(crate) const PATTERN_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The nice value of a worker (setpriority(2)). Functions that compute without end leave most of the processors to the server: a
/// tenth of the weight of an ordinary process. With 15 (a thirtieth) short functions of one organization waited for tens of
/// milliseconds beside endless ones of another; with 5 commits did.
pub const NICE: i32 = 10;

const _: () = assert!(WALL_MS_DEFAULT <= WALL_MS_MAX && MEMORY_BYTES_DEFAULT <= MEMORY_BYTES_MAX);
const _: () = assert!(THREAD_STACK_BYTES >= 4 * STACK_BYTES_MAX, "the interpreter's limit fires first");
const _: () = assert!(
    ADDRESS_SPACE_BYTES_MAX as usize >= 2 * (THREAD_STACK_BYTES + MEMORY_BYTES_MAX + FRAME_BYTES_MAX),
    "the interpreter's limits fire before the kernel's"
);
const _: () = assert!(FRAME_BYTES_MAX >= 2 * (VALUE_BYTES_MAX + SCHEMA_BYTES_MAX + SOURCE_BYTES_MAX));
const _: () = assert!(WALL_GRACE.as_millis() < 1_000, "a call takes no longer than its limit and a second");
