//! Every bound of the kernel: its name, its number and its reason.

/// How deep lists and objects may nest in any value. RFC 8259 leaves this to the reader; 100 is far above what people
/// write and far below what a recursive walk needs on the smallest stack we run on.
pub const DEPTH_MAX: usize = 100;

/// Bytes of a definition, as text. Ten thousand steps take about one megabyte.
pub const DEFINITION_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of one value in its binary form: an execution's input, a step's resolved input, a receipt.
pub const VALUE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes of memory of one value that comes from outside or is made of others. Ordinary records take five to twenty times
/// their bytes in binary form. The longest list of a loop, with a small object for each item, takes 90 million bytes.
pub const VALUE_MEMORY_BYTES_MAX: u64 = 32 * VALUE_BYTES_MAX as u64;

/// Nodes of one document after YAML's aliases are followed.
pub const DOCUMENT_NODES_MAX: usize = 2_000_000;

/// Bytes of memory that each byte of a document's text may become, aliases followed. Definitions take 10 to 30, the
/// densest list of numbers 48; what takes more is made to take more.
pub const DOCUMENT_BYTES_PER_BYTE: usize = 64;

/// Bytes of memory that any document may become besides: room for the aliases of a short text. Sixty-four such texts at
/// a time take less than a hundred megabytes.
pub const DOCUMENT_BYTES_FREE: usize = 1024 * 1024;

/// Signs of YAML's brackets (`[ ] { } , :` and the like) that are read ahead to see whether a collection in brackets is
/// a key, beside a tenth of the text's bytes. A sign becomes up to three tokens of some 200 bytes.
pub const YAML_AHEAD_MAX: usize = 8_192;

/// Bytes of a script that has references. Linux gives no program a longer argument than 128 KiB, and a script that is
/// half as long belongs into a file.
pub const SCRIPT_BYTES_MAX: usize = 64 * 1024;

/// Levels of nesting in a script that has references. People write three or four; the bound keeps the reader's recursion
/// within the smallest stack that we run on.
pub const SCRIPT_DEPTH_MAX: usize = 16;

/// Characters of a script or a reference that an error shows.
pub const SCRIPT_EXCERPT_CHARS_MAX: usize = 60;

/// References of one script that are reported. Whoever mends these is told about the next.
pub const SCRIPT_PROBLEMS_MAX: usize = 64;

/// Findings of one compilation that are told one by one; nobody reads more, and each may repeat a part of the text.
pub const FINDINGS_MAX: usize = 10_000;

/// Bytes of the texts and ways of those findings.
pub const FINDINGS_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Characters of a key that are shown in the way to a part of a document.
pub const SHOWN_KEY_CHARS_MAX: usize = NAME_CHARS_MAX;

/// Steps of one plan, nested ones included.
pub const PLAN_STEPS_MAX: usize = 100_000;

/// Blocks inside blocks in one plan; each step inside takes a level or two of [`DEPTH_MAX`].
pub const PLAN_DEPTH_MAX: usize = 32;

/// Characters of a step's name, a variable's name, a signal's name.
pub const NAME_CHARS_MAX: usize = 200;

/// Visits of steps in one execution unless its policy says otherwise (second specification, execution constraints).
pub const EXECUTION_STEPS_DEFAULT: u32 = 50;

/// The same where the outermost steps go by edges: graphs and dataflows are drawn by programs as often as by people, and
/// each of their steps is visited once.
pub const EDGES_STEPS_DEFAULT: u32 = 10_000;

/// The most that a policy may allow.
pub const EXECUTION_STEPS_MAX: u32 = 1_000_000;

/// Executions that one execution may start, directly and through those it starts, unless its definition says otherwise:
/// one for each item of the longest list.
pub const EXECUTIONS_DEFAULT: u32 = LOOP_ITEMS_MAX as u32;

/// The most that a definition may allow.
pub const EXECUTIONS_MAX: u32 = 1_000_000;

/// Rounds that begin, steps that are skipped and steps that fail before they begin, in one execution. None of them is a
/// visit. Ten million: a hundred times what a loop over the longest list needs for a handful of skipped steps, and some
/// minutes of one processor.
pub const UNCOUNTED_MAX: u32 = 10_000_000;

/// Bytes of memory that one execution may take: what its running steps were given, what its ended steps gave and a
/// reference may still read, what its loops have gathered. A loop over the longest list with an object for each item, its
/// list and its outputs take 300 MiB. Ended rounds take nothing.
pub const EXECUTION_MEMORY_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// Bytes of the records of one execution in the journal, more or less. Ten million records without payloads take a third
/// of them; a journal of this size is read in seconds.
pub const EXECUTION_JOURNAL_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Branches at a time unless the policy says otherwise (first specification, section 6.5).
pub const PARALLEL_DEFAULT: u32 = 4;

/// The most that a policy may allow.
pub const PARALLEL_MAX: u32 = 10_000;

/// Time for one attempt of a shell step unless it says otherwise, in milliseconds.
pub const SHELL_TIMEOUT_DEFAULT_MS: u64 = 120_000;

/// The longest time that a shell step may ask for, in milliseconds.
pub const SHELL_TIMEOUT_MAX_MS: u64 = 600_000;

/// Time for one attempt of a tool unless its step says otherwise, in milliseconds.
pub const TOOL_TIMEOUT_DEFAULT_MS: u64 = 30_000;

/// Time for one attempt of an agent unless its step says otherwise, in milliseconds (as the second specification's
/// engine: fifteen minutes is the longest it waits).
pub const AGENT_TIMEOUT_DEFAULT_MS: u64 = 900_000;

