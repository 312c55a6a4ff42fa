//! Bounds on what a tool server can make this process hold or wait for.

use std::time::Duration;

use mainspring_kernel::limits::OUTPUT_BYTES_MAX;

/// The bytes of one message of a server. A result is rejected above [`OUTPUT_BYTES_MAX`] anyway; the rest leaves room
/// for escapes in JSON, which write one byte as up to six. A longer list of tools is sent in pages. A parsed message may
/// need some 30 times as much, as a list of one-digit numbers does.
pub const MESSAGE_BYTES_MAX: usize = 2 * 1024 * 1024;
const _: () = assert!(MESSAGE_BYTES_MAX >= 6 * OUTPUT_BYTES_MAX);

/// The requests of a server that are not answered, or whose answers it has not read. A conforming server sends `ping`
/// only, since nothing else was announced.
pub const UNANSWERED_MAX: usize = 64;

/// The bytes of the id of a request, which is kept for its answer.
pub const REQUEST_ID_BYTES_MAX: usize = 256;

/// The parsed results of one connection that wait to be read. Further messages stay in the stream.
pub const RESULTS_MAX: usize = 4;

/// The messages in each queue between an HTTP connection and its reader.
pub const QUEUED_MESSAGES_MAX: usize = 4;

/// The tools of one server. The largest public servers have some hundreds.
pub const TOOLS_MAX: usize = 2_000;

/// The bytes of the definitions of all tools of one server, as canonical JSON.
pub const TOOLS_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The bytes of all lists over one connection. `rmcp` keeps the schemas of all tools that were ever listed over HTTP.
pub const LISTED_BYTES_MAX: usize = 8 * TOOLS_BYTES_MAX;

/// The pages of one list of tools. A server may return any number of empty pages.
pub const TOOL_PAGES_MAX: usize = 200;

/// The length of a tool's name; the protocol recommends at most 128 characters.
pub const TOOL_NAME_BYTES_MAX: usize = 256;

/// The configured servers of one installation.
pub const SERVERS_MAX: usize = 256;

/// The time until a server answers the first request. Package runners download a server at its first start.
pub const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The time in which all servers list their tools for a name without its server. Shorter than the default time of a
/// step, so that its failure names the server that is slow.
pub const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);
const _: () = assert!(LOOKUP_TIMEOUT.as_secs() < 30);

/// The servers that are searched for a name without its server: as many as can be connected at the same time.
pub const LOOKUP_SERVERS_MAX: usize = CONNECTIONS_MAX;

/// The time until a server answers a request for its tools.
pub const LIST_TIMEOUT: Duration = Duration::from_secs(30);

/// The time between the cancellation of a call and the end of the wait for its notification to be sent.
pub const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// The bytes of a server's text that an error message quotes.
pub const QUOTED_BYTES_MAX: usize = 2 * 1024;

/// The open connections of one organization. A further one closes the one that is unused for the longest time, and is an
/// error if all are in use.
pub const CONNECTIONS_MAX: usize = 32;

/// The calls that wait for or use one connection.
pub const CALLS_MAX: usize = 1_024;

/// Failed attempts in a row to resume a stream of events that ended before the answer.
pub const RESUMES_MAX: usize = 5;

/// The time between two requests for streams of events over one connection. A server may end each stream at once and ask
/// for the next without a pause.
pub const STREAM_INTERVAL: Duration = Duration::from_secs(1);

/// The requests for streams of events without a pause, for calls whose streams break at the same time.
pub const STREAM_BURST: u32 = 8;

/// The time after which a connection without calls is closed, and its process ended.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// The shortest time between two searches for idle connections.
pub const SWEEP_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// The forms of one call that wait for an answer. People answer one at a time.
pub const FORMS_WAITING_MAX: usize = 8;

/// The calls of one organization that are held open while people fill in forms. Each holds a connection of its execution,
/// and other calls need some.
pub const HELD_CALLS_MAX: usize = 24;
const _: () = assert!(HELD_CALLS_MAX < CONNECTIONS_MAX);

/// The time for which a call is held open. Longer than the time of the gate, whose end is the answer.
pub const HOLD_TIMEOUT: Duration = Duration::from_secs(25 * 3600);

/// The time between two requests for a task, where the server suggests none.
pub const POLL_INTERVAL_DEFAULT: Duration = Duration::from_secs(1);

/// The shortest and the longest time between two requests for a task.
pub const POLL_INTERVALS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));

/// The bytes of the id of a task, and of the state that a server wants back with the input of people.
pub const HANDLE_TEXT_BYTES_MAX: usize = 32 * 1024;
