//! The executable `workflow`, which runs inside of sandboxes. It contains no server and no client.

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(exit) = mainspring_cli::evaluating::serve_if_worker(std::env::args_os()) {
        return exit.into();
    }
    mainspring_cli::sandbox::main(std::env::args_os()).into()
}
