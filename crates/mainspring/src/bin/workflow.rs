//! `workflow`: the small executable that a sandbox carries.

use std::process::ExitCode;

fn main() -> ExitCode {
    mainspring_cli::sandbox::main(std::env::args_os()).into()
}
