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

/// Types of requests of ioctl(2) for file systems, each with those that are allowed. The others allocate space as
/// fallocate(2) does (`FS_IOC_RESVSP`, which no limit of a file's size bounds), freeze a file system, or make subvolumes,
/// which a look through a workspace does not enter (ioctl_list(2), linux/fs.h, linux/btrfs.h).
const FILE_SYSTEM_REQUESTS: &[(u64, &[u64])] = &[
    // 'X', of XFS first, of every file system today.
    (0x58, &[]),
    // 'f': attributes of files, read and set, and where a file's blocks are.
    (0x66, &[0x8008_6601, 0x4008_6602, 0x8004_6601, 0x4004_6602, 0xc020_660b]),
    // That of btrfs: FICLONE, FICLONERANGE, FIDEDUPERANGE, which every file system with shared blocks has.
    (0x94, &[0x4004_9409, 0x4020_940d, 0xc018_9436]),
    // That of f2fs.
    (0xf5, &[]),
];

/// The bits of a request that are its type.
const REQUEST_TYPE: u64 = 0xff00;

/// The first number of a system call that nobody has looked at for this list: it and all above are missing to scripts, as
/// they are on an older kernel. The x32 calls of x86-64 are among them (bit 30), and numbers are the same on all
/// architectures from 424 on.
const FIRST_UNKNOWN: u32 = 467;

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
const STATMOUNT: libc::c_long = 457;
const LISTMOUNT: libc::c_long = 458;

/// Bytes of one segment of shared memory (shmget(2)) where nothing counts those that nobody has attached. There are at most
/// 4,096 in a container.
const SEGMENT_BYTES_MAX: u64 = 64 * 1024;

/// Semaphores of one set (semget(2)) where nothing counts them. There are at most 32,000 sets in a container.
const SEMAPHORES_MAX: u64 = 32;

type Rules = BTreeMap<i64, Vec<Rule>>;

/// Filters this thread's system calls, and those of all that it starts, for good. Calls of another architecture end the
/// process.
pub(super) fn install(is_memory_counted: bool) -> Result<(), String> {
    programs(is_memory_counted)?.iter().try_for_each(|program| apply_filter(program)).map_err(|error| error.to_string())
}

/// One program for each error.
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

/// Calls that a program finds missing. Instead of clone3(2) and openat2(2) it uses clone(2) and openat(2), whose flags a
/// filter can see. The contexts of io_setup(2) are counted for the whole machine. Memory without a process that has it is
/// counted by control groups or by nobody.
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

/// A disk that is taken by one call is full before anybody looks. Programs write zeros where this is refused.
fn unsupported() -> Result<Rules, seccompiler::BackendError> {
    let others = |(kind, allowed): &(u64, &[u64])| {
        let is_type = Condition::new(1, Length::Dword, Compare::MaskedEq(REQUEST_TYPE), kind << 8);
        let is_other = allowed.iter().map(|request| Condition::new(1, Length::Dword, Compare::Ne, *request));
        Rule::new([is_type].into_iter().chain(is_other).collect::<Result<_, _>>()?)
    };
    let requests = FILE_SYSTEM_REQUESTS.iter().map(others).collect::<Result<_, _>>()?;
    Ok(Rules::from([(libc::SYS_fallocate, Vec::new()), (libc::SYS_ioctl, requests)]))
}

/// Memory that is in no process's account once its pages are let go of: anonymous and shared.
fn uncounted() -> Result<Rules, seccompiler::BackendError> {
    let flags = u64::from((libc::MAP_SHARED | libc::MAP_ANONYMOUS).cast_unsigned());
    let shared = Condition::new(3, Length::Dword, Compare::MaskedEq(flags), flags)?;
    Ok(Rules::from([(libc::SYS_mmap, vec![Rule::new(vec![shared])?])]))
}

/// A program that refuses all numbers from [`FIRST_UNKNOWN`] on.
fn without_unknown() -> BpfProgram {
    let statement = |code: u32, jt: u8, jf: u8, k: u32| sock_filter { code: code as u16, jt, jf, k };
    let refuse = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    vec![
        // The number of the call is the first word of what a program sees (seccomp(2)).
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

    /// The errors that the programs answer a call with, worked out as the kernel does (classic BPF over `struct
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
