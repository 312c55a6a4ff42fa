//! Bounds of the engine that one tenant, one row or one clock could otherwise exceed, each with its reason.

/// Bytes of frames, values and messages in one commit, unless a single part is larger. A server takes at most 1 GB in one
/// message and cancels statements after half a minute; this is far below both, and large enough that the number of commits
/// is not what bounds throughput.
pub const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Organizations that both had turns within this time share the driver. Then commands, timers and split turns are taken in
/// turns between them, and the bounds below hold. In milliseconds; one that starts an execution every few seconds is
/// among them.
pub const SHARED_MS: u64 = 10_000;

/// Executions of one organization in a commit that several share. SQLite writes that many in some milliseconds, for which
/// the next commit of another organization waits. An organization alone has commits of thousands.
pub const SHARED_PARTS_MAX: usize = 64;

/// Bytes of one organization in a commit that several share, unless a single part is larger.
pub const SHARED_BYTES_MAX: usize = 256 * 1024;

/// Records of a turn from which on the next turn of the same execution is decided beside the driver, while several
/// organizations share it. A turn has up to 4,096; one of this length takes less than a millisecond.
pub const LONG_TURN_RECORDS: usize = 256;

/// Steps of a plan without loops whose first turn is never decided beside the driver.
pub const SHORT_PLAN_STEPS_MAX: usize = 64;

/// Timers fired for one event while several organizations share the driver: an event of one waits for a millisecond of
/// timers of the others at most.
pub const SHARED_TIMERS_AT_A_TIME: usize = 8;

/// Commits of one execution alone that the store refuses before the execution is quarantined, if others are written
/// meanwhile. More than one, because what the store refuses once may be a lock that somebody holds.
pub const REFUSALS_MAX: u32 = 3;

/// Commits of one execution alone that the store refuses before the execution is quarantined, if nothing else is to be
/// written meanwhile: some two and a half minutes, longer than a lock or a restart of the database takes. Where several are
/// refused, and nothing is written, the store is what is wrong.
pub const REFUSALS_ALONE_MAX: u32 = 10;

const _: () = assert!(REFUSALS_MAX < REFUSALS_ALONE_MAX);

/// Quarantined executions that are remembered, and looked for. The set begins anew when it is full: then a parent may be
/// looked up twice, which costs a read and changes nothing.
pub const QUARANTINED_KNOWN_MAX: usize = 65_536;

/// Quarantined executions read at a time: with a reason of a sentence or two each, well below a megabyte.
pub const QUARANTINED_AT_A_TIME: usize = 1_000;

/// Quarantined executions whose parents are told by one batch. Each parent's journal is folded once for a batch, and one
/// batch is under way at a time.
pub const TOLD_AT_A_TIME: usize = 256;

/// Milliseconds after which a parent that could not be read is told again, doubled each time: the store answers again soon.
pub const TELL_AGAIN_MS_MIN: u64 = 20_000;

/// The longest pause between two such tries: whatever cannot be read for so long is read once in an hour.
pub const TELL_AGAIN_MS_MAX: u64 = 180 * TELL_AGAIN_MS_MIN;

/// Tries of a release from quarantine while the execution that waits for it goes on in between. Each reads that one's
/// journal; a parent with other branches goes on some times in a second, and not at each of so many looks.
pub const RELEASES_TRIED_MAX: u32 = 16;

/// New executions that cannot be written and are remembered by this process. There is nothing stored of them that could be
/// marked; beyond this number the oldest are tried again.
pub const UNWRITABLE_MAX: usize = 10_000;

/// Bytes of requests of callers that are not answered yet. A store that stands still for its longest timeout keeps no more
/// in memory; what comes beyond is refused and may be repeated.
pub const ASKED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of inbox messages that were taken in and of which nothing is durable yet. A message lies in memory decoded, in its
/// frame and in the commit: some four times as much. Beyond this the inbox is not read on; that the store keeps what waits
/// there costs this process nothing.
pub const TAKEN_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The same of messages to executions that cannot take them in yet, as a journal is being read or a function runs. A
/// function may run for a minute: what is beyond stays in the inbox, so that messages to other executions have room.
pub const HELD_UP_BYTES_MAX: usize = TAKEN_BYTES_MAX / 4;

/// Messages of one such execution, by count and by bytes.
pub const HELD_UP_EACH_MAX: usize = 256;

/// See [`HELD_UP_EACH_MAX`].
pub const HELD_UP_EACH_BYTES_MAX: usize = 1024 * 1024;

/// Requests of callers that are not answered yet: above what all connections of a server ask for at a time.
pub const ASKED_MAX: usize = 16_384;

