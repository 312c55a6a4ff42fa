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

/// How often a process is asked for its environment while it loads its program, [`LOAD_LOOK_AGAIN`] apart. Loading takes
/// less than a millisecond; a process of low priority on a busy machine may be stopped in the middle of it.
pub(super) const LOAD_LOOKS_MAX: u32 = 5000;

/// How long to wait before a process that loads its program is asked for its environment again.
pub(super) const LOAD_LOOK_AGAIN: Duration = Duration::from_millis(1);

/// How long an orphan that has ended may stay a zombie, at least: a long time for a machine, and nothing to a person.
pub(super) const ORPHANS_WAIT: Duration = Duration::from_millis(500);

/// How long members of a group that were sent SIGKILL are waited for. A process that hangs inside the kernel, on a disk or
/// a network file system that does not answer, ends when that answers; its step ends here and says so.
pub(super) const KILLED_WAIT_MAX: Duration = Duration::from_secs(30);

/// How long a container may take to be made. It takes some milliseconds; a machine under load takes longer.
pub(super) const CONTAINER_START_MAX: Duration = Duration::from_secs(30);

/// Bytes that the helper says when all walls stand.
pub(super) const READY_BYTES: usize = 23;

/// Bytes of one argument or variable, its ending NUL included (`MAX_ARG_STRLEN`, execve(2)).
pub(super) const TEXT_BYTES_MAX: usize = 128 * 1024;

/// Bytes of the command and the environment together: three quarters of what Linux allows under the usual limit of the stack
/// (8 MiB), the rest is for the program's own.
pub(super) const TEXTS_BYTES_MAX: usize = 1_572_864;

/// Processes of one contained script at a time: a parallel build on a large machine has some hundred.
pub(super) const PROCESSES_MAX: u64 = 512;

/// The same, where the kernel enforces it: above what is watched, so that a script which makes processes without end is ended
/// and told, and not kept at its bound for ever.
pub(super) const PROCESSES_HARD_MAX: u64 = 2 * PROCESSES_MAX;

/// Open files of one contained process: the usual soft limit of Linux.
pub(super) const FILES_MAX: u64 = 1024;

/// Bytes of one file of a contained script: a large archive; disks are bounded by [`WORKSPACE_BYTES_MAX`].
pub(super) const FILE_BYTES_MAX: u64 = 2 << 30;

/// Bytes of private memory of one contained process. Its address space is not bounded: runtimes as Node.js and Go reserve
/// far more than they use.
pub(super) const DATA_BYTES_MAX: u64 = 2 << 30;

/// Threads of one contained script, processes included, where nothing but a look counts them: the kernel does not bound
/// those of root.
pub(super) const THREADS_MAX: u64 = 4 * PROCESSES_MAX;

/// Seconds of a processor for one contained process, so that one that computes for nothing ends within a working day.
pub(super) const COMPUTING_SECONDS_MAX: u64 = 4 * 3600;

/// The same for all processes of a script together, of those too that have ended: a working day of six processors.
pub(super) const ALL_COMPUTING_SECONDS_MAX: u64 = 48 * 3600;

/// The priority of contained processes, the least of the usual ones (setpriority(2)).
pub(super) const NICE: i32 = 19;

/// What the kernel is told of contained processes for the case that memory runs out: they go before anything else.
pub(super) const OUT_OF_MEMORY_SCORE: u32 = 1000;

/// The weight of all scripts of a node together where control groups share out processors: half of what one other process
/// or group at the same place has. They have all that nobody else wants.
pub(super) const ALL_WEIGHT: u64 = 50;

/// The same in version 1, where the usual value is 1,024 and not 100.
pub(super) const ALL_SHARES: u64 = 512;

/// Bytes of memory of all processes of a contained script: what a linker of a large program needs.
pub(super) const MEMORY_BYTES_MAX: u64 = 3 << 30;

/// The same, where control groups enforce it. They count files in memory and caches too, and come second, so that a script
/// is usually told what it did before the kernel ends one of its processes.
pub(super) const MEMORY_BYTES_HARD_MAX: u64 = 4 << 30;

/// Bytes of `/tmp` in a container, which are memory.
pub(super) const TMP_BYTES_MAX: u64 = 512 << 20;

/// Bytes of `/dev/shm` in a container, which are memory.
pub(super) const SHM_BYTES_MAX: u64 = 64 << 20;

/// Bytes that the files of a workspace may take: a checkout, its dependencies and what is built.
pub(super) const WORKSPACE_BYTES_MAX: u64 = 8 << 30;

/// Files and folders of a workspace: inodes can run out as bytes can.
pub(super) const WORKSPACE_ENTRIES_MAX: u64 = 500_000;

