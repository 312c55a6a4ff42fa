//! Who goes first when there is not enough: a script before the server.

use std::{fs, io};

use rustix::process::{Pid, setpriority_process};

use crate::shell::limits::{NICE, OUT_OF_MEMORY_SCORE};

/// Lets the kernel end a process before others when memory runs out, and all that it starts from now on
/// (proc_pid_oom_score_adj(5)). A container shows no `/proc` that can be written to, so nothing in it takes that back.
pub(crate) fn end_first(process: Pid) -> io::Result<()> {
    fs::write(format!("/proc/{}/oom_score_adj", process.as_raw_pid()), OUT_OF_MEMORY_SCORE.to_string())
}

/// Gives the session of a process little of the processors where the kernel shares them out by sessions (sched(7),
/// autogroup). Elsewhere nothing is done.
pub(crate) fn run_session_last(process: Pid) {
    let _ = fs::write(format!("/proc/{}/autogroup", process.as_raw_pid()), NICE.to_string());
}

/// Gives this process, and all that it starts, little of the processors.
pub(super) fn run_last() -> Result<(), String> {
    setpriority_process(None, NICE).map_err(|error| format!("its priority cannot be set: {error}"))
}
