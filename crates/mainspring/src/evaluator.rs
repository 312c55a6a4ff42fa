//! Evaluates functions and schemas for this process, in worker processes that run the same executable.

use std::{
    ffi::OsString,
    process::ExitCode,
    sync::{Arc, OnceLock},
};

use mainspring_engine::evaluator::{Evaluator, SandboxInspector, UNCONFINED_ARGUMENT, WORKER_ARGUMENT, workers};
use mainspring_kernel::{
    definition::{Compiled, compile_with},
    diagnostic::Diagnostic,
    document::Document,
};

use crate::error::Exit;

/// The value 1 allows code to run on a system that refuses the seccomp filter which confines it.
const UNCONFINED_VARIABLE: &str = "MAINSPRING_UNCONFINED_CODE";

/// Serves as a sandbox worker if the arguments say so. This runs before anything else, so that a worker reads no
/// settings of the user.
pub fn serve_if_worker(mut arguments: impl Iterator<Item = OsString>) -> Option<Exit> {
    if arguments.nth(1)? != WORKER_ARGUMENT {
        return None;
    }
    let unconfined = arguments.next().is_some_and(|argument| argument == UNCONFINED_ARGUMENT);
    let served = mainspring_sandbox::worker::serve(std::io::stdin(), std::io::stdout(), unconfined);
    Some(if served.is_ok() { Exit::Fine } else { Exit::Failed })
}

/// Becomes a contained script if the arguments say so. Returns only if that fails.
pub fn serve_if_helper(arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    mainspring_effects::shell::contain::serve_if_helper(arguments).map(ExitCode::from)
}

/// The sandbox workers of this process. The first one starts with the first evaluation.
pub fn evaluator() -> Arc<dyn Evaluator> {
    static WORKERS: OnceLock<Arc<dyn Evaluator>> = OnceLock::new();
    let unconfined = || std::env::var_os(UNCONFINED_VARIABLE).is_some_and(|value| value == "1");
    WORKERS.get_or_init(|| Arc::new(workers(unconfined()))).clone()
}

/// Compiles a definition, and checks its functions and schemas in the sandbox.
pub fn compile(document: &Document) -> Result<Compiled, Vec<Diagnostic>> {
    compile_with(document, &SandboxInspector(&*evaluator()))
}
