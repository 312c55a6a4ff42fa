//! Every bound of the shell executor, each with its reason.

use std::time::Duration;

use mainspring_kernel::limits::OUTPUT_BYTES_MAX;

/// Default time between SIGTERM and SIGKILL.
pub const GRACE_DEFAULT: Duration = Duration::from_secs(10);

/// Bytes kept of each of stdout and stderr, before and after decoding; the rest is only counted.
pub const STREAM_BYTES_MAX: usize = 64 * 1024;

/// Bytes kept from the end of a stream beyond [`STREAM_BYTES_MAX`], to find its last line.
pub(super) const TAIL_BYTES_MAX: usize = 1024;

/// Characters of the last line of stderr in a failure's message.
pub(super) const LAST_LINE_CHARS_MAX: usize = 200;

/// Bytes of one read from a pipe: a quarter of a pipe's capacity, so that reads are large enough and an idle step uses
/// little memory.
pub(super) const READ_BYTES_MAX: usize = 16 * 1024;

/// Bytes read from a pipe after its script has ended. The capacity of a pipe is at most this (`pipe-max-size`,
/// proc(5)), so it covers all that the script wrote. Without a bound, a background process that keeps writing would be
/// read forever.
pub(super) const DRAIN_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of a process record, which has four short lines.
pub(super) const PROCESS_RECORD_BYTES_MAX: usize = 1024;

/// Pause between two reads of `/proc` where the kernel gives no handle that reports a process's end.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Tries to read the environment of a process that loads its program, [`LOAD_LOOK_AGAIN`] apart. Loading takes less
/// than a millisecond, but a process of low priority on a busy machine may be suspended in the middle of it.
pub(super) const LOAD_LOOKS_MAX: u32 = 5000;

/// Pause between two such tries.
pub(super) const LOAD_LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Bytes of an environment that one call reads: more than almost all environments have.
pub(super) const ENVIRONMENT_READ_BYTES: usize = 256 * 1024;

/// Time before a sweep for zombies, so that one sweep reaps several orphans. Zombies of this age cost nothing.
pub(super) const ORPHANS_WAIT: Duration = Duration::from_millis(500);

/// Time to wait for members of a group after SIGKILL. A process that hangs inside the kernel, on a disk or a network
/// file system that does not respond, ends only when that responds; its step ends here and reports it.
pub(super) const KILLED_WAIT_MAX: Duration = Duration::from_secs(30);

/// Time to build a container. It usually takes some milliseconds, and more on a machine under load.
pub(super) const CONTAINER_START_MAX: Duration = Duration::from_secs(30);

/// Bytes of the helper's report that all protections are in force.
pub(super) const READY_BYTES: usize = 23;

/// Bytes of one argument or variable, including its NUL (`MAX_ARG_STRLEN`, execve(2)).
pub(super) const TEXT_BYTES_MAX: usize = 128 * 1024;

/// Bytes of the command and the environment together: three quarters of the size that Linux allows under the usual
/// limit of the stack (8 MiB). The rest remains for the program's own arguments.
pub(super) const TEXTS_BYTES_MAX: usize = 1_572_864;

/// Concurrent processes of one contained script: a parallel build on a large machine has some hundred.
pub(super) const PROCESSES_MAX: u64 = 512;

/// The same bound where the kernel enforces it. It is higher than the polled one, so that a script which forks without
/// end is ended with a message, instead of failing at its bound forever.
pub(super) const PROCESSES_HARD_MAX: u64 = 2 * PROCESSES_MAX;

/// Open files of one contained process: the usual soft limit of Linux.
pub(super) const FILES_MAX: u64 = 1024;

/// Bytes of one file of a contained script: a large archive. [`WORKSPACE_BYTES_MAX`] bounds the sum.
pub(super) const FILE_BYTES_MAX: u64 = 2 << 30;

/// Bytes of private memory of one contained process. Its address space is not bounded, since runtimes such as Node.js
/// and Go reserve far more than they use.
pub(super) const DATA_BYTES_MAX: u64 = 2 << 30;

/// Threads of one contained script, including processes, where they are only polled: the kernel does not bound those of
/// root.
pub(super) const THREADS_MAX: u64 = 4 * PROCESSES_MAX;

/// Processor seconds of one contained process, so that an endless loop ends within a working day.
pub(super) const COMPUTING_SECONDS_MAX: u64 = 4 * 3600;

/// Processor seconds of all processes of a script together, including those that have ended: six processors for a
/// working day.
pub(super) const ALL_COMPUTING_SECONDS_MAX: u64 = 48 * 3600;

/// The nice value of contained processes, the lowest priority (setpriority(2)).
pub(super) const NICE: i32 = 19;

/// The `oom_score_adj` of contained processes: the kernel kills them first when memory runs out.
pub(super) const OUT_OF_MEMORY_SCORE: u32 = 1000;

/// The weight of all scripts of a node together where control groups divide the processors: half of that of one other
/// process or group at the same level. Idle processors are theirs without limit.
pub(super) const ALL_WEIGHT: u64 = 50;

/// The same in version 1, where the default is 1,024 and not 100.
pub(super) const ALL_SHARES: u64 = 512;

/// Bytes of memory of all processes of a contained script: enough for the linker of a large program.
pub(super) const MEMORY_BYTES_MAX: u64 = 3 << 30;

