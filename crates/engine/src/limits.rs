//! Bounds of the engine that one tenant, one row or one clock could otherwise exceed, each with its reason.

/// Bytes of frames, values and messages in one commit, unless a single part is larger. PostgreSQL accepts at most 1 GB
/// in one message and statements are canceled after half a minute. This is far below both, and large enough that the
/// number of commits does not bound throughput.
pub const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Organizations that both had turns within this time share the driver. Commands, timers and split turns are then
/// processed in turns between them, and the bounds below apply. In milliseconds: it includes an organization that
/// starts an execution every few seconds.
pub const SHARED_MS: u64 = 10_000;

/// Executions of one organization in a shared commit. The next commit of another organization waits for them.
/// A commit of a single organization has thousands.
pub const SHARED_PARTS_MAX: usize = 4;

/// Bytes of one organization in a shared commit, unless a single part is larger.
pub const SHARED_BYTES_MAX: usize = 32 * 1024;

/// After a turn with this many records, the next turn of the execution is decided outside the driver, while several
/// organizations share it. A turn has up to 4,096 records, and one of this length takes less than a millisecond.
pub const LONG_TURN_RECORDS: usize = 256;

/// Steps of a plan without loops whose first turn is always decided in the driver.
pub const SHORT_PLAN_STEPS_MAX: usize = 64;

/// While several organizations share the driver and this many executions wait for a commit, messages stay in the inbox.
/// An organization that starts executions faster than they are written then fills the store and not the memory.
pub const SHARED_GATHERED_MAX: usize = 512;

/// Timers fired per event while several organizations share the driver: an event of one organization waits at most a
/// millisecond for timers of others.
pub const SHARED_TIMERS_AT_A_TIME: usize = 8;

/// Refused commits of a single execution before it is quarantined, if other executions are written in between. More
/// than one, since a refusal may be caused by a lock of another transaction.
pub const REFUSALS_MAX: u32 = 3;

/// Refused commits of a single execution before it is quarantined, if no other execution is written in between: about
/// two and a half minutes, longer than a lock or a restart of the database. If several are refused and none is written,
/// the store is the cause.
pub const REFUSALS_ALONE_MAX: u32 = 10;

const _: () = assert!(REFUSALS_MAX < REFUSALS_ALONE_MAX);

/// Remembered quarantined executions. A full set forgets the executions whose parents were notified, so that a parent may be
/// read twice, which has no effect. The set grows beyond the bound only while parents are still to be notified.
pub const QUARANTINED_KNOWN_MAX: usize = 65_536;

/// Quarantined executions per read: with a reason of one or two sentences each, well below a megabyte.
pub const QUARANTINED_AT_A_TIME: usize = 1_000;

/// Quarantined executions in one batch of notifications. The journal of each parent is folded once per batch, and one
/// batch is in progress at a time.
pub const NOTIFIED_AT_A_TIME: usize = 256;

/// Milliseconds until an unreadable parent is notified again, doubled each time. A store usually answers again soon.
pub const NOTIFY_RETRY_MS_MIN: u64 = 20_000;

/// Longest pause between two such tries: a parent that stays unreadable is read once an hour.
pub const NOTIFY_RETRY_MS_MAX: u64 = 180 * NOTIFY_RETRY_MS_MIN;

/// Tries of a release from quarantine whose parent changes in between. Each try reads the journal of the parent. A
/// parent with other branches changes some times per second, but not during each of so many tries.
pub const RELEASES_TRIED_MAX: u32 = 16;

/// Remembered new executions that cannot be written. Nothing of them is stored that could be marked. Beyond this
/// number, the oldest are tried again.
pub const UNWRITABLE_MAX: usize = 10_000;

/// Bytes of pending requests of callers. A store that hangs for its longest timeout keeps no more in memory. Further
/// requests are refused and can be repeated.
pub const ASKED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of received inbox messages without a durable result. A message is in memory decoded, in its frame and in the
/// commit, about four times its size. Beyond this the inbox is not read, and messages that wait in the store cost this
/// process nothing.
pub const TAKEN_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The same, for messages to executions that cannot process input at present, since a journal is being read or a
/// function runs. A function may run for a minute. Further messages stay in the inbox, so that messages to other
/// executions have room.
pub const HELD_UP_BYTES_MAX: usize = TAKEN_BYTES_MAX / 4;

/// Messages of one such execution, by count.
pub const HELD_UP_EACH_MAX: usize = 256;

/// Messages of one such execution, by bytes. See [`HELD_UP_EACH_MAX`].
pub const HELD_UP_EACH_BYTES_MAX: usize = 1024 * 1024;

/// Pending requests of callers: more than all connections of a server request at a time.
pub const ASKED_MAX: usize = 16_384;

/// Bytes of memory of all active executions of one organization on a node: twice the bound of one execution. Beyond it
/// the largest is canceled, so that a tenant only ends its own work. Canceled executions that have not stopped may take
/// as much again before their attempts are killed.
pub const ORGANIZATION_MEMORY_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Bytes of memory from which an execution counts as large. The largest of them is canceled. If all are smaller, the
/// newest root is canceled, since the largest of many small ones is random.
pub const LARGE_EXECUTION_BYTES_MIN: u64 = 1024 * 1024;

/// Minimum and unit of the counted bytes of an active execution: the memory that the shard needs beside its values.
pub const EXECUTION_BYTES_MIN: u64 = 8 * 1024;