/// The least time that `agent_message` may ask for, in milliseconds (second specification).
pub const AWAIT_MIN_MS: u64 = 1000;

/// Bytes of a response that a request may ask for.
pub const RESPONSE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The longest time anything may wait: ten years, in milliseconds. Beyond it lies a mistake of units.
pub const WAIT_MAX_MS: u64 = 10 * 366 * 24 * 3600 * 1000;

/// How long a gate stays open unless it says otherwise, in milliseconds (first specification, 12.1).
pub const APPROVAL_TTL_DEFAULT_MS: u64 = 24 * 3600 * 1000;

/// People that one gate may ask for.
pub const APPROVAL_COUNT_MAX: u32 = 100;

/// Attempts of one step instance.
pub const ATTEMPTS_MAX: u32 = 10_000;

/// Bytes of one step's output in its binary form (first specification, `maxOutputBytes`).
pub const OUTPUT_BYTES_MAX: usize = 256 * 1024;

/// Signals that one execution keeps while nothing waits for them.
pub const SIGNALS_KEPT_MAX: usize = 10_000;

/// Bytes of what they bring together, in binary form: a state in memory takes a few times as much, and each node that
/// looks at the execution has one.
pub const SIGNALS_KEPT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of what one signal brings, in its binary form: it becomes the output of the step that waits for it.
pub const SIGNAL_BYTES_MAX: usize = OUTPUT_BYTES_MAX;

/// Characters of a decision's reason: two or three paragraphs, which an audit log keeps for ever.
pub const REASON_CHARS_MAX: usize = 2_000;

/// Time for one evaluation unless its step says otherwise, in milliseconds.
pub const CODE_TIMEOUT_DEFAULT_MS: u64 = 10_000;

/// The longest time that an evaluation may ask for, in milliseconds.
pub const CODE_TIMEOUT_MAX_MS: u64 = 60_000;

/// Bytes of the source of one function.
pub const SOURCE_BYTES_MAX: usize = 256 * 1024;

/// Items of one list that a loop goes through.
pub const LOOP_ITEMS_MAX: usize = 100_000;

/// Rounds of a loop with a condition unless it says otherwise.
pub const ROUNDS_DEFAULT: u32 = 1_000;

/// The most rounds that a loop with a condition may allow.
pub const ROUNDS_MAX: u32 = 1_000_000;

/// Executions that wait for each other, one above the other: what stops a workflow that starts itself.
pub const LINEAGE_DEPTH_MAX: u32 = 32;

/// Workflows that one family of executions may start.
pub const LINEAGE_WORKFLOWS_MAX: usize = 1_000;

/// Time for one request unless its step says otherwise, in milliseconds.
pub const HTTP_TIMEOUT_DEFAULT_MS: u64 = 30_000;

/// Results of evaluations in one turn by the rules up to version 4.
pub const TURN_RESULTS_MAX: usize = 2_048;

/// Results of evaluations in one turn. Nothing of a turn is visible before it ends, and a turn that is lost with its
/// process is evaluated again.
pub const TURN_EVALUATIONS_MAX: usize = 64;

/// Evaluations that a turn asks for at the same time: enough for the workers of a pool, and few enough for a turn to end
/// soon after its time is over.
pub const EVALUATIONS_AT_A_TIME_MAX: usize = 8;

/// Milliseconds that the evaluations of one turn may take together before it ends. What has begun when they are over is
/// still part of it.
pub const TURN_EVALUATION_MS_MAX: u64 = 2_000;

/// Bytes of the values of one turn, more or less: what has been begun when they are passed is still written.
pub const TURN_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Bytes for which each step of a block counts that a turn opens: a turn opens at most some hundred thousand places.
pub const TURN_BYTES_PER_STEP: usize = 24;

/// Records of one turn, after which the rest follows as an input of the execution to itself. A frame stays small enough
/// to write and to read in one piece, and no execution can hold its shard.
pub const TURN_RECORDS_MAX: usize = 4_096;

const _: () = assert!(PLAN_DEPTH_MAX * 3 < DEPTH_MAX, "a nested plan must fit into a value");
const _: () = assert!(SHELL_TIMEOUT_DEFAULT_MS <= SHELL_TIMEOUT_MAX_MS);
const _: () = assert!(SHELL_TIMEOUT_MAX_MS < WAIT_MAX_MS);
const _: () = assert!(UNCOUNTED_MAX as u64 * 64 < EXECUTION_JOURNAL_BYTES_MAX);
const _: () = assert!(OUTPUT_BYTES_MAX < VALUE_BYTES_MAX && VALUE_BYTES_MAX < TURN_BYTES_MAX);
const _: () = assert!(SIGNAL_BYTES_MAX < SIGNALS_KEPT_BYTES_MAX, "a signal of any size can be kept");
const _: () = assert!(CODE_TIMEOUT_DEFAULT_MS <= CODE_TIMEOUT_MAX_MS && ROUNDS_DEFAULT <= ROUNDS_MAX);
const _: () = assert!(EXECUTIONS_DEFAULT <= EXECUTIONS_MAX && EDGES_STEPS_DEFAULT <= EXECUTION_STEPS_MAX);
const _: () = assert!(EVALUATIONS_AT_A_TIME_MAX <= TURN_EVALUATIONS_MAX);
const _: () = assert!(EXECUTION_STEPS_DEFAULT <= EXECUTION_STEPS_MAX && PARALLEL_DEFAULT <= PARALLEL_MAX);
