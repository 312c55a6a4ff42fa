//! The executable `workflow`, which runs inside of sandboxes. It contains no server and no client.

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(exit) = mainspring_cli::evaluator::serve_if_worker(std::env::args_os()) {
        return exit.into();
    }
    if let Some(exit) = mainspring_cli::evaluator::serve_if_helper(std::env::args_os()) {
        return exit;
    }
    mainspring_cli::workflow_cli::main(std::env::args_os()).into()
}
