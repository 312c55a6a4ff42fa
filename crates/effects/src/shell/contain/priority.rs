//! Priorities that prefer the server to scripts when memory or processors run short.

use std::{fs, io};

use rustix::process::{Pid, setpriority_process};

use crate::shell::limits::{NICE, OUT_OF_MEMORY_SCORE};

/// Makes the kernel kill a process and all of its later children before other processes when memory runs out
/// (proc_pid_oom_score_adj(5)). A container has no writable `/proc`, so a script cannot undo it.
pub(crate) fn end_first(process: Pid) -> io::Result<()> {
    fs::write(format!("/proc/{}/oom_score_adj", process.as_raw_pid()), OUT_OF_MEMORY_SCORE.to_string())
}

/// Lowers the share of the processors of a process's session where the kernel divides them by session (sched(7),
/// autogroup). Elsewhere it does nothing.
pub(crate) fn run_session_last(process: Pid) {
    let _ = fs::write(format!("/proc/{}/autogroup", process.as_raw_pid()), NICE.to_string());
}

/// Lowers the priority of this process and of all that it starts.
pub(super) fn run_last() -> Result<(), String> {
    setpriority_process(None, NICE).map_err(|error| format!("its priority cannot be set: {error}"))
}
