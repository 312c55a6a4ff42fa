//! Bounds on what an agent can make this process hold or wait for.

use std::time::Duration;

use mainspring_kernel::limits::{FORM_MESSAGE_BYTES_MAX, OUTPUT_BYTES_MAX};

/// The configured agents of one installation.
pub const AGENTS_MAX: usize = 64;

/// The bytes of one message of an agent. Updates repeat the content of files that the agent edits. A parsed message may need
/// some 30 times as much.
pub const MESSAGE_BYTES_MAX: usize = 2 * 1024 * 1024;

/// The bytes of all messages of an attempt, as an agent may send updates forever.
pub const ATTEMPT_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// The messages of an attempt. An agent that streams its answer sends one for each word.
pub const MESSAGES_MAX: u64 = 1_000_000;

/// The time until an agent answers the handshake. Package runners download a program at its first start.
pub const START_TIMEOUT: Duration = Duration::from_secs(120);

/// The time until an agent reads a message that was sent to it.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// The time between `session/cancel` and the end of the process.
pub const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// The time for which an open session waits for its record to be durable.
pub const BEGIN_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// The time for which an agent waits for people. Longer than the time of the gate, whose end is the answer.
pub const HOLD_TIMEOUT: Duration = Duration::from_secs(25 * 3600);

/// The agents of one organization that run at a time. Each is a process with the memory of a language runtime.
pub const RUNNING_MAX: usize = 16;

/// The starts of a process after the first one of a dispatch, for an agent that ends and can load its session.
pub const RESTARTS_MAX: u32 = 2;

/// The permission requests of one session that wait for an answer. People answer one at a time.
pub const PERMISSIONS_WAITING_MAX: usize = 8;

/// The options of a permission request.
pub const OPTIONS_MAX: usize = 16;

/// The bytes of an id of a session, a tool call, an option or a request, which journals and answers repeat.
pub const ID_BYTES_MAX: usize = 1024;

/// The bytes of a permission request, as people see it. People do not read more.
pub const PERMISSION_BYTES_MAX: usize = 16 * 1024;

/// The bytes of a title of a tool call.
pub const TITLE_BYTES_MAX: usize = 1024;
const _: () = assert!(2 * TITLE_BYTES_MAX < FORM_MESSAGE_BYTES_MAX);

/// The tool calls whose details are kept for permission requests, which name them by id.
pub const TRACKED_CALLS_MAX: usize = 256;

/// The tool calls in the output of a step: the last ones.
pub const SHOWN_CALLS_MAX: usize = 100;

/// The bytes of the final answer. The rest of an output is for its tool calls.
pub const ANSWER_BYTES_MAX: usize = OUTPUT_BYTES_MAX / 2;

/// The bytes of an agent's text that an error message quotes.
pub const QUOTED_BYTES_MAX: usize = 2 * 1024;
