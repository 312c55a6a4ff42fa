//! Who runs functions and checks schemas for this process: workers that are this very executable.

use std::{
    ffi::OsString,
    process::ExitCode,
    sync::{Arc, OnceLock},
};

use mainspring_engine::evaluator::{Evaluator, Looking, UNCONFINED_ARGUMENT, WORKER_ARGUMENT, workers};
use mainspring_kernel::{
    definition::{Compiled, compile_with},
    diagnostic::Diagnostic,
    document::Document,
};

use crate::exit::Exit;

/// Lets code run, if it is 1, where the system refuses the filter of system calls that confines it.
const UNCONFINED_VARIABLE: &str = "MAINSPRING_UNCONFINED_CODE";

/// Serves as a worker, if that is what this process was started for: before anything else, so that nothing of the user's
/// settings is read.
pub fn serve_if_worker(mut arguments: impl Iterator<Item = OsString>) -> Option<Exit> {
    if arguments.nth(1)? != WORKER_ARGUMENT {
        return None;
    }
    let unconfined = arguments.next().is_some_and(|argument| argument == UNCONFINED_ARGUMENT);
    let served = mainspring_sandbox::worker::serve(std::io::stdin(), std::io::stdout(), unconfined);
    Some(if served.is_ok() { Exit::Fine } else { Exit::Failed })
}

/// Becomes a contained script, if that is what this process was started for. Returns only where that fails.
pub fn serve_if_helper(arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    mainspring_effects::shell::contain::serve_if_helper(arguments).map(ExitCode::from)
}

/// The workers of this process. None is started before there is something to evaluate.
pub fn evaluator() -> Arc<dyn Evaluator> {
    static WORKERS: OnceLock<Arc<dyn Evaluator>> = OnceLock::new();
    let unconfined = || std::env::var_os(UNCONFINED_VARIABLE).is_some_and(|value| value == "1");
    WORKERS.get_or_init(|| Arc::new(workers(unconfined()))).clone()
}

/// Compiles a definition, with its functions and schemas looked into.
pub fn compile(document: &Document) -> Result<Compiled, Vec<Diagnostic>> {
    compile_with(document, &Looking(&*evaluator()))
}
