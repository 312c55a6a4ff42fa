//! `mainspring`: the user's command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(exit) = mainspring_cli::evaluating::serve_if_worker(std::env::args_os()) {
        return exit.into();
    }
    mainspring_cli::cli::main(std::env::args_os()).into()
}
