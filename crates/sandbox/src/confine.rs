//! The privileges that a worker drops before it reads untrusted code.
//!
//! The interpreter alone is meant to contain the code. This is defense in depth, for the case that the interpreter has
//! a defect.

use crate::limits::{ADDRESS_SPACE_BYTES_MAX, FILES_MAX, NICE};

/// The restrictions in force for a worker. A worker runs without those that the kernel rejects, and reports them here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Limits of memory, open files, file sizes and core dumps.
    pub resource_limits: bool,
    /// No program that it could start has more privileges than it has (`no_new_privs`).
    pub no_new_privileges: bool,
    /// A filter allows only a short list of system calls.
    pub system_calls: bool,
    /// The kernel kills it when its parent ends.
    pub ends_with_parent: bool,
    /// It has no capability. A worker started by root runs as `nobody`, with an empty folder as its root.
    pub no_capabilities: bool,
}

impl Confinement {
    /// Formats the restrictions as a JSON object.
    pub fn to_json(&self) -> String {
        format!(
            r#"{{"resourceLimits":{},"noNewPrivileges":{},"systemCalls":{},"endsWithParent":{},"noCapabilities":{}}}"#,
            self.resource_limits,
            self.no_new_privileges,
            self.system_calls,
            self.ends_with_parent,
            self.no_capabilities
        )
    }
}

/// Confines this process until it ends.
pub fn confine() -> Confinement {
    platform::end_first();
    // Without permission, the worker keeps its priority.
    let _ = rustix::process::setpriority_process(None, NICE);
    // Evaluated in this order: changing the user clears the signal for the parent's death, which is therefore set
    // afterwards (prctl(2)).
    Confinement {
        no_capabilities: platform::drop_root_privileges(),
        ends_with_parent: platform::end_with_parent(),
        resource_limits: limit_resources(),
        no_new_privileges: platform::forbid_new_privileges(),
        system_calls: platform::filter_system_calls(),
    }
}

fn limit_resources() -> bool {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let limits = [
        (Resource::As, ADDRESS_SPACE_BYTES_MAX),
        // Unlike 0, a limit of 1 also keeps the host from piping a core dump to a handler (`core_pattern`, core(5)).
        (Resource::Core, 1),
        (Resource::Fsize, 0),
        (Resource::Nofile, FILES_MAX),
    ];
    let set =
        limits.map(|(resource, limit)| setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) }));
    set.iter().all(Result::is_ok)
}

/// Makes the kernel end this process when it computes for longer than this from now on. A parent ends it sooner; the
/// limit covers a parent that has exited.
pub(crate) fn limit_computing(wall_ms_max: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    use rustix::time::{ClockId, clock_gettime};
    let used = clock_gettime(ClockId::ProcessCPUTime).tv_sec.unsigned_abs();
    let current = Some(used + wall_ms_max.div_ceil(1_000) + 2);
    // Without permission, the parent's own limit remains.
    let _ = setrlimit(Resource::Cpu, Rlimit { current, maximum: getrlimit(Resource::Cpu).maximum });
}

