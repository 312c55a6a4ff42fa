//! The script that an attempt runs: read from its parameters and checked against the machine.

use std::{
    env,
    ffi::OsStr,
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use mainspring_kernel::{effect::Attempt, value::Value};
use rustix::{
    fs::{Access, CWD, Mode, OFlags, ResolveFlags, access, openat, openat2},
    io::Errno,
};

use super::{
    contain::order::Order,
    environment::{Variables, variables_of},
    error::{FolderSource, ShellError},
    limits::{TEXT_BYTES_MAX, TEXTS_BYTES_MAX},
    process_record::Mark,
};

/// A script that is ready to start.
#[derive(Debug)]
pub(super) struct Script {
    /// The bash that runs it, found in `PATH`.
    pub(super) bash: PathBuf,
    /// The text of the script, as given.
    pub(super) command: String,
    /// The working folder, or `None` for that of this process.
    pub(super) folder: Option<PathBuf>,
    /// The variables added to its environment, or the whole environment in a container.
    pub(super) variables: Variables,
}

impl Script {
    /// Reads the script of an attempt. `search_path` is the `PATH` in which bash is searched. The working folder of a
    /// contained script must be in its workspace.
    pub(super) fn of(
        attempt: &Attempt,
        mark: &Mark,
        search_path: &OsStr,
        (traces, is_contained): (bool, bool),
    ) -> Result<Self, ShellError> {
        let folder = if is_contained { contained_folder_of(attempt)? } else { folder_of(attempt)? };
        Ok(Self {
            command: command_of(attempt)?,
            variables: variables_of(attempt, mark, traces)?,
            folder,
            bash: find_program("bash", search_path).ok_or(ShellError::BashMissing)?,
        })
    }
}

impl Script {
    /// Encodes the message for the helper of a container.
    pub(super) fn into_order(self) -> Result<Vec<u8>, ShellError> {
        let bash = self.bash.into_os_string().into_string();
        let bash = bash.map_err(|bash| io::Error::other(format!("the path of bash, {bash:?}, is not UTF-8")))?;
        let arguments = vec!["-lc".to_owned(), "--".to_owned(), self.command];
        let order = Order { program: bash, arguments, variables: self.variables, keeps_input: false };
        encoded(&order)
    }
}

/// Encodes a message. The helper could not report that the texts are too large for a program, so they are checked here.
pub(super) fn encoded(order: &Order) -> Result<Vec<u8>, ShellError> {
    let longest = order.variables.iter().map(|(name, value)| name.len() + value.len() + 2);
    let longest = longest.chain(order.arguments.iter().map(|argument| argument.len() + 1)).max().unwrap_or(0);
    let bytes = order.encode().filter(|bytes| bytes.len() <= TEXTS_BYTES_MAX && longest <= TEXT_BYTES_MAX);
    bytes.ok_or(ShellError::TooLarge)
}

fn command_of(attempt: &Attempt) -> Result<String, ShellError> {
    match attempt.params.get("command").and_then(Value::as_text) {
        Some(command) if command.contains('\0') => Err(ShellError::CommandInvalid),
        Some(command) if !command.trim().is_empty() => Ok(command.to_owned()),
        _ => Err(ShellError::MissingCommand),
    }
}

fn workspace_of(attempt: &Attempt) -> Result<Option<PathBuf>, ShellError> {
    let enter = |workspace| enterable(PathBuf::from(workspace), FolderSource::Workspace);
    attempt.workspace.as_ref().map(enter).transpose()
}

fn cwd_of(attempt: &Attempt) -> Result<Option<&Path>, ShellError> {
    match attempt.params.get("cwd") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Text(cwd)) => Ok(Some(Path::new(cwd))),
        Some(other) => {
            let why = format!("it is {} and not text", other.kind());
            Err(ShellError::FolderMissing { named_by: FolderSource::Cwd, folder: PathBuf::new(), why })
        }
    }
}