/// Bytes of memory that the live executions of one organization take together at a node: two of the largest that one
/// execution may be. Beyond it the largest is canceled, so that a tenant ends its own work and nobody else's. Canceled
/// executions that have not stopped take as much again before their attempts are killed.
pub const ORGANIZATION_MEMORY_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Bytes of memory from which on an execution counts as large: the largest is canceled. Where all are smaller, the youngest
/// root is: which of many small ones is the largest is chance.
pub const LARGE_EXECUTION_BYTES_MIN: u64 = 1024 * 1024;

/// Bytes of memory that every live execution counts for at least, and the unit in which each is counted: what the shard
/// keeps of it beside its values.
pub const EXECUTION_BYTES_MIN: u64 = 8 * 1024;

// As many small executions as an organization may have are no reason to cancel one.
const _: () = assert!(EXECUTION_BYTES_MIN * ORGANIZATION_EXECUTIONS_MAX as u64 <= ORGANIZATION_MEMORY_BYTES_MAX);

/// Milliseconds for which the reading of a journal is held back at most while its organization has no room for it. After
/// that it is read, and the bound decides who is canceled: parents that fill the memory may wait for this very execution.
pub const HELD_BACK_MS_MAX: u64 = 60_000;

/// Milliseconds after which it is looked again whether there is room. Thousands may be held back.
pub const HELD_BACK_LOOK_MS: u64 = 4_000;

/// Bytes of memory of executions that stay at hand while nothing of them goes on.
pub const IDLE_BYTES_MAX: usize = 128 * 1024 * 1024;

const _: () = assert!(mainspring_kernel::limits::EXECUTION_MEMORY_BYTES_MAX <= ORGANIZATION_MEMORY_BYTES_MAX);

/// Journals read back at a time. One organization has half of the permits, rounded up, and another one that comes finds
/// some that are free. A store keeps about as many connections for readers; whoever recovers would open, and close again,
/// one for each of hundreds of threads.
pub const LOADS_AT_A_TIME: usize = 7;

/// Journals read back at a time without a look at the organizations of their executions, which costs a read of the store.
/// They leave one organization its own share, and others a free permit.
pub const UNSHARED_LOADS_MAX: usize = 2;

const _: () = assert!(UNSHARED_LOADS_MAX + (LOADS_AT_A_TIME - UNSHARED_LOADS_MAX).div_ceil(2) < LOADS_AT_A_TIME);

/// Evaluations that have a thread, most of them waiting for a worker. Loads, inbox reads and callers of this process take
/// their threads from the same 512 of the runtime.
pub const EVALUATIONS_AT_A_TIME: usize = 64;

/// Counts of an organization's executions, and looks for those that wait for a place, at a time. They have permits of their
/// own: behind loads of long journals, starts of all organizations would wait.
pub const COUNTS_AT_A_TIME: usize = 4;

/// Frames of an execution that wait for a watcher of a server. Each keeps its payloads in memory: an execution that goes on
/// fast would fill it while its watcher reads a long journal.
pub const WATCHED_FRAMES_MAX: usize = 64;

/// Files of this process that are for the store, for workers and for connections of operators, whatever tenants do.
pub const FILES_KEPT: u64 = 256;

/// Effects that are performed at a time, where nobody says otherwise: a quarter of the files that are left, as a script
/// has up to four (its two streams, the gate in front of it, its process).
pub fn effects_at_a_time(files: u64) -> usize {
    let share = usize::try_from(files.saturating_sub(FILES_KEPT) / 4).unwrap_or(usize::MAX);
    share.clamp(EFFECTS_AT_A_TIME_MIN, EFFECTS_AT_A_TIME_MAX)
}

/// With fewer, one organization that waits for slow peers would leave the others a handful.
pub const EFFECTS_AT_A_TIME_MIN: usize = 16;

/// Each effect may bring back 256 KiB of output: a gigabyte, where the store does not write meanwhile.
pub const EFFECTS_AT_A_TIME_MAX: usize = 4096;

/// Executions of one organization that have not ended, those included that others have started. One that waits for others
/// stays in the memory of a node with some 10 KiB: half a gigabyte, where one node holds all of them. A definition may start
/// 100,000 one after the other, and no workflow that anybody has shown needs half of them at a time.
pub const ORGANIZATION_EXECUTIONS_MAX: u32 = 50_000;

/// Milliseconds between the clock of a node and that of the store it shares, beyond which the node holds nothing. NTP keeps
/// clocks within some milliseconds, and a clock that was set by hand within a second or two; timers, deadlines and gates
/// may end early or late by as much.
pub const CLOCK_APART_MS_MAX: u64 = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_leave_files_for_everything_else() {
        for (files, effects) in [(0, 16), (256, 16), (1_024, 192), (65_536, 4_096), (u64::MAX, 4_096)] {
            assert_eq!(effects_at_a_time(files), effects, "{files}");
        }
    }
}
