//! Bounds of the engine that one tenant, one row or one clock could otherwise exceed, each with its reason.

/// Bytes of frames, values and messages in one commit, unless a single part is larger. A server takes at most 1 GB in one
/// message and cancels statements after half a minute; this is far below both, and large enough that the number of commits
/// is not what bounds throughput.
pub const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Commits of one execution alone that the store refuses before the execution is quarantined, if others are written
/// meanwhile. More than one, because what the store refuses once may be a lock that somebody holds.
pub const REFUSALS_MAX: u32 = 3;

/// New executions that cannot be written and are remembered by this process. There is nothing stored of them that could be
/// marked; beyond this number the oldest are tried again.
pub const UNWRITABLE_MAX: usize = 10_000;
