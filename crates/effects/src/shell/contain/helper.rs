//! The process inside of a container that builds the inner walls and then becomes bash.

use std::{
    convert::Infallible,
    ffi::OsString,
    io::{self, Read, Write},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Command, Stdio},
};

use landlock::{
    ABI, Access, AccessFs, BitFlags, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{Landlock, Walls, filter, order::Order};
use crate::shell::limits::{
    COMPUTING_SECONDS_MAX, DATA_BYTES_MAX, FILE_BYTES_MAX, FILES_MAX, PROCESSES_HARD_MAX, READY_BYTES,
};

/// The hidden argument with which an executable of ours becomes the helper. Folders that may be written to follow it.
pub const HELPER_ARGUMENT: &str = "contain-for-parent";

/// What the helper says once all walls stand: this, a digit for Landlock, a line feed. Its parent sends the order then.
const READY: &[u8] = b"mainspring contains: ";

const _: () = assert!(READY.len() + 2 == READY_BYTES);

/// Runs as the helper, if that is what this process was started for. Returns only when that fails, with an exit code: the
/// process has become bash otherwise.
pub fn serve_if_helper(mut arguments: impl Iterator<Item = OsString>) -> Option<u8> {
    if arguments.nth(1)? != HELPER_ARGUMENT {
        return None;
    }
    let Err(why) = serve(arguments.map(PathBuf::from).collect());
    let _ = writeln!(io::stderr(), "{why}");
    Some(126)
}

fn serve(writable: Vec<PathBuf>) -> Result<Infallible, String> {
    let landlock = restrict(&writable).map_err(|error| format!("Landlock: {error}"))?;
    filter::install().map_err(|error| format!("seccomp: {error}"))?;
    limit()?;
    let mut stdout = io::stdout();
    let told = stdout.write_all(READY).and_then(|()| stdout.write_all(&[digit(landlock), b'\n']));
    told.and_then(|()| stdout.flush()).map_err(|error| format!("nobody listens: {error}"))?;
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes).map_err(|error| format!("the order cannot be read: {error}"))?;
    let order = Order::decode(&bytes).ok_or("the order to run something did not come whole, so nothing was run")?;
    drop(bytes);
    let mut command = Command::new(&order.bash);
    command.args(["-lc", "--", &order.command]).env_clear().envs(order.variables).stdin(Stdio::null());
    let error = command.exec();
    Err(format!("{} cannot be run in the container: {error}", order.bash))
}

/// Reading and executing is for everything that the container shows, writing for the given folders alone. No device can be
/// made anywhere; sockets without a path and signals reach processes of this container only.
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

/// Limits of each process; those of all together are the parent's to watch.
fn limit() -> Result<(), String> {
    let limits = [
        (Resource::Core, 0),
        (Resource::Fsize, FILE_BYTES_MAX),
        (Resource::Nofile, FILES_MAX),
        (Resource::Nproc, PROCESSES_HARD_MAX),
        (Resource::Data, DATA_BYTES_MAX),
        (Resource::Cpu, COMPUTING_SECONDS_MAX),
        (Resource::Msgqueue, 0),
    ];
    for (resource, most) in limits {
        // A limit that is lower already stays.
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

/// The walls that a helper has told of.
pub(crate) fn walls(told: &[u8]) -> Option<Walls> {
    let landlock = match told.strip_prefix(READY)?.strip_suffix(b"\n")? {
        b"2" => Landlock::Full,
        b"1" => Landlock::Partial,
        b"0" => Landlock::Missing,
        _ => return None,
    };
    Some(Walls { landlock })
}
