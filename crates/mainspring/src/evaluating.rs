//! Who runs functions and checks schemas for this process: workers that are this very executable.

use std::{
    ffi::OsString,
    sync::{Arc, OnceLock},
};

use mainspring_engine::evaluator::{Evaluator, Looking, WORKER_ARGUMENT, workers};
use mainspring_kernel::{
    definition::{Compiled, compile_with},
    diagnostic::Diagnostic,
    document::Document,
};

use crate::exit::Exit;

/// Serves as a worker, if that is what this process was started for: before anything else, so that nothing of the user's
/// settings is read.
pub fn serve_if_worker(mut arguments: impl Iterator<Item = OsString>) -> Option<Exit> {
    if arguments.nth(1)? != WORKER_ARGUMENT {
        return None;
    }
    let served = mainspring_sandbox::worker::serve(std::io::stdin(), std::io::stdout());
    Some(if served.is_ok() { Exit::Fine } else { Exit::Failed })
}

/// The workers of this process. None is started before there is something to evaluate.
pub fn evaluator() -> Arc<dyn Evaluator> {
    static WORKERS: OnceLock<Arc<dyn Evaluator>> = OnceLock::new();
    WORKERS.get_or_init(|| Arc::new(workers())).clone()
}

/// Compiles a definition, with its functions and schemas looked into.
pub fn compile(document: &Document) -> Result<Compiled, Vec<Diagnostic>> {
    compile_with(document, &Looking(&*evaluator()))
}
