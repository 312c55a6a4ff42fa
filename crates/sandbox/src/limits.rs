//! Every bound on strangers' code: its name, its number and its reason.

use std::time::Duration;

/// What one call may use. A limit that fires makes the whole call fail, whatever the code does about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Ticks of the interpreter: one for about [`TICK_POLLS`] calls, turns of loops and looks of regular expressions.
    /// Backs up the limit of time, and fires at the same place on every machine.
    pub ticks_max: u64,
    /// Time on the wall from the moment the code was read, in milliseconds: the outer guard.
    pub wall_ms_max: u64,
    /// Memory of the interpreter in bytes. Rings of objects count until the call ends: nothing is collected meanwhile.
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

/// Ticks for each millisecond that a call may take: a thousand million calls and turns of loops a second, some times what
/// the interpreter does. The limit of a call is its time; the counter ends it at the same place on every machine where
/// time does not, on one that is faster than any today or whose clock stands still.
pub const TICKS_PER_MS: u64 = 100;

/// What a call may take when its owner said nothing.
pub const TICKS_DEFAULT: u64 = WALL_MS_DEFAULT * TICKS_PER_MS;

/// What a call may take when its owner said nothing.
pub const WALL_MS_DEFAULT: u64 = 10_000;

/// The longest that a call can be given.
pub const WALL_MS_MAX: u64 = 600_000;

/// Inputs and results are bounded by a few MiB; fifty times that is room to work with them.
pub const MEMORY_BYTES_DEFAULT: usize = 64 * 1024 * 1024;

/// The largest memory that a call can be given.
pub const MEMORY_BYTES_MAX: usize = 256 * 1024 * 1024;

/// What the interpreter gets beyond the limit, so that an error at the limit can still be made and noticed.
pub(crate) const MEMORY_RESERVE_BYTES: usize = 1024 * 1024;

/// The size of a result unless said otherwise.
pub const RESULT_BYTES_DEFAULT: usize = 256 * 1024;

/// Bytes of a source. More than that is no function that someone wrote.
pub const SOURCE_BYTES_MAX: usize = 256 * 1024;

/// How deep brackets of a source may nest: what a parser that is not optimised can do on its stack.
pub const SOURCE_DEPTH_MAX: usize = 1_000;

/// Bytes of a schema.
pub const SCHEMA_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of an input or a value to check.
pub const VALUE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The interpreter's own stack: some ten thousand calls deep. Beyond it is `stack_exceeded`.
pub(crate) const STACK_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The stack of the thread that all this runs on. Parsers recurse over their input; the pages that nobody touches cost
/// nothing, and those that were touched stay. Far more than [`STACK_BYTES_MAX`], so that the limit which fires is the
/// interpreter's.
pub(crate) const THREAD_STACK_BYTES: usize = 64 * 1024 * 1024;

/// Address space of a worker, stacks and the program itself included: what is left when every other limit has failed.
pub(crate) const ADDRESS_SPACE_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Open files of a worker: its three streams, and what the loader of the program may still hold.
pub(crate) const FILES_MAX: u64 = 8;

/// Lines of console that are kept.
pub const CONSOLE_LINES_MAX: usize = 100;

/// Bytes of console that are kept, over all lines.
pub const CONSOLE_BYTES_MAX: usize = 8 * 1024;

/// Bytes of a fault's message.
pub(crate) const MESSAGE_BYTES_MAX: usize = 2 * 1024;

/// Bytes of a fault's stack.
pub(crate) const TRACE_BYTES_MAX: usize = 4 * 1024;

/// Frames of an error's stack.
pub(crate) const FRAMES_MAX: usize = 10;

/// Mismatches of a value that are told; who has more has another problem.
pub const MISMATCHES_MAX: usize = 100;

/// Mismatches of a value that the message tells, beside the list of them.
pub(crate) const MISMATCHES_TOLD_MAX: usize = 10;

/// Errors of a value that are put in order before the first of them are told.
pub(crate) const ERRORS_SORTED_MAX: usize = 10_000;

/// Prepared sources and schemas that an evaluator keeps.
pub(crate) const PREPARED_MAX: usize = 64;

/// Bytes of one message between a process and its worker: an input, a schema and their lengths fit in.
pub(crate) const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How long after its wall limit a worker may still answer by itself before it is ended.
pub(crate) const WALL_GRACE: Duration = Duration::from_millis(250);

/// How long a new worker may take until it has read its first request.
pub(crate) const START_MAX: Duration = Duration::from_secs(10);

/// Workers of a pool that was given no number: evaluations are short, and the machine has other work.
pub(crate) const WORKERS_DEFAULT_MAX: usize = 4;

/// Calls that one worker answers before it is replaced: starting one costs some milliseconds, so that this adds
/// microseconds to a call, and code that has broken out of the interpreter sees no more calls than these.
pub(crate) const CALLS_PER_WORKER_MAX: u32 = 1_000;

/// How long a worker stays without a call. Those of organizations that have gone quiet keep no memory.
pub(crate) const IDLE_MAX: Duration = Duration::from_secs(60);

/// How often idle workers are looked at.
pub(crate) const IDLE_LOOK: Duration = Duration::from_secs(10);

/// How long a call waits for a worker: as long as the longest call may run, since a tenant's own calls may hold its share
/// for that long. No call waits for ever.
pub(crate) const WORKER_WAIT_MAX: Duration = Duration::from_millis(WALL_MS_MAX);

/// Calls of one tenant that wait for a worker. Callers wait on threads, of which a process has some hundreds; one that
/// asks for more than this is answered at once.
pub(crate) const CALLS_WAITING_MAX: usize = 512;

/// How deep a value may nest: what `serde_json` reads.
pub(crate) const VALUE_DEPTH_MAX: usize = 127;

/// Looks at schemas while defaults are filled in, in one value: some for each of its parts, of which there may be many.
pub(crate) const DEFAULTS_VISITS_MAX: usize = 200_000;

/// What a regular expression of a schema may weigh once compiled, and its cache.
pub(crate) const PATTERN_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The priority of a worker (setpriority(2)): functions that compute without end leave the processors to the server.
pub const NICE: i32 = 15;

const _: () = assert!(WALL_MS_DEFAULT <= WALL_MS_MAX && MEMORY_BYTES_DEFAULT <= MEMORY_BYTES_MAX);
const _: () = assert!(THREAD_STACK_BYTES >= 4 * STACK_BYTES_MAX, "the interpreter's limit fires first");
const _: () = assert!(
    ADDRESS_SPACE_BYTES_MAX as usize >= 2 * (THREAD_STACK_BYTES + MEMORY_BYTES_MAX + FRAME_BYTES_MAX),
    "the interpreter's limits fire before the kernel's"
);
const _: () = assert!(FRAME_BYTES_MAX >= 2 * (VALUE_BYTES_MAX + SCHEMA_BYTES_MAX + SOURCE_BYTES_MAX));
const _: () = assert!(WALL_GRACE.as_millis() < 1_000, "a call takes no longer than its limit and a second");