/// Folders in each other in a workspace: each is open while what is in it is looked at. Nested dependencies of a large
/// program lie some thirty deep.
pub(super) const WORKSPACE_DEPTH_MAX: usize = 100;

/// Bytes that stay free on the disk of the workspaces, for the server's own commits. Contained scripts are ended where less
/// is left. A disk that writes 2 GB/s takes a fifth of this between two looks.
pub(super) const DISK_FREE_BYTES_MIN: u64 = 512 << 20;

/// Files that stay free on it likewise, or a twentieth of all that it can have, where that is less.
pub(super) const DISK_FREE_FILES_MIN: u64 = 20_000;

/// How often that has to be free for a script of an organization to begin whose workspaces hold most of the disk.
pub(super) const DISK_BEGIN_SHARE: u64 = 4;

/// The same for one that runs to go on: it is ended before those of others.
pub(super) const DISK_GO_ON_SHARE: u64 = 2;

/// The part of all files that a disk can have, or of its bytes, that one workspace may have at most.
pub(super) const WORKSPACE_DISK_SHARE: u64 = 4;

/// Bytes without which no store can be opened: at the start of a server with less, workspaces lose files until there are twice
/// as many.
pub(super) const START_BYTES_MIN: u64 = 64 << 20;

/// Bytes that one file may have where the disk is nearly full: a script still says why it fails.
pub(super) const FILE_BYTES_MIN: u64 = 1 << 20;

/// How often processes, memory and free disk of a contained script are looked at.
pub(super) const QUOTA_LOOK: Duration = Duration::from_millis(100);

/// The same in lengths of the last such look, where that took long: looking takes little of a processor.
pub(super) const QUOTA_LOOK_SHARE: u32 = 10;

/// Scripts whose processes are looked at at a time. It takes some microseconds with control groups, and at most some
/// milliseconds without them.
pub(super) const LOOKS_AT_A_TIME: usize = 2;

/// Open files of a script's processes that are looked at for files without a name: each takes some microseconds.
pub(super) const DESCRIPTORS_LOOKED_AT_MAX: usize = 16_384;

/// Bytes of the kernel for a file of `/tmp` and of `/dev/shm`, beside what is in it.
pub(super) const INODE_BYTES: u64 = 1024;

/// Bytes of the kernel for a thread: its stack, and what it is known by.
pub(super) const THREAD_BYTES: u64 = 24 * 1024;

/// How long after the last look through its workspace a script is looked at again, at least, where little was written.
pub(super) const DISK_LOOK_MIN: Duration = Duration::from_secs(1);

/// The same, at most, so that nobody makes looks rare by files that take long to count.
pub(super) const DISK_LOOK_MAX: Duration = Duration::from_secs(5);

/// The same in lengths of the last look, so that looking takes little of a processor where it need not be often.
pub(super) const DISK_LOOK_SHARE: u32 = 20;

/// Bytes that the disk has less for which a workspace is looked through at once.
pub(super) const DISK_LOOK_BYTES: u64 = 256 << 20;

/// Workspaces that are looked through at a time. Each look has as many files open as folders lie in each other.
pub(super) const DISK_WALKS_AT_A_TIME: usize = 8;

/// The same of one organization.
pub(super) const DISK_WALKS_OF_ORGANIZATION: usize = 2;

/// The share of the machine's memory that all scripts of a node have together, where control groups enforce it: the rest is
/// for the node, its store and what else runs.
pub(super) const ALL_MEMORY_SHARE: (u64, u64) = (3, 4);

/// Processes of all scripts of a node together, where control groups enforce it: a quarter of the usual `pid_max`.
pub(super) const ALL_PROCESSES_MAX: u64 = 8_192;

/// How often the control groups of a script are made anew that somebody has removed meanwhile.
pub(super) const CONFINE_TRIES: u32 = 3;

const _: () = assert!(MEMORY_BYTES_MAX >= TMP_BYTES_MAX + SHM_BYTES_MAX && MEMORY_BYTES_HARD_MAX > MEMORY_BYTES_MAX);
const _: () = assert!(FILE_BYTES_MAX <= WORKSPACE_BYTES_MAX);
const _: () = assert!(2 * STREAM_BYTES_MAX < OUTPUT_BYTES_MAX, "both streams fit into one step's output");
const _: () = assert!(TAIL_BYTES_MAX >= 4 * LAST_LINE_CHARS_MAX, "the longest last line fits into the tail");
const _: () = assert!(TAIL_BYTES_MAX <= STREAM_BYTES_MAX && READ_BYTES_MAX <= DRAIN_BYTES_MAX);
