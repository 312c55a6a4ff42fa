//! The executable `mainspring`. It dispatches to a sandbox worker, to the helper inside a script's container, or to
//! the command line in [`mainspring_cli::cli`].

use std::process::ExitCode;

/// Frames are allocated on one thread and freed on another, many thousand times a second; mimalloc is fast at this.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if let Some(exit) = mainspring_cli::evaluator::serve_if_worker(std::env::args_os()) {
        return exit.into();
    }
    if let Some(code) = mainspring_cli::evaluator::serve_if_helper(std::env::args_os()) {
        return code;
    }
    mainspring_cli::cli::main(std::env::args_os()).into()
}
