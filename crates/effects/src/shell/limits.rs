//! Every bound of the shell executor: its name, its number and its reason.

use std::time::Duration;

use mainspring_kernel::limits::OUTPUT_BYTES_MAX;

/// How long what is asked to end (SIGTERM) may take before it is ended (SIGKILL), unless the options say otherwise.
pub const GRACE_DEFAULT: Duration = Duration::from_secs(10);

/// Bytes kept of each of stdout and stderr, as they came and as text; the rest is counted only.
pub const STREAM_BYTES_MAX: usize = 64 * 1024;

/// Bytes of the end of a stream that is too long to be kept, from which its last line is taken.
pub(super) const TAIL_BYTES_MAX: usize = 1024;

/// Characters of the last line of stderr in a failure's message.
pub(super) const LAST_LINE_CHARS_MAX: usize = 200;

/// Bytes of one read from a pipe: a quarter of what a pipe holds, so that no read is for a handful of bytes and an idle
/// step costs little memory.
pub(super) const READ_BYTES_MAX: usize = 16 * 1024;

/// Bytes read from a pipe after its script has ended. A pipe holds no more than this (`pipe-max-size`, proc(5)), so all
/// that the script wrote is among them; without a bound a background process that keeps writing would be read for ever.
pub(super) const DRAIN_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of a note: four short lines.
pub(super) const NOTE_BYTES_MAX: usize = 1024;

/// How long to wait before looking at `/proc` again where the kernel gave no handle that tells of a process's end.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// How long an orphan that has ended may stay a zombie, at least: a long time for a machine, and nothing to a person.
pub(super) const ORPHANS_WAIT: Duration = Duration::from_millis(500);

const _: () = assert!(2 * STREAM_BYTES_MAX < OUTPUT_BYTES_MAX, "both streams fit into one step's output");
const _: () = assert!(TAIL_BYTES_MAX >= 4 * LAST_LINE_CHARS_MAX, "the longest last line fits into the tail");
const _: () = assert!(TAIL_BYTES_MAX <= STREAM_BYTES_MAX && READ_BYTES_MAX <= DRAIN_BYTES_MAX);
