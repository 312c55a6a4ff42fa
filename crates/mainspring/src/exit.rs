//! Exit codes, as the first specification has them (6.7). One table for both command lines.

use mainspring_engine::EngineError;
use mainspring_kernel::{
    failure::{Class, Failure},
    record::Ending,
    state::{ExecutionStatus, State},
};

/// How a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The command did what it should; also `needs_approval` and `cancelled`.
    Fine = 0,
    /// Scenarios that do not hold, a journal that does not verify, an installation with something broken.
    NotSo = 1,
    /// Bad input or an invalid definition.
    BadInput = 10,
    /// A broken contract: a missing flag, another hash, a token that opens nothing.
    Contract = 20,
    /// A policy: time, steps, a class that is blocked.
    Policy = 30,
    /// The execution ran and failed, or something of ours did.
    Failed = 40,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// A command that cannot do what it should: the exit code and what to say.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The exit code.
    pub exit: Exit,
    /// What happened, where, what to do next.
    pub failure: Failure,
}

impl Refusal {
    /// Bad input.
    pub fn bad_input(code: &str, message: impl Into<String>) -> Self {
        Self { exit: Exit::BadInput, failure: Failure::new(Class::Invalid, code, message) }
    }

    /// A broken contract.
    pub fn contract(code: &str, message: impl Into<String>) -> Self {
        Self { exit: Exit::Contract, failure: Failure::new(Class::Policy, code, message) }
    }

    /// A command line that cannot be read: a flag that is missing breaks the contract; one that is wrong is bad input.
    pub fn arguments(error: &clap::Error) -> Self {
        let message = error.render().to_string().trim().trim_start_matches("error: ").to_string();
        match error.kind() {
            clap::error::ErrorKind::MissingRequiredArgument => Self::contract("missing_flag", message),
            _ => Self::bad_input("bad_arguments", message),
        }
    }

    /// An input or variables that do not fit what the workflow asks for.
    pub fn unfit(failure: Failure) -> Self {
        Self { exit: Exit::BadInput, failure }
    }

    /// A fault of ours, or of the machine.
    pub fn internal(code: &str, message: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, failure: Failure::new(Class::Internal, code, message) }
    }
}

/// Workflows that cannot be started together.
impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Self::bad_input("workflows", message)
    }
}

impl From<EngineError> for Refusal {
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
            EngineError::Held { .. } => Self::internal("folder_in_use", message),
            EngineError::Folder { .. } => Self::bad_input("folder_unusable", message),
            EngineError::Key { .. } | EngineError::OtherKey { .. } => Self::internal("key_unusable", message),
            EngineError::Store(_) | EngineError::Stopped(_) | EngineError::NotHere | EngineError::Busy => {
                Self::internal("store_unavailable", message)
            }
            EngineError::Load(_) | EngineError::Quarantined(_) => Self::internal("journal_broken", message),
        }
    }
}

/// The exit code of an execution as it stands.
pub fn of_execution(state: &State) -> Exit {
    match (state.status(), &state.ending) {
        (ExecutionStatus::Failed, Some(Ending::Failed { fault, .. })) if is_policy(&fault.code, fault.class) => {
            Exit::Policy
        }
        (ExecutionStatus::Failed, _) => Exit::Failed,
        _ => Exit::Fine,
    }
}

/// Whether a failure is that of a bound or a rule.
pub(crate) fn is_policy(code: &str, class: Class) -> bool {
    class == Class::Policy || code.starts_with("execution_timeout")
}
