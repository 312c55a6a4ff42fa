//! The system calls that a contained script may not use.
//!
//! This is a deny list, not an allow list: any program may run here, and the other layers do not depend on this one. It
//! removes the parts of the kernel in which most container escapes were found.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Compare, SeccompCondition as Condition,
    SeccompFilter, SeccompRule as Rule, apply_filter, sock_filter,
};

/// Refused with EPERM for any arguments.
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
    libc::SYS_quotactl_fd,
    STATMOUNT,
    LISTMOUNT,
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

/// The same, for calls that only this architecture has.
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

/// Socket families that programs need. The others are rarely used and little tested or, like AF_VSOCK, not separated by
/// namespaces.
const FAMILIES: [libc::c_int; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Requests of ioctl(2) that insert characters into a terminal's input.
const TERMINAL_INPUT: [u64; 2] = [0x5412, 0x541c];

/// Types of file system requests of ioctl(2), each with the requests that are allowed. The others allocate space like
/// fallocate(2) (`FS_IOC_RESVSP`, which the limit of a file's size does not bound), freeze a file system, or make
/// subvolumes, which a scan of a workspace does not enter (ioctl_list(2), linux/fs.h, linux/btrfs.h).
const FILE_SYSTEM_REQUESTS: &[(u64, &[u64])] = &[
    // 'X': introduced by XFS, used by every file system today.
    (0x58, &[]),
    // 'f': reads and sets attributes of files, and maps a file's blocks.
    (0x66, &[0x8008_6601, 0x4008_6602, 0x8004_6601, 0x4004_6602, 0xc020_660b]),
    // btrfs: allowed are FICLONE, FICLONERANGE and FIDEDUPERANGE, which every file system with shared blocks has.
    (0x94, &[0x4004_9409, 0x4020_940d, 0xc018_9436]),
    // f2fs.
    (0xf5, &[]),
];

/// The bits of a request that hold its type.
const REQUEST_TYPE: u64 = 0xff00;

/// The lowest number of a system call that this list was not reviewed for. It and all higher numbers fail with ENOSYS,
/// as on an older kernel. They include the x32 calls of x86-64 (bit 30), and numbers are the same on all architectures
/// from 424 on.
const FIRST_UNKNOWN: u32 = 467;

/// Mode bits that let a program run with the permissions of its file's owner or group. Such files outlive the
/// container, and they belong to root where the server runs as root.
const SET_ID: [u64; 2] = [0o4000, 0o2000];

/// Calls with a mode, and the index of that argument.
const MODES: &[(libc::c_long, u8)] =
    &[(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (FCHMODAT2, 2), (libc::SYS_mknodat, 2)];
#[cfg(target_arch = "x86_64")]
const MODES_HERE: &[(libc::c_long, u8)] = &[(libc::SYS_chmod, 1), (libc::SYS_creat, 1), (libc::SYS_mknod, 1)];
#[cfg(not(target_arch = "x86_64"))]
const MODES_HERE: &[(libc::c_long, u8)] = &[];

/// Calls whose mode counts only with a flag of [`MAKING`], and the index of the flags; the mode is the next argument.
#[cfg(target_arch = "x86_64")]
const OPENING: &[(libc::c_long, u8)] = &[(libc::SYS_openat, 2), (libc::SYS_open, 1)];
#[cfg(not(target_arch = "x86_64"))]
const OPENING: &[(libc::c_long, u8)] = &[(libc::SYS_openat, 2)];

/// Flags of open(2) that make a file. For `O_TMPFILE` it is the one bit that it does not share with `O_DIRECTORY`.
const MAKING: [u64; 2] = [libc::O_CREAT as u64, (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64];

/// Numbers that are the same on every architecture.
const FCHMODAT2: libc::c_long = 452;
const MEMFD_SECRET: libc::c_long = 447;
const STATMOUNT: libc::c_long = 457;
const LISTMOUNT: libc::c_long = 458;

/// Largest segment of shared memory (shmget(2)), in bytes, where the kernel does not account for unattached segments. A
/// container has at most 4,096 segments.
const SEGMENT_BYTES_MAX: u64 = 64 * 1024;

/// Largest set of semaphores (semget(2)) where the kernel does not account for them. A container has at most 32,000
/// sets.
const SEMAPHORES_MAX: u64 = 32;

type Rules = BTreeMap<i64, Vec<Rule>>;

/// Installs the filter for this thread and all that it starts; it cannot be removed. A call of another architecture
/// kills the process.
pub(super) fn install(is_memory_counted: bool) -> Result<(), String> {
    programs(is_memory_counted)?.iter().try_for_each(|program| apply_filter(program)).map_err(|error| error.to_string())
}

/// Compiles one program for each error.
fn programs(is_memory_counted: bool) -> Result<Vec<BpfProgram>, String> {
    let mut tables =
        vec![(refused(), libc::EPERM), (missing(is_memory_counted), libc::ENOSYS), (unsupported(), libc::EOPNOTSUPP)];
    if !is_memory_counted {
        tables.push((uncounted(), libc::ENOMEM));
    }
    let made = tables.into_iter().map(|(rules, errno)| program(rules?, errno));
    let made = [Ok(without_unknown())].into_iter().chain(made).collect::<Result<_, _>>();
    made.map_err(|error: seccompiler::BackendError| error.to_string())
}

/// Calls that fail with ENOSYS. Programs then use clone(2) and openat(2), whose flags a filter can see, instead of
/// clone3(2) and openat2(2). The contexts of io_setup(2) are limited for the whole machine. Memory that belongs to no
/// process is charged to control groups only, so without them the calls that allocate it are missing too.
fn missing(is_memory_counted: bool) -> Result<Rules, seccompiler::BackendError> {
    let whole = [libc::SYS_clone3, libc::SYS_openat2, libc::SYS_io_setup];
    let mut rules: Rules = whole.into_iter().map(|number| (number, Vec::new())).collect();
    if !is_memory_counted {
        let whole = [libc::SYS_memfd_create, MEMFD_SECRET, libc::SYS_msgget];
        rules.extend(whole.into_iter().map(|number| (number, Vec::new())));
        for (number, most) in [(libc::SYS_shmget, SEGMENT_BYTES_MAX), (libc::SYS_semget, SEMAPHORES_MAX)] {
            let large = Condition::new(1, Length::Qword, Compare::Gt, most)?;
            rules.insert(number, vec![Rule::new(vec![large])?]);
        }
    }
    Ok(rules)
}

/// Calls that fail with EOPNOTSUPP: one such call can fill the disk between two polls. Programs write zeros instead.
fn unsupported() -> Result<Rules, seccompiler::BackendError> {
    let others = |(kind, allowed): &(u64, &[u64])| {
        let is_type = Condition::new(1, Length::Dword, Compare::MaskedEq(REQUEST_TYPE), kind << 8);
        let is_other = allowed.iter().map(|request| Condition::new(1, Length::Dword, Compare::Ne, *request));
        Rule::new([is_type].into_iter().chain(is_other).collect::<Result<_, _>>()?)
    };
    let requests = FILE_SYSTEM_REQUESTS.iter().map(others).collect::<Result<_, _>>()?;
    Ok(Rules::from([(libc::SYS_fallocate, Vec::new()), (libc::SYS_ioctl, requests)]))
}

/// Memory that is charged to no process once its pages are unmapped: anonymous shared mappings.
fn uncounted() -> Result<Rules, seccompiler::BackendError> {
    let flags = u64::from((libc::MAP_SHARED | libc::MAP_ANONYMOUS).cast_unsigned());
    let shared = Condition::new(3, Length::Dword, Compare::MaskedEq(flags), flags)?;
    Ok(Rules::from([(libc::SYS_mmap, vec![Rule::new(vec![shared])?])]))
}

/// Builds a program that refuses all numbers from [`FIRST_UNKNOWN`] on.
fn without_unknown() -> BpfProgram {
    let statement = |code: u32, jt: u8, jf: u8, k: u32| sock_filter { code: code as u16, jt, jf, k };
    let refuse = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    vec![
        // The number of the call is the first word of the data that a program sees (seccomp(2)).
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, FIRST_UNKNOWN),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the errors with which the programs answer a call, evaluated as the kernel does (classic BPF over `struct
    /// seccomp_data`).
    fn errors(is_memory_counted: bool, number: i64, arguments: [u64; 4]) -> Vec<i32> {
        let mut data = [0u8; 64];
        data[..4].copy_from_slice(&u32::try_from(number).unwrap().to_ne_bytes());
        let architecture: u32 = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };
        data[4..8].copy_from_slice(&architecture.to_ne_bytes());
        for (index, argument) in arguments.into_iter().enumerate() {
            data[16 + 8 * index..24 + 8 * index].copy_from_slice(&argument.to_ne_bytes());
        }
        let answers = programs(is_memory_counted).unwrap().into_iter().map(|program| answer(&program, &data));
        answers.filter(|answer| *answer != libc::SECCOMP_RET_ALLOW).map(|answer| (answer & 0xffff) as i32).collect()
    }

    fn answer(program: &BpfProgram, data: &[u8; 64]) -> u32 {
        let (mut at, mut value) = (0usize, 0u32);
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
                0x06 => return step.k,
                other => panic!("an instruction {other:#x}"),
            }
        }
    }

    #[test]
    fn calls_are_refused_by_number_and_arguments() {
        let (preallocate, clone, flags) = (0x4030_5828, 0x4004_9409, 0x8008_6601);
        let (shared, private) = (0x21, 0x22);
        let (none, missing, unsupported) = (&[][..], &[libc::ENOSYS][..], &[libc::EOPNOTSUPP][..]);
        let cases = [
            (true, libc::SYS_read, [0; 4], none),
            (true, libc::SYS_fallocate, [0; 4], unsupported),
            (true, libc::SYS_ioctl, [0, preallocate, 0, 0], unsupported),
            (true, libc::SYS_ioctl, [0, preallocate | 0xffff_ffff_0000_0000, 0, 0], unsupported),
            (true, libc::SYS_ioctl, [0, 0x4030_582a, 0, 0], unsupported),
            (true, libc::SYS_ioctl, [0, 0x4030_5839, 0, 0], unsupported),
            (true, libc::SYS_ioctl, [0, 0x5000_940e, 0, 0], unsupported),
            (true, libc::SYS_ioctl, [0, clone, 0, 0], none),
            (true, libc::SYS_ioctl, [0, flags, 0, 0], none),
            (true, libc::SYS_ioctl, [0, 0x5401, 0, 0], none),
            (true, libc::SYS_ioctl, [0, 0x5412, 0, 0], &[libc::EPERM][..]),
            (true, libc::SYS_io_setup, [1, 0, 0, 0], missing),
            (true, i64::from(FIRST_UNKNOWN), [0; 4], missing),
            (true, i64::from(FIRST_UNKNOWN) - 1, [0; 4], none),
            (true, libc::SYS_mmap, [0, 4096, 3, shared], none),
            (false, libc::SYS_mmap, [0, 4096, 3, shared], &[libc::ENOMEM][..]),
            (false, libc::SYS_mmap, [0, 4096, 3, private], none),
            (false, libc::SYS_semget, [0, 32, 0, 0], none),
            (false, libc::SYS_semget, [0, 33, 0, 0], missing),
            (true, libc::SYS_semget, [0, 33, 0, 0], none),
        ];
        for (is_memory_counted, number, arguments, expected) in cases {
            assert_eq!(errors(is_memory_counted, number, arguments), expected, "{number} {arguments:x?}");
        }
    }
}