/// The same bound where control groups enforce it. They also count tmpfs and caches. It is higher than the polled one,
/// so that a script usually gets a message before the kernel kills one of its processes.
pub(super) const MEMORY_BYTES_HARD_MAX: u64 = 4 << 30;

/// Bytes of `/tmp` in a container, which is in memory.
pub(super) const TMP_BYTES_MAX: u64 = 512 << 20;

/// Bytes of `/dev/shm` in a container, which is in memory.
pub(super) const SHM_BYTES_MAX: u64 = 64 << 20;

/// Bytes of the files of a workspace: a checkout, its dependencies and the results of a build.
pub(super) const WORKSPACE_BYTES_MAX: u64 = 8 << 30;

/// Files and folders of a workspace, since inodes can run out like bytes.
pub(super) const WORKSPACE_ENTRIES_MAX: u64 = 500_000;

/// Nesting of folders in a workspace, since a scan keeps each parent folder open. Nested dependencies of a large
/// program reach a depth of about thirty.
pub(super) const WORKSPACE_DEPTH_MAX: usize = 100;

/// Bytes that stay free on the disk of the workspaces for the server's own commits. Contained scripts are ended when
/// less is left. A disk that writes 2 GB/s fills a fifth of this between two polls.
pub(super) const DISK_FREE_BYTES_MIN: u64 = 512 << 20;

/// Inodes that stay free on it, or a twentieth of all inodes if that is less.
pub(super) const DISK_FREE_FILES_MIN: u64 = 20_000;

/// Multiple of that reserve that must be free to start a script of an organization whose workspaces use most of the
/// disk.
pub(super) const DISK_START_SHARE: u64 = 4;

/// The same multiple for a running script: it is ended before those of other organizations.
pub(super) const DISK_RUNNING_SHARE: u64 = 2;

/// The divisor of a disk's bytes and inodes that gives the most that one workspace may use.
pub(super) const WORKSPACE_DISK_SHARE: u64 = 4;

/// Bytes needed to open a store. If a starting server has less, files of workspaces are removed until twice as many are
/// free.
pub(super) const START_BYTES_MIN: u64 = 64 << 20;

/// Bytes that one file may have on a disk that is nearly full, so that a script can still write an error message.
pub(super) const FILE_BYTES_MIN: u64 = 1 << 20;

/// Interval of the polls of a contained script's processes, memory and free disk.
pub(super) const QUOTA_LOOK: Duration = Duration::from_millis(100);

/// Pause after a poll, as a multiple of its duration, so that slow polls use little of a processor.
pub(super) const QUOTA_LOOK_SHARE: u32 = 10;

/// Scripts whose processes are read at the same time. A read takes some microseconds with control groups, and up to
/// some milliseconds without them.
pub(super) const LOOKS_AT_A_TIME: usize = 2;

/// Open descriptors of a script's processes that are checked for unnamed files: each takes some microseconds.
pub(super) const DESCRIPTORS_LOOKED_AT_MAX: usize = 16_384;

/// Kernel memory of a file in `/tmp` or `/dev/shm`, in bytes, in addition to its content.
pub(super) const INODE_BYTES: u64 = 1024;

/// Kernel memory of a thread in bytes: its stack and its structures.
pub(super) const THREAD_BYTES: u64 = 24 * 1024;

/// Least time between two scans of a workspace to which little is written.
pub(super) const DISK_LOOK_MIN: Duration = Duration::from_secs(1);

/// Longest time between two scans, so that a script cannot make them rare by files that take long to count.
pub(super) const DISK_LOOK_MAX: Duration = Duration::from_secs(5);

/// Pause after a scan, as a multiple of its duration, so that slow scans use little of a processor.
pub(super) const DISK_LOOK_SHARE: u32 = 20;

/// Loss of free bytes on the disk at which a workspace is scanned at once.
pub(super) const DISK_LOOK_BYTES: u64 = 256 << 20;

/// Workspaces that are scanned at the same time. Each scan holds one open file for every level of folders.
pub(super) const DISK_WALKS_AT_A_TIME: usize = 8;

/// The same bound for one organization.
pub(super) const DISK_WALKS_OF_ORGANIZATION: usize = 2;

/// The share of the machine's memory for all scripts of a node together, where control groups enforce it. The rest is
/// for the node, its store and other services.
pub(super) const ALL_MEMORY_SHARE: (u64, u64) = (3, 4);

/// Processes of all scripts of a node together, where control groups enforce it: a quarter of the usual `pid_max`.
pub(super) const ALL_PROCESSES_MAX: u64 = 8_192;

/// Tries to make the control groups of a script if something else removes them at the same time.
pub(super) const CONFINE_TRIES: u32 = 3;

const _: () = assert!(MEMORY_BYTES_MAX >= TMP_BYTES_MAX + SHM_BYTES_MAX && MEMORY_BYTES_HARD_MAX > MEMORY_BYTES_MAX);
const _: () = assert!(FILE_BYTES_MAX <= WORKSPACE_BYTES_MAX);
const _: () = assert!(2 * STREAM_BYTES_MAX < OUTPUT_BYTES_MAX, "both streams fit into one step's output");
const _: () = assert!(TAIL_BYTES_MAX >= 4 * LAST_LINE_CHARS_MAX, "the longest last line fits into the tail");
const _: () = assert!(TAIL_BYTES_MAX <= STREAM_BYTES_MAX && READ_BYTES_MAX <= DRAIN_BYTES_MAX);
