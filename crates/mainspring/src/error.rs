//! Exit codes of both command lines, and the error type of commands. The codes are those of section 6.7 of the
//! first specification.

use mainspring_engine::EngineError;
use mainspring_kernel::{
    failure::{Class, Failure},
    record::Ending,
    state::{ExecutionStatus, State},
};

/// The exit code of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The command succeeded. Executions that are `cancelled` count as success.
    Fine,
    /// The execution is `needs_approval`, which counts as success unless the caller has chosen another code.
    Waiting,
    /// The code that the caller has chosen for an execution that waits for approvals.
    Chosen(u8),
    /// A check failed: a scenario, the verification of a journal, or a check of `doctor`.
    NotSo,
    /// Bad input or an invalid definition.
    BadInput,
    /// A violated precondition: a missing flag, a hash that differs, a token that opens no gate.
    Contract,
    /// A policy was violated: a time limit, a step limit, a blocked class.
    Policy,
    /// The execution failed, or Mainspring itself did.
    Failed,
}

impl Exit {
    /// Returns the exit code of the process.
    pub fn code(self) -> u8 {
        match self {
            Self::Fine | Self::Waiting => 0,
            Self::Chosen(code) => code,
            Self::NotSo => 1,
            Self::BadInput => 10,
            Self::Contract => 20,
            Self::Policy => 30,
            Self::Failed => 40,
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// The error of a command: an exit code, and the failure to print.
#[derive(Debug, Clone, PartialEq)]
pub struct CliError {
    /// The exit code.
    pub exit: Exit,
    /// States what happened, where, and what to do next.
    pub failure: Failure,
}

impl CliError {
    /// An error with the exit code [`Exit::BadInput`].
    pub fn bad_input(code: &str, message: impl Into<String>) -> Self {
        Self { exit: Exit::BadInput, failure: Failure::new(Class::Invalid, code, message) }
    }

    /// An error with the exit code [`Exit::Contract`].
    pub fn contract(code: &str, message: impl Into<String>) -> Self {
        Self { exit: Exit::Contract, failure: Failure::new(Class::Policy, code, message) }
    }

    /// The error of a command line that clap rejected. A missing flag is a violated contract; a wrong one is bad
    /// input.
    pub fn arguments(error: &clap::Error) -> Self {
        let message = error.render().to_string().trim().trim_start_matches("error: ").to_string();
        match error.kind() {
            clap::error::ErrorKind::MissingRequiredArgument => Self::contract("missing_flag", message),
            _ => Self::bad_input("bad_arguments", message),
        }
    }

    /// An input or variables that do not match the schema of the workflow.
    pub fn unfit(failure: Failure) -> Self {
        Self { exit: Exit::BadInput, failure }
    }

    /// A failure of Mainspring or of the machine, with the exit code [`Exit::Failed`].
    pub fn internal(code: &str, message: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, failure: Failure::new(Class::Internal, code, message) }
    }
}

/// A set of workflows that cannot be started together.
impl From<String> for CliError {
    fn from(message: String) -> Self {
        Self::bad_input("workflows", message)
    }
}

impl From<EngineError> for CliError {
    fn from(error: EngineError) -> Self {
        let message = error.to_string();
        match error {
            EngineError::NoSuchExecution => Self::contract("no_such_execution", message),
            EngineError::NoOpenGate(_) => Self::contract("resume_mismatch", message),
            EngineError::Exists(_) => Self::contract("execution_exists", message),
            EngineError::TooMany(_) => Self::contract("organization_executions_exceeded", message),
            EngineError::NotQuarantined => Self::contract("not_quarantined", message),
            EngineError::NotEnded => Self::contract("not_ended", message),
            EngineError::NoSuchStep(_) => Self::bad_input("no_such_step", message),
            EngineError::Unsealed(_) => Self::internal("unsealed_messages", message),
            EngineError::UnsealedResources(_) => Self::internal("unsealed_resources", message),
            EngineError::DirInUse { .. } => Self::internal("folder_in_use", message),
            EngineError::Folder { .. } => Self::bad_input("folder_unusable", message),
            EngineError::Key { .. } | EngineError::OtherKey { .. } => Self::internal("key_unusable", message),
            EngineError::Store(_) | EngineError::Stopped(_) | EngineError::NotHere | EngineError::Busy => {
                Self::internal("store_unavailable", message)
            }
            EngineError::Load(_) | EngineError::Quarantined(_) => Self::internal("journal_broken", message),
        }
    }
}

/// The exit code for the state of an execution.
pub fn of_execution(state: &State) -> Exit {
    match (state.status(), &state.end.ending) {
        (ExecutionStatus::Failed, Some(Ending::Failed { fault, .. })) if is_policy(&fault.code, fault.class) => {
            Exit::Policy
        }
        (ExecutionStatus::Failed, _) => Exit::Failed,
        (ExecutionStatus::WaitingApproval, _) => Exit::Waiting,
        _ => Exit::Fine,
    }
}

/// True if a limit or a rule caused the failure.
pub(crate) fn is_policy(code: &str, class: Class) -> bool {
    class == Class::Policy || code.starts_with("execution_timeout")
}
