//! The system calls that a contained script is refused.
//!
//! A list of what is refused, and not of what is allowed: any program may run here, and the walls around do not need this
//! one. It takes away the parts of the kernel in which most ways out of containers were found.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Compare, SeccompCondition as Condition,
    SeccompFilter, SeccompRule as Rule, apply_filter,
};

/// Refused with EPERM whatever their arguments are.
const REFUSED: &[libc::c_long] = &[
    // Other processes: their memory, their descriptors.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_process_madvise,
    // The file system as a whole.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_quotactl,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_fanotify_init,
    libc::SYS_nfsservctl,
    // Namespaces.
    libc::SYS_unshare,
    libc::SYS_setns,
    // Keys, which no namespace separates.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Programs and rings in the kernel.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // The machine.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_lookup_dcookie,
];

/// Those that only this architecture has.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[libc::c_long] =
    &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt, libc::SYS_uselib, libc::SYS_ustat, libc::SYS_sysfs];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[libc::c_long] = &[];

/// Flags of clone(2) that make namespaces.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Families of sockets that programs need. Others are rarely used and little tested, or, as AF_VSOCK, know no namespaces.
const FAMILIES: [libc::c_int; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Requests of ioctl(2) that put characters into a terminal's input.
const TERMINAL_INPUT: [u64; 2] = [0x5412, 0x541c];

/// Numbers of the x32 system calls of x86-64 are the others with this bit.
#[cfg(target_arch = "x86_64")]
const X32: libc::c_long = 0x4000_0000;

type Rules = BTreeMap<i64, Vec<Rule>>;

/// Filters this thread's system calls, and those of all that it starts, for good. Calls of another architecture end the
/// process.
pub(super) fn install() -> Result<(), String> {
    let text = |error: seccompiler::Error| error.to_string();
    // Programs that find clone3(2) missing use clone(2), whose flags a filter can see.
    let missing = Rules::from([(libc::SYS_clone3, Vec::new())]);
    for (rules, errno) in [(refused().map_err(|error| error.to_string())?, libc::EPERM), (missing, libc::ENOSYS)] {
        apply_filter(&program(rules, errno).map_err(|error| error.to_string())?).map_err(text)?;
    }
    Ok(())
}

fn refused() -> Result<Rules, seccompiler::BackendError> {
    let mut rules: Rules = REFUSED.iter().chain(REFUSED_HERE).map(|number| (*number, Vec::new())).collect();
    let flag = |flag: &libc::c_int| {
        let flag = u64::from(flag.cast_unsigned());
        Rule::new(vec![Condition::new(0, Length::Dword, Compare::MaskedEq(flag), flag)?])
    };
    rules.insert(libc::SYS_clone, NAMESPACES.iter().map(flag).collect::<Result<_, _>>()?);
    let other = |family: &libc::c_int| Condition::new(0, Length::Dword, Compare::Ne, u64::from(family.cast_unsigned()));
    let others = || Rule::new(FAMILIES.iter().map(other).collect::<Result<_, _>>()?);
    rules.insert(libc::SYS_socket, vec![others()?]);
    rules.insert(libc::SYS_socketpair, vec![others()?]);
    let request = |request: &u64| Rule::new(vec![Condition::new(1, Length::Dword, Compare::Eq, *request)?]);
    rules.insert(libc::SYS_ioctl, TERMINAL_INPUT.iter().map(request).collect::<Result<_, _>>()?);
    Ok(rules)
}

fn program(mut rules: Rules, errno: libc::c_int) -> Result<BpfProgram, seccompiler::BackendError> {
    #[cfg(target_arch = "x86_64")]
    {
        let x32: Rules = rules.iter().map(|(number, rules)| (number | X32, rules.clone())).collect();
        rules.extend(x32);
    }
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let architecture = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture)?.try_into()
}
