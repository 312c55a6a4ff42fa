//! Reasons why a script could not be started, each with its code and a remedy.

use std::{io, path::PathBuf};

use mainspring_kernel::failure::{Class, Failure};

/// A reason not to start. No message contains a command or the value of a variable, since both may be secret.
#[derive(Debug)]
pub(super) enum ShellError {
    /// The command is missing or blank.
    MissingCommand,
    /// The command contains a NUL character, so it cannot be an argument.
    CommandInvalid,
    /// A variable is invalid.
    EnvironmentInvalid {
        /// Its name, or `env` itself.
        name: String,
        /// The rule that it breaks, with a remedy.
        why: &'static str,
    },
    /// The working folder cannot be entered.
    FolderMissing {
        /// The setting that named it.
        named_by: FolderSource,
        /// The path.
        folder: PathBuf,
        /// The system's message.
        why: String,
    },
    /// The arguments and the environment together exceed the system's limit.
    TooLarge,
    /// The search path has no bash.
    BashMissing,
    /// The system did not start a process, or the process could not be recorded.
    NotStarted(io::Error),
    /// This node runs no scripts, for the given reason.
    ScriptsOff(String),
    /// The execution was started without the permission to run scripts.
    NotPermitted,
    /// No container could be made for the script.
    NotContained(String),
    /// The workspace is, or contains, a folder that scripts must not see.
    WorkspaceNotContainable(PathBuf),
    /// The working folder, as given, is not in the workspace.
    CwdOutside(PathBuf),
    /// The disk of the workspace has too little left, as the sentence says.
    DiskFull(String),
}

/// The setting that named a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FolderSource {
    /// The execution's workspace.
    Workspace,
    /// The step's `cwd`.
    Cwd,
}

impl From<ShellError> for Failure {
    fn from(refusal: ShellError) -> Self {
        use FolderSource::{Cwd, Workspace};
        let (class, code, message) = match refusal {
            ShellError::MissingCommand => {
                let message = "`command` is missing or blank: give the script as text".to_owned();
                (Class::Invalid, "bash_missing_command", message)
            }
            ShellError::CommandInvalid => {
                let message = "`command` contains a NUL character, which no program takes: remove it".to_owned();
                (Class::Invalid, "bash_command_invalid", message)
            }
            ShellError::EnvironmentInvalid { name, why } => {
                (Class::Invalid, "bash_environment_invalid", format!("`{}`: {why}", name.escape_debug()))
            }
            ShellError::FolderMissing { named_by: Workspace, folder, why } => {
                let message = format!("the workspace {} cannot be entered ({why}): restore it", folder.display());
                (Class::Invalid, "bash_missing_workspace", message)
            }
            ShellError::FolderMissing { named_by: Cwd, folder, why } => {
                let help = "create it in an earlier step or correct `cwd`";
                let message = format!("`cwd` {} cannot be entered ({why}): {help}", folder.display());
                (Class::Invalid, "bash_missing_cwd", message)
            }
            ShellError::TooLarge => {
                let message = "the command and its environment are larger than the system allows (128 KiB for one of \
                               them): write large values to a file in the workspace and pass its name";
                (Class::Invalid, "bash_too_large", message.to_owned())
            }
            ShellError::BashMissing => {
                let message = "there is no bash in the PATH of this node: install it".to_owned();
                (Class::Unavailable, "bash_missing", message)
            }
            ShellError::ScriptsOff(why) => {
                let message = format!("this node runs no scripts: {why}");
                (Class::Policy, "scripts_off", message)
            }
            ShellError::NotPermitted => {
                let message = "this execution was started without the permission `scripts:run`: a member with it must \
                               start it";
                (Class::Policy, "scripts_not_permitted", message.to_owned())
            }
            ShellError::NotContained(why) => {
                let message = format!("no container could be made, so nothing was run: {why}");
                (Class::Unavailable, "script_not_contained", message)
            }
            ShellError::WorkspaceNotContainable(folder) => {
                let message = format!(
                    "the workspace {} contains files of the server, which no script is shown: work in another folder",
                    folder.display()
                );
                (Class::Policy, "workspace_not_containable", message)
            }
            ShellError::CwdOutside(folder) => {
                let message = format!(
                    "`cwd` {} is not in the workspace, and a contained script is shown nothing else: name a folder in it",
                    folder.display()
                );
                (Class::Policy, "cwd_outside_workspace", message)
            }
            ShellError::DiskFull(why) => {
                let message =
                    format!("the script was not started: {why}. Make room, or end executions with large files");
                (Class::Unavailable, "disk_full", message)
            }
            ShellError::NotStarted(error) => {
                (Class::Unavailable, "bash_not_started", format!("the script could not be started: {error}"))
            }
        };
        Failure::new(class, code, message)
    }
}

/// Maps an error of starting a process.
impl From<io::Error> for ShellError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ArgumentListTooLong => Self::TooLarge,
            _ => Self::NotStarted(error),
        }
    }
}