// The largest number of small executions of an organization fits into its memory.
const _: () = assert!(EXECUTION_BYTES_MIN * ORGANIZATION_EXECUTIONS_MAX as u64 <= ORGANIZATION_MEMORY_BYTES_MAX);

/// Longest delay of reading a journal while its organization has no memory for it, in milliseconds. Then it is read and
/// the bound selects an execution to cancel, since the parents that fill the memory may wait for this one.
pub const HELD_BACK_MS_MAX: u64 = 60_000;

/// Milliseconds between two checks for memory. Thousands of executions may wait.
pub const HELD_BACK_RETRY_MS: u64 = 4_000;

/// Bytes of memory of idle executions.
pub const IDLE_BYTES_MAX: usize = 128 * 1024 * 1024;

const _: () = assert!(mainspring_kernel::limits::EXECUTION_MEMORY_BYTES_MAX <= ORGANIZATION_MEMORY_BYTES_MAX);

/// Longest time by which a wait for a permit postpones the timeout of an attempt, in milliseconds. The steps of a large
/// loop wait for each other for many minutes. Beyond an hour the timeout fires, since the effects before the attempt
/// may never end.
pub const PERMIT_WAIT_MS_MAX: u64 = 3_600_000;

/// Journals loaded at a time. One organization gets half of the permits, rounded up, and a second one finds some free.
/// A store has about as many connections for readers. With one thread per execution, recovery would open and close
/// hundreds of connections.
pub const LOADS_AT_A_TIME: usize = 7;

/// Loads at a time without reading the organizations of their executions, which costs a read of the store. They leave
/// the share of one organization and a free permit for others.
pub const UNSHARED_LOADS_MAX: usize = 2;

const _: () = assert!(UNSHARED_LOADS_MAX + (LOADS_AT_A_TIME - UNSHARED_LOADS_MAX).div_ceil(2) < LOADS_AT_A_TIME);

/// Evaluations with a thread, most of which wait for a worker. Loads, inbox reads and callers of this process share the
/// same 512 threads of the runtime.
pub const EVALUATIONS_AT_A_TIME: usize = 64;

/// Counts of unfinished executions, and reads of queued ones, at a time. They have permits of their own, since starts
/// of all organizations would otherwise wait behind loads of long journals.
pub const COUNTS_AT_A_TIME: usize = 4;

/// Frames that wait for a watcher of a server. Each holds its values in memory, which a fast execution would fill while
/// its watcher reads a long journal.
pub const WATCHED_FRAMES_MAX: usize = 64;

/// Files of this process for the store, for workers and for connections of operators, independent of tenants.
pub const FILES_KEPT: u64 = 256;

/// Default number of effects at a time: a quarter of the remaining files, since a script has up to four (two streams,
/// the start barrier, the process).
pub fn effects_at_a_time(files: u64) -> usize {
    let share = usize::try_from(files.saturating_sub(FILES_KEPT) / 4).unwrap_or(usize::MAX);
    share.clamp(EFFECTS_AT_A_TIME_MIN, EFFECTS_AT_A_TIME_MAX)
}

/// With fewer, an organization that waits for slow peers would leave a handful to the others.
pub const EFFECTS_AT_A_TIME_MIN: usize = 16;

/// Each effect may produce 256 KiB of output: a gigabyte in total while the store does not write.
pub const EFFECTS_AT_A_TIME_MAX: usize = 4096;

/// Unfinished executions of one organization, including children. A parent that waits for children takes some 10 KiB of
/// memory: half a gigabyte if one node owns all of them. A definition can start 100,000 children one after the other,
/// and no known workflow needs half of them at a time.
pub const ORGANIZATION_EXECUTIONS_MAX: u32 = 50_000;

/// Difference in milliseconds between the clocks of a node and its shared store beyond which the node owns no
/// partitions. NTP keeps clocks within some milliseconds, and setting a clock by hand is exact to a second or two.
/// Timers, deadlines and gates may end early or late by as much.
pub const CLOCK_APART_MS_MAX: u64 = 2_000;

/// Longest time of a lease of budgets, in milliseconds. A budget that is set, changed or removed concerns running agents
/// within this time; a shorter one means more requests to the store.
pub const LEASE_OF_BUDGETS_MS_MAX: u64 = 300_000;

/// The time for which a node remembers that no budget of a day or a month applies to executions of an organization. A new
/// budget applies to executions that start later than this. The store answers one request in this time for each organization.
pub const UNBUDGETED_MS_MAX: u64 = 5_000;

/// Requests for leases of budgets that a node sends at a time. Those for the same account wait for each other in the store,
/// and more of them would take all connections.
pub const LEASES_AT_A_TIME: usize = 8;

/// Organizations of which a node remembers that no budget of a day or a month applies. Others cost a request to the
/// store for each lease.
pub const UNBUDGETED_ORGANIZATIONS_MAX: usize = 10_000;

/// Workflows that a node remembers so for each organization with budgets of other workflows.
pub const UNBUDGETED_WORKFLOWS_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_leave_file_descriptors_for_other_uses() {
        for (files, effects) in [(0, 16), (256, 16), (1_024, 192), (65_536, 4_096), (u64::MAX, 4_096)] {
            assert_eq!(effects_at_a_time(files), effects, "{files}");
        }
    }
}