fn folder_of(attempt: &Attempt) -> Result<Option<PathBuf>, ShellError> {
    let workspace = workspace_of(attempt)?;
    let Some(cwd) = cwd_of(attempt)? else { return Ok(workspace) };
    // An absolute `cwd` replaces the path that it is joined to.
    enterable(workspace.unwrap_or_default().join(cwd), FolderSource::Cwd).map(Some)
}

/// Returns the working folder of a contained script. A `cwd` outside of the workspace is rejected with the same message
/// whether or not the folder exists: the author can put links into the workspace, and must not learn about the host's
/// files.
fn contained_folder_of(attempt: &Attempt) -> Result<Option<PathBuf>, ShellError> {
    let (Some(workspace), Some(cwd)) = (workspace_of(attempt)?, cwd_of(attempt)?) else {
        return workspace_of(attempt);
    };
    let real = workspace.canonicalize().map_err(|error| ShellError::NotContained(error.to_string()))?;
    let outside = || ShellError::CwdOutside(cwd.to_owned());
    let within = [&workspace, &real].into_iter().find_map(|folder| cwd.strip_prefix(folder).ok());
    let within = within.unwrap_or(cwd);
    if within.is_absolute() {
        return Err(outside());
    }
    let within = if within.as_os_str().is_empty() { Path::new(".") } else { within };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat(CWD, &real, flags, Mode::empty()).map_err(|error| ShellError::NotContained(error.to_string()))?;
    match openat2(&root, within, flags, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS) {
        Ok(_) => enterable(real.join(within), FolderSource::Cwd).map(Some),
        // Scripts make absolute links into their own workspace with `ln -s "$PWD/a" b`.
        Err(Errno::XDEV) => match real.join(within).canonicalize() {
            Ok(folder) if folder.starts_with(&real) => enterable(folder, FolderSource::Cwd).map(Some),
            _ => Err(outside()),
        },
        Err(error) => {
            let (named_by, folder) = (FolderSource::Cwd, cwd.to_owned());
            Err(ShellError::FolderMissing { named_by, folder, why: io::Error::from(error).to_string() })
        }
    }
}

/// Checks the folder before the start, because a failed start does not show whether the program or its folder is
/// missing.
fn enterable(folder: PathBuf, named_by: FolderSource) -> Result<PathBuf, ShellError> {
    let enter = || match fs::metadata(&folder)?.is_dir() {
        true => access(&folder, Access::EXEC_OK).map_err(io::Error::from),
        false => Err(io::ErrorKind::NotADirectory.into()),
    };
    match enter() {
        Ok(()) => Ok(folder),
        Err(error) => Err(ShellError::FolderMissing { named_by, folder, why: error.to_string() }),
    }
}

/// Finds a program before the start, so that a missing bash is distinguished from a script that exits with 127.
pub(super) fn find_program(name: &str, search_path: &OsStr) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    // A relative folder would be resolved in the workspace, which could then supply the program.
    env::split_paths(search_path).filter(|folder| folder.is_absolute()).map(|folder| folder.join(name)).find(is_program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_order_and_must_be_executable() {
        let root = tempfile::tempdir().unwrap();
        let place = |folder: &str, mode: u32| {
            let path = root.path().join(folder);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("bash"), "").unwrap();
            fs::set_permissions(path.join("bash"), fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let (plain, first, second) = (place("plain", 0o644), place("first", 0o755), place("second", 0o755));
        fs::create_dir_all(root.path().join("folder/bash")).unwrap();
        let folders = [Path::new("relative"), &root.path().join("folder"), &plain, &first, &second];
        let search_path = env::join_paths(folders).unwrap();
        assert_eq!(find_program("bash", &search_path), Some(first.join("bash")));
        assert_eq!(find_program("dash", &search_path), None);
        assert_eq!(find_program("bash", OsStr::new("")), None);
    }
}
