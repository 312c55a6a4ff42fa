//! What a worker takes from itself before it reads strangers' code.
//!
//! Nothing here is needed for the code to be held: that is the interpreter's doing. This is for the day when the
//! interpreter has a defect.

use crate::limits::{ADDRESS_SPACE_BYTES_MAX, FILES_MAX};

/// What holds a worker. Where the kernel refuses something, the worker goes on without and says so here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Limits of memory, files, file sizes and core dumps.
    pub resource_limits: bool,
    /// No program that it could start would have more rights than it has.
    pub no_new_privileges: bool,
    /// Only a short list of system calls is left.
    pub system_calls: bool,
    /// The kernel ends it when its parent ends.
    pub ends_with_parent: bool,
}

impl Confinement {
    /// As a JSON object.
    pub fn to_json(&self) -> String {
        format!(
            r#"{{"resourceLimits":{},"noNewPrivileges":{},"systemCalls":{},"endsWithParent":{}}}"#,
            self.resource_limits, self.no_new_privileges, self.system_calls, self.ends_with_parent
        )
    }
}

/// Confines this process for the rest of its life.
pub fn confine() -> Confinement {
    Confinement {
        ends_with_parent: platform::end_with_parent(),
        resource_limits: limit_resources(),
        no_new_privileges: platform::renounce_privileges(),
        system_calls: platform::filter_system_calls(),
    }
}

fn limit_resources() -> bool {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let limits = [
        (Resource::As, ADDRESS_SPACE_BYTES_MAX),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nofile, FILES_MAX),
    ];
    let set =
        limits.map(|(resource, limit)| setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) }));
    set.iter().all(Result::is_ok)
}

/// Lets the kernel end this process when it computes for longer than this from now. A parent ends it sooner; this is
/// for a parent that is gone.
pub(crate) fn limit_computing(wall_ms_max: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    use rustix::time::{ClockId, clock_gettime};
    let used = clock_gettime(ClockId::ProcessCPUTime).tv_sec.unsigned_abs();
    let current = Some(used + wall_ms_max.div_ceil(1_000) + 2);
    // Where it is refused, the parent is still there.
    let _ = setrlimit(Resource::Cpu, Rlimit { current, maximum: getrlimit(Resource::Cpu).maximum });
}

#[cfg(target_os = "linux")]
mod platform {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter_all_threads};
    use std::env::consts::ARCH;

    /// What is left: read and write what is open, memory, the clock, waking threads, ending. Of what only some
    /// architectures have, nothing is needed.
    const SYSTEM_CALLS: [libc::c_long; 26] = [
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_close,
        libc::SYS_brk,
        libc::SYS_mmap,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_mprotect,
        libc::SYS_madvise,
        libc::SYS_futex,
        libc::SYS_clock_gettime,
        libc::SYS_getrandom,
        libc::SYS_sched_yield,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_tgkill,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_restart_syscall,
        libc::SYS_prlimit64,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_gettimeofday,
    ];

    pub(super) fn end_with_parent() -> bool {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL)).is_ok()
    }

    pub(super) fn renounce_privileges() -> bool {
        rustix::thread::set_no_new_privs(true).is_ok()
    }

    /// Everything else fails with EPERM rather than ending the process: a C library of another day that asks for
    /// something new shall find it missing, and not break every call.
    pub(super) fn filter_system_calls() -> bool {
        let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let rules = SYSTEM_CALLS.into_iter().map(|number| (number, Vec::new())).collect();
        let program: Option<BpfProgram> = ARCH
            .try_into()
            .ok()
            .and_then(|arch| SeccompFilter::new(rules, refuse, SeccompAction::Allow, arch).ok())
            .and_then(|filter| filter.try_into().ok());
        program.is_some_and(|program| apply_filter_all_threads(&program).is_ok())
    }
}

/// Elsewhere a worker is a process of its own, and no more than that.
#[cfg(not(target_os = "linux"))]
mod platform {
    pub(super) fn end_with_parent() -> bool {
        false
    }

    pub(super) fn renounce_privileges() -> bool {
        false
    }

    pub(super) fn filter_system_calls() -> bool {
        false
    }
}
