//! `mainspring`: the user's command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    mainspring_cli::cli::main(std::env::args_os()).into()
}
