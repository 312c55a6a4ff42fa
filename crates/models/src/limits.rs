//! Bounds on what a model can make this process hold, each with its reason.

use mainspring_kernel::limits::OUTPUT_BYTES_MAX;

/// The configured models of one installation.
pub const MODELS_MAX: usize = 256;

/// The organizations that one model names. A model for more of them names none.
pub const ORGANIZATIONS_MAX: usize = 1_000;

/// The bytes of an answer's body. The answer becomes the output of a step, so more could not be kept.
pub const ANSWER_BYTES_MAX: usize = 220 * 1024;
const _: () = assert!(ANSWER_BYTES_MAX < OUTPUT_BYTES_MAX);

/// The bytes of a stream. Each word of an answer is an event with names and ids around it, some fifty times its length.
pub const STREAM_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The events of a stream: one for each character of the longest answer.
pub const STREAM_EVENTS_MAX: usize = ANSWER_BYTES_MAX;

/// The bytes of one event. The last one of the Responses API holds the whole answer.
pub const STREAM_EVENT_BYTES_MAX: usize = ANSWER_BYTES_MAX + 1024;

/// The bytes that a part of an answer counts beside its content, so that empty parts are bounded.
pub const STREAM_PART_BYTES: usize = 64;

/// Entries of the usage of a streamed answer, and bytes of each. Providers send about ten, of at most 200 bytes.
pub const USAGE_ENTRIES_MAX: usize = 64;
/// See [`USAGE_ENTRIES_MAX`].
pub const USAGE_ENTRY_BYTES_MAX: usize = 1024;

/// The maximum tokens of an answer if neither step nor model sets it. Anthropic requires a number.
pub const ANSWER_TOKENS_DEFAULT: u64 = 8_192;

/// The tools that one request may describe. Providers accept 128.
pub const TOOLS_MAX: usize = 128;

/// The bytes of the name of a tool in a request. All providers accept 64.
pub const TOOL_NAME_BYTES_MAX: usize = 64;

/// The bytes of an API key, so that a wrong file is not sent as a header.
pub const KEY_BYTES_MAX: usize = 8 * 1024;

/// The bytes of the beginning of a key that a message may hold: providers begin their keys with a common part.
pub const QUOTED_KEY_BYTES_MAX: usize = 11;

/// The characters of a provider's text in a message.
pub const QUOTED_CHARS_MAX: usize = 300;

/// The bytes of a script of the scripted model.
pub const SCRIPT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The bytes of a request to the scripted model.
pub const DEV_REQUEST_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The requests that the scripted model keeps for its report. Later ones are counted only.
pub const DEV_REQUESTS_KEPT: usize = 1_000;

/// The bytes at which a scripted stream may be cut or stay open.
pub const DEV_STREAM_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The longest delay of a scripted answer, in milliseconds.
pub const DEV_DELAY_MAX_MS: u64 = 600_000;