#[cfg(target_os = "linux")]
mod platform {
    use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};
    use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
        apply_filter_all_threads,
    };
    use std::collections::BTreeMap;
    use std::env::consts::ARCH;
    use std::process;

    /// The user `nobody`, by its usual number on Linux.
    const NOBODY: u32 = 65_534;

    /// The allowed calls: reading and writing open files, memory, the clock, waking threads, exiting. Calls that only
    /// some architectures have are not needed.
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

    /// Makes the kernel kill this process before its parent when memory runs out (proc_pid_oom_score_adj(5)).
    pub(super) fn end_first() {
        let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    }

    pub(super) fn end_with_parent() -> bool {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL)).is_ok()
    }

    pub(super) fn forbid_new_privileges() -> bool {
        rustix::thread::set_no_new_privs(true).is_ok()
    }

    /// Drops root's privileges in all threads: an empty root folder, and the user `nobody`. The user changes only if
    /// the parent, which has the same capabilities, can still kill a process of another user.
    pub(super) fn drop_root_privileges() -> bool {
        let Ok(CapabilitySets { effective, .. }) = capabilities(None) else { return false };
        let needed = CapabilitySet::KILL | CapabilitySet::SETUID | CapabilitySet::SETGID;
        if effective.contains(CapabilitySet::SYS_CHROOT) {
            // A folder of this process that cannot be written to, and that is empty after the process has ended.
            let _ = rustix::process::chroot("/proc/self/fdinfo").and_then(|()| rustix::process::chdir("/"));
        }
        if effective.contains(needed) {
            let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
            let _ = setgroups(&[]).and_then(|()| setgid(group)).and_then(|()| setuid(user));
        }
        let none = CapabilitySet::empty();
        let _ = set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none });
        capabilities(None).is_ok_and(|left| left.effective.is_empty() && left.permitted.is_empty())
    }

    /// Restricts some calls: signals to this process, limits of this process, memory that is not executable.
    fn conditions() -> Option<Vec<(libc::c_long, SeccompRule)>> {
        let only = |argument, length, operator, value| {
            SeccompRule::new(vec![SeccompCondition::new(argument, length, operator, value).ok()?]).ok()
        };
        let (short, is) = (SeccompCmpArgLen::Dword, SeccompCmpOp::Eq);
        let executed = u64::from(libc::PROT_EXEC.unsigned_abs());
        let not_executed = || only(2, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(executed), 0);
        Some(vec![
            (libc::SYS_tgkill, only(0, short.clone(), is.clone(), u64::from(process::id()))?),
            (libc::SYS_prlimit64, only(0, short, is, 0)?),
            (libc::SYS_mmap, not_executed()?),
            (libc::SYS_mprotect, not_executed()?),
        ])
    }

    /// Installs the filter. Other calls fail with EPERM and do not kill the process, so that a later C library that
    /// tries a new call falls back instead of breaking every worker.
    pub(super) fn filter_system_calls() -> bool {
        program().is_some_and(|program| apply_filter_all_threads(&program).is_ok())
    }

    pub(super) fn program() -> Option<BpfProgram> {
        let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
            SYSTEM_CALLS.into_iter().map(|number| (number, Vec::new())).collect();
        rules.extend(conditions()?.into_iter().map(|(number, rule)| (number, vec![rule])));
        let filter = SeccompFilter::new(rules, refuse, SeccompAction::Allow, ARCH.try_into().ok()?).ok()?;
        filter.try_into().ok()
    }
}

/// On other systems a worker is only a separate process.
#[cfg(not(target_os = "linux"))]
mod platform {
    pub(super) fn end_first() {}

    pub(super) fn end_with_parent() -> bool {
        false
    }

    pub(super) fn drop_root_privileges() -> bool {
        false
    }

    pub(super) fn forbid_new_privileges() -> bool {
        false
    }

    pub(super) fn filter_system_calls() -> bool {
        false
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::platform::program;

    /// Evaluates the filter for a call as the kernel does (classic BPF over `struct seccomp_data`).
    fn allows(number: libc::c_long, arguments: [u64; 3]) -> bool {
        let mut data = [0u8; 64];
        data[..4].copy_from_slice(&u32::try_from(number).unwrap().to_ne_bytes());
        let architecture: u32 = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };
        data[4..8].copy_from_slice(&architecture.to_ne_bytes());
        for (index, argument) in arguments.into_iter().enumerate() {
            data[16 + 8 * index..24 + 8 * index].copy_from_slice(&argument.to_ne_bytes());
        }
        let (program, mut at, mut value) = (program().unwrap(), 0usize, 0u32);
        loop {
            let step = &program[at];
            at += 1;
            let jump = |is_so: bool| usize::from(if is_so { step.jt } else { step.jf });
            match step.code {
                0x20 => {
                    let from = step.k as usize;
                    value = u32::from_ne_bytes(data[from..from + 4].try_into().unwrap());
                }
                0x05 => at += step.k as usize,
                0x15 => at += jump(value == step.k),
                0x25 => at += jump(value > step.k),
                0x35 => at += jump(value >= step.k),
                0x45 => at += jump(value & step.k != 0),
                0x54 => value &= step.k,
                0x06 => return step.k == 0x7fff_0000,
                other => panic!("an instruction {other:#x}"),
            }
        }
    }

    #[test]
    fn calls_are_allowed_by_their_arguments() {
        let own = u64::from(std::process::id());
        let (read, write, execute) = (1, 2, 4);
        let cases = [
            (libc::SYS_tgkill, [own, own, 6], true),
            (libc::SYS_tgkill, [own - 1, own - 1, 9], false),
            (libc::SYS_tgkill, [1, 1, 9], false),
            (libc::SYS_prlimit64, [0, 7, 0], true),
            (libc::SYS_prlimit64, [own - 1, 7, 0], false),
            (libc::SYS_mmap, [0, 4096, read | write], true),
            (libc::SYS_mmap, [0, 4096, read | execute], false),
            (libc::SYS_mprotect, [0, 4096, read], true),
            (libc::SYS_mprotect, [0, 4096, read | write | execute], false),
            (libc::SYS_read, [0, 0, 0], true),
            (libc::SYS_openat, [0, 0, 0], false),
            (libc::SYS_kill, [own, 9, 0], false),
        ];
        for (number, arguments, expected) in cases {
            assert_eq!(allows(number, arguments), expected, "{number} {arguments:?}");
        }
    }
}
