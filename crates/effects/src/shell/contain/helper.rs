//! The process inside of a container that applies the inner protections and then becomes bash, or another program.

use std::{
    convert::Infallible,
    ffi::OsString,
    io::{self, Write},
    os::{fd::AsFd, unix::process::CommandExt},
    path::PathBuf,
    process::{Command, Stdio},
};

use landlock::{
    ABI, Access, AccessFs, BitFlags, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::{
    fs::statvfs,
    io::Errno,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

use super::{
    Landlock, Protections, filter,
    hidden::{Identity, identity},
    order::Order,
    priority,
};
use crate::shell::limits::{
    COMPUTING_SECONDS_MAX, DATA_BYTES_MAX, DISK_FREE_BYTES_MIN, FILE_BYTES_MAX, FILE_BYTES_MIN, FILES_MAX,
    PROCESSES_HARD_MAX, READY_BYTES, TEXTS_BYTES_MAX,
};

/// The hidden argument with which an executable of this project becomes the helper. The kind of memory accounting and
/// the writable folders follow it.
pub const HELPER_ARGUMENT: &str = "contain-for-parent";

/// The next argument: whether the kernel accounts for the memory of the script, or only the parent polls it.
pub(super) const MEMORY_COUNTED: &str = "memory-counted";
pub(super) const MEMORY_WATCHED: &str = "memory-watched";

/// The argument of the trial. Paths follow, and the helper reports the identities of the files that it sees there.
pub(super) const LOOK: &str = "--look";

/// The helper's report that all protections are in force: these bytes, a digit for Landlock, a line feed. The parent
/// sends the script after it.
const READY: &[u8] = b"mainspring contains: ";

/// The index of the workspace in the list of writable folders.
const WORKSPACE: usize = 2;

const _: () = assert!(READY.len() + 2 == READY_BYTES);

/// Runs as the helper if this process was started as one. Returns an exit code only on failure: on success the process
/// has become the program.
pub fn serve_if_helper(mut arguments: impl Iterator<Item = OsString>) -> Option<u8> {
    if arguments.nth(1)? != HELPER_ARGUMENT {
        return None;
    }
    let is_memory_counted = arguments.next().is_some_and(|word| word == MEMORY_COUNTED);
    let (mut writable, mut looked_for) = (Vec::new(), None);
    for argument in arguments {
        match &mut looked_for {
            None if argument == LOOK => looked_for = Some(Vec::new()),
            None => writable.push(PathBuf::from(argument)),
            Some(paths) => paths.push(PathBuf::from(argument)),
        }
    }
    if let Some(paths) = looked_for {
        let told = build(&writable, is_memory_counted).and_then(|()| tell(&paths).map_err(|error| error.to_string()));
        return Some(told.map_or_else(failed, |()| 0));
    }
    let Err(why) = serve(&writable, is_memory_counted);
    Some(failed(why))
}

fn failed(why: String) -> u8 {
    let _ = writeln!(io::stderr(), "{why}");
    126
}

/// Prints the identity of each visible file, and a hyphen for each other path.
fn tell(paths: &[PathBuf]) -> io::Result<()> {
    let mut stdout = io::stdout();
    for path in paths {
        match identity(path) {
            Some((device, number)) => writeln!(stdout, "{device}:{number}")?,
            None => writeln!(stdout, "-")?,
        }
    }
    stdout.flush()
}

/// Parses what a helper has printed about `count` paths.
pub(super) fn seen(told: &[u8], count: usize) -> Option<Vec<Option<Identity>>> {
    let line = |line: &str| match line.split_once(':') {
        Some((device, number)) => Some(Some((device.parse().ok()?, number.parse().ok()?))),
        None => (line == "-").then_some(None),
    };
    let seen: Option<Vec<_>> = std::str::from_utf8(told).ok()?.lines().map(line).collect();
    seen.filter(|seen| seen.len() == count)
}

/// Applies the protections and reports them to the parent.
fn build(writable: &[PathBuf], is_memory_counted: bool) -> Result<(), String> {
    let landlock = restrict(writable).map_err(|error| format!("Landlock: {error}"))?;
    limit(writable.get(WORKSPACE))?;
    priority::run_last()?;
    filter::install(is_memory_counted).map_err(|error| format!("seccomp: {error}"))?;
    let mut stdout = io::stdout();
    let told = stdout.write_all(READY).and_then(|()| stdout.write_all(&[digit(landlock), b'\n']));
    told.and_then(|()| stdout.flush()).map_err(|error| format!("nobody listens: {error}"))
}

fn serve(writable: &[PathBuf], is_memory_counted: bool) -> Result<Infallible, String> {
    build(writable, is_memory_counted)?;
    let bytes = read_order().map_err(|error| format!("the order cannot be read: {error}"))?;
    let order = Order::decode(&bytes).ok_or("the order to run something did not come whole, so nothing was run")?;
    drop(bytes);
    let Order { program, arguments, variables, keeps_input } = order;
    let mut command = Command::new(&program);
    command.args(arguments).env_clear().envs(variables);
    if !keeps_input {
        command.stdin(Stdio::null());
    }
    let error = command.exec();
    let help = match error.kind() {
        io::ErrorKind::NotFound => "; it is not among the files that containers show (`--scripts-read` shows more)",
        _ => "",
    };
    Err(format!("{program} cannot be run in the container: {error}{help}"))
}

/// Reads the message without a buffer, since the rest of the input is the program's.
fn read_order() -> io::Result<Vec<u8>> {
    let stdin = io::stdin();
    let mut bytes = vec![0; 4];
    fill(&stdin, &mut bytes)?;
    let length = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
    if length > TEXTS_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    bytes.resize(4 + length, 0);
    fill(&stdin, &mut bytes[4..])?;
    Ok(bytes)
}

fn fill(input: impl AsFd, mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::read(&input, &mut *bytes) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => bytes = &mut bytes[count..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Allows reading and executing of all that the container shows, and writing to the given folders only. Devices cannot
/// be made anywhere; abstract sockets and signals reach only processes of this container.
fn restrict(writable: &[PathBuf]) -> Result<Landlock, landlock::RulesetError> {
    let abi = ABI::V6;
    let made: BitFlags<AccessFs> = AccessFs::MakeChar | AccessFs::MakeBlock;
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(abi))?
        .scope(Scope::from_all(abi))?
        .create()?
        .add_rules(path_beneath_rules(["/"], AccessFs::from_read(abi)))?
        .add_rules(path_beneath_rules(writable, AccessFs::from_all(abi) & !made))?
        .restrict_self()?;
    Ok(match status.ruleset {
        RulesetStatus::FullyEnforced => Landlock::Full,
        RulesetStatus::PartiallyEnforced => Landlock::Partial,
        RulesetStatus::NotEnforced => Landlock::Missing,
    })
}

/// Sets the limits of each process; the parent watches the sums. A file may not grow larger than the space that is free
/// on the disk now.
fn limit(workspace: Option<&PathBuf>) -> Result<(), String> {
    let free = workspace.and_then(|workspace| statvfs(workspace).ok());
    let free = free.map_or(FILE_BYTES_MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    let file = free.saturating_sub(DISK_FREE_BYTES_MIN).clamp(FILE_BYTES_MIN, FILE_BYTES_MAX);
    let limits = [
        // Unlike 0, a limit of 1 also keeps the host from piping a core dump to a handler (`core_pattern`, core(5)).
        (Resource::Core, 1),
        (Resource::Fsize, file),
        (Resource::Nofile, FILES_MAX),
        (Resource::Nproc, PROCESSES_HARD_MAX),
        (Resource::Data, DATA_BYTES_MAX),
        (Resource::Cpu, COMPUTING_SECONDS_MAX),
        (Resource::Msgqueue, 0),
    ];
    for (resource, most) in limits {
        // A lower limit stays in force.
        let most = Some(getrlimit(resource).maximum.map_or(most, |hard| hard.min(most)));
        let set = setrlimit(resource, Rlimit { current: most, maximum: most });
        set.map_err(|error| format!("the limit {resource:?} cannot be set: {error}"))?;
    }
    Ok(())
}

fn digit(landlock: Landlock) -> u8 {
    match landlock {
        Landlock::Full => b'2',
        Landlock::Partial => b'1',
        Landlock::Missing => b'0',
    }
}

/// Parses the helper's report.
pub(crate) fn protections(told: &[u8]) -> Option<Protections> {
    let landlock = match told.strip_prefix(READY)?.strip_suffix(b"\n")? {
        b"2" => Landlock::Full,
        b"1" => Landlock::Partial,
        b"0" => Landlock::Missing,
        _ => return None,
    };
    Some(Protections { landlock })
}
