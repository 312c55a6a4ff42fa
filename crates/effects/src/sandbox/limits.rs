//! Every bound of sandboxes, each with its reason.

use std::time::Duration;

use crate::shell::GRACE_DEFAULT;

/// The version of the messages. Both sides must have the same one.
pub(super) const PROTOCOL: u64 = 1;

/// Bytes of one message of a sandbox: both streams of a script, each byte as an escape of six characters, and the rest of a
/// result.
pub(super) const REPLY_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of one message of a server: the texts of a script, 1.5 MiB, with escapes.
pub(super) const REQUEST_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of the message of a failure. Ours have some hundred.
pub(super) const FAILURE_TEXT_BYTES_MAX: usize = 4 * 1024;

/// Bytes kept from the end of the standard error of a command, for the message when it does not start.
pub(super) const ERROR_OUTPUT_BYTES_MAX: usize = 4 * 1024;

/// Time to wait for the end of the standard error of a command whose output has ended.
pub(super) const ERROR_OUTPUT_MAX: Duration = Duration::from_millis(200);

/// Characters of a line that a command has printed, in a message.
pub(super) const SHOWN_CHARS_MAX: usize = 200;

/// Bytes of a message that is not a result. Each call has one result, and any number of others, so that these are small.
pub(super) const NOTICE_BYTES_MAX: usize = 8 * 1024;

/// Messages of a sandbox in a second. `workflow serve` sends at most five of each running script; more than this only costs
/// the node time.
pub(super) const REPLIES_PER_SECOND_MAX: u32 = 1_000;

/// Tries to start a sandbox and to send an attempt to it (second specification, "Dispatch Retry").
pub(super) const START_TRIES: u32 = 5;

/// Sandboxes of one organization on one node. More attempts wait for one that is idle.
pub(super) const SANDBOXES_MAX: usize = 64;

/// Sandbox profiles in the settings.
pub(super) const PROFILES_MAX: usize = 64;

/// Organizations of all sandboxes. The settings are read as a whole.
pub(super) const ORGANIZATIONS_MAX: usize = 10_000;

/// Arguments and variables of a command.
pub(super) const ARGUMENTS_MAX: usize = 256;

/// Default and longest time until a sandbox says hello: a container starts in a second, and an image may have to be loaded.
pub(super) const START_MS_DEFAULT: u64 = 60_000;
pub(super) const START_MS_MAX: u64 = 900_000;

/// Default and longest time that a sandbox is kept without a script. A day is longer than most waits for a person.
pub(super) const IDLE_MS_DEFAULT: u64 = 300_000;
pub(super) const IDLE_MS_MAX: u64 = 86_400_000;

/// Time for the command that removes a sandbox.
pub(super) const CLEANUP_MAX: Duration = Duration::from_secs(60);

/// Time in which a sandbox ends by itself after the end of its input.
pub(super) const CLOSE_MAX: Duration = Duration::from_secs(2);

/// Time between two progress messages of one script.
pub(super) const PROGRESS_PAUSE: Duration = Duration::from_millis(200);

/// The times after which an unresponsive sandbox is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// The time between SIGTERM and SIGKILL, of scripts and of sandboxes.
    pub grace: Duration,
    /// The time in which a sandbox answers after the grace period of a cancel.
    pub answer: Duration,
    /// The interval of pings.
    pub ping: Duration,
    /// A sandbox from which nothing comes for this time is ended. It ends itself if nothing comes from the node.
    pub silence: Duration,
    /// The time for one message to be taken by the sandbox.
    pub write: Duration,
    /// The pause before the second try of a dispatch; before each further one it is longer by the same time.
    pub start_pause: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            grace: GRACE_DEFAULT,
            answer: Duration::from_secs(5),
            ping: Duration::from_secs(15),
            silence: Duration::from_secs(60),
            write: Duration::from_secs(30),
            start_pause: Duration::from_millis(150),
        }
    }
}

const _: () = assert!(REPLY_BYTES_MAX > 2 * 6 * crate::shell::STREAM_BYTES_MAX + FAILURE_TEXT_BYTES_MAX * 6);
