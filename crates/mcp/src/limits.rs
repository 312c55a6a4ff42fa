//! Bounds on what a tool server can make this process hold or wait for.

use std::time::Duration;

use mainspring_kernel::limits::OUTPUT_BYTES_MAX;

/// The bytes of one message of a server. A result is rejected above [`OUTPUT_BYTES_MAX`] anyway; the rest leaves room
/// for escapes in JSON, which write one byte as up to six, and for the lists of tools.
pub const MESSAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
const _: () = assert!(MESSAGE_BYTES_MAX >= 6 * OUTPUT_BYTES_MAX);

/// The tools of one server. The largest public servers have some hundreds.
pub const TOOLS_MAX: usize = 2_000;

/// The bytes of the definitions of all tools of one server, as canonical JSON.
pub const TOOLS_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The pages of one list of tools. A server may return any number of empty pages.
pub const TOOL_PAGES_MAX: usize = 200;

/// The length of a tool's name; the protocol recommends at most 128 characters.
pub const TOOL_NAME_BYTES_MAX: usize = 256;

/// The configured servers of one installation.
pub const SERVERS_MAX: usize = 256;

/// The time until a server answers the first request. Package runners download a server at its first start.
pub const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The time until a server answers a request for its tools.
pub const LIST_TIMEOUT: Duration = Duration::from_secs(30);

/// The time between the cancellation of a call and the end of the wait for its notification to be sent.
pub const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// The time between SIGTERM and SIGKILL for the process of a server.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// The bytes of a server's standard error that are kept, for error messages.
pub const STDERR_BYTES_MAX: usize = 4 * 1024;

/// The bytes of a server's text that an error message quotes.
pub const QUOTED_BYTES_MAX: usize = 2 * 1024;

/// The open connections of one organization. A further one waits.
pub const CONNECTIONS_MAX: usize = 32;

/// The calls that wait for or use one connection.
pub const CALLS_MAX: usize = 1_024;

/// The time to wait for the last lines of a server that broke its connection.
pub const ERROR_OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);

/// Attempts to resume a stream of events that ended before the answer.
pub const RESUMES_MAX: usize = 5;

/// The time after which a connection without calls is closed, and its process ended.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// The shortest time between two searches for idle connections.
pub const SWEEP_INTERVAL_MIN: Duration = Duration::from_secs(1);
