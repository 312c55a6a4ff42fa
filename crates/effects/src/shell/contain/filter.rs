//! The system calls that a contained script is refused.
//!
//! A list of what is refused, and not of what is allowed: any program may run here, and the walls around do not need this
//! one. It takes away the parts of the kernel in which most ways out of containers were found.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Compare, SeccompCondition as Condition,
    SeccompFilter, SeccompRule as Rule, apply_filter, sock_filter,
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

/// Numbers of the x32 system calls of x86-64 have this bit. All of them are refused.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// Bits of a mode that let a program run with the rights of its file's owner or group. Such files outlive the container,
/// and where the server is root they are root's.
const SET_ID: [u64; 2] = [0o4000, 0o2000];

/// Calls with a mode, and the place of that among their arguments.
const MODES: &[(libc::c_long, u8)] =
    &[(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (FCHMODAT2, 2), (libc::SYS_mknodat, 2)];
#[cfg(target_arch = "x86_64")]
const MODES_HERE: &[(libc::c_long, u8)] = &[(libc::SYS_chmod, 1), (libc::SYS_creat, 1), (libc::SYS_mknod, 1)];
#[cfg(not(target_arch = "x86_64"))]
const MODES_HERE: &[(libc::c_long, u8)] = &[];

/// Calls with a mode that counts only with one of [`MAKING`], and the place of the flags, behind which it stands.
#[cfg(target_arch = "x86_64")]
const OPENING: &[(libc::c_long, u8)] = &[(libc::SYS_openat, 2), (libc::SYS_open, 1)];
#[cfg(not(target_arch = "x86_64"))]
const OPENING: &[(libc::c_long, u8)] = &[(libc::SYS_openat, 2)];

/// Flags of open(2) that make a file. That of `O_TMPFILE` is the one bit that it does not share with `O_DIRECTORY`.
const MAKING: [u64; 2] = [libc::O_CREAT as u64, (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64];

/// The same number on every architecture.
const FCHMODAT2: libc::c_long = 452;
const MEMFD_SECRET: libc::c_long = 447;

/// Bytes of one segment of shared memory (shmget(2)) where nothing counts those that nobody has attached. There are at most
/// 4,096 in a container.
const SEGMENT_BYTES_MAX: u64 = 64 * 1024;

type Rules = BTreeMap<i64, Vec<Rule>>;

/// Filters this thread's system calls, and those of all that it starts, for good. Calls of another architecture end the
/// process.
pub(super) fn install(is_memory_counted: bool) -> Result<(), String> {
    let text = |error: seccompiler::Error| error.to_string();
    let of = |rules: Result<Rules, _>, errno| {
        let program = rules.and_then(|rules| program(rules, errno));
        program.map_err(|error: seccompiler::BackendError| error.to_string())
    };
    let programs = [
        of(refused(), libc::EPERM)?,
        of(missing(is_memory_counted), libc::ENOSYS)?,
        // A disk that is taken by one call is full before anybody looks. Programs write zeros where this is refused.
        of(Ok(Rules::from([(libc::SYS_fallocate, Vec::new())])), libc::EOPNOTSUPP)?,
    ];
    #[cfg(target_arch = "x86_64")]
    apply_filter(&without_x32()).map_err(text)?;
    programs.iter().try_for_each(|program| apply_filter(program).map_err(text))
}

/// Calls that a program finds missing. Instead of clone3(2) and openat2(2) it uses clone(2) and openat(2), whose flags a
/// filter can see. Memory without a process that has it is counted by control groups or by nobody.
fn missing(is_memory_counted: bool) -> Result<Rules, seccompiler::BackendError> {
    let mut rules = Rules::from([(libc::SYS_clone3, Vec::new()), (libc::SYS_openat2, Vec::new())]);
    if !is_memory_counted {
        rules.extend([(libc::SYS_memfd_create, Vec::new()), (MEMFD_SECRET, Vec::new())]);
        let large = Condition::new(1, Length::Qword, Compare::Gt, SEGMENT_BYTES_MAX)?;
        rules.insert(libc::SYS_shmget, vec![Rule::new(vec![large])?]);
    }
    Ok(rules)
}

/// A program that refuses all numbers with [`X32`], also those that only x32 has.
#[cfg(target_arch = "x86_64")]
fn without_x32() -> BpfProgram {
    let statement = |code: u32, jt: u8, jf: u8, k: u32| sock_filter { code: code as u16, jt, jf, k };
    let refuse = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    vec![
        // The number of the call is the first word of what a program sees (seccomp(2)).
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 0, 1, X32),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, refuse),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
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
    let bit = |place: u8, bit: u64| Condition::new(place, Length::Dword, Compare::MaskedEq(bit), bit);
    for (number, place) in MODES.iter().chain(MODES_HERE) {
        let set_id = |wanted: &u64| Rule::new(vec![bit(*place, *wanted)?]);
        rules.insert(*number, SET_ID.iter().map(set_id).collect::<Result<_, _>>()?);
    }
    for (number, flags) in OPENING {
        let pairs = SET_ID.iter().flat_map(|mode| MAKING.iter().map(move |flag| (mode, flag)));
        let made = |(mode, flag): (&u64, &u64)| Rule::new(vec![bit(*flags, *flag)?, bit(flags + 1, *mode)?]);
        rules.insert(*number, pairs.map(made).collect::<Result<_, _>>()?);
    }
    rules.insert(libc::SYS_ioctl, TERMINAL_INPUT.iter().map(request).collect::<Result<_, _>>()?);
    Ok(rules)
}

fn program(rules: Rules, errno: libc::c_int) -> Result<BpfProgram, seccompiler::BackendError> {
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let architecture = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture)?.try_into()
}
