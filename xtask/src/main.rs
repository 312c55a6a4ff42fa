//! `cargo xtask`: the one tool of this repository. The rules for a change that lands are data and code here, and not a pile of
//! shell.
//!
//! | command | answers |
//! |---|---|
//! | `tidy` | does the repository keep its own rules? |
//! | `test` | may this change land? |
//! | `conformance` | are the checked-in cases the given ones? |
//! | `schemas` | what do editors check definitions with? |
//! | `mutants` | would a test notice if these files were wrong? |
//! | `bugs` | does the simulated cluster find the bugs that it is known to find? |
//! | `api` | is every answer of a server one that its description names? |
//! | `chaos` | does every execution end, whatever befalls real nodes and their server? |

mod api;
mod bugs;
mod chaos;
mod conformance;
mod finding;
mod landing;
mod limited;
mod mutants;
mod need;
mod prose;
mod repository;
mod schemas;
mod tidy;
mod token;
mod words;

use clap::{Parser, Subcommand, builder::PossibleValuesParser};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The one tool of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check the rules of the house: crate edges, module comments, lengths, leftovers, and what else `tidy.rs` lists.
    Tidy {
        /// Bring the numbers in xtask/ratchet.txt down to what is measured now. No number is ever raised.
        #[arg(long)]
        lower: bool,
        /// Print every place that a number in xtask/ratchet.txt counts: the entries that begin with this text, as
        /// `openers`, `term crates/engine` or `openers docs/server.md`.
        #[arg(long, value_name = "ENTRY", conflicts_with = "lower")]
        list: Option<String>,
    },
    /// Run everything that a landing needs, in order, up to the first failure.
    ///
    /// The conformance cases are compared with the folder that the variable MAINSPRING_CASES names. Without it, with
    /// the folder where they are kept beside this repository, if that is there.
    Test {
        /// Run only this step.
        #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(landing::step_names()))]
        only: Option<String>,
    },
    /// Compare conformance/ with another copy of the cases, byte for byte.
    Conformance {
        /// The folder with the other copy.
        #[arg(long, value_name = "DIR")]
        against: PathBuf,
    },
    /// Write schemas/*.schema.json anew, from the compiler's keys and schemas/keys.yaml.
    Schemas,
    /// Break files on purpose, one place at a time, and name the places where no test turns red.
    Mutants {
        /// The source files to break, as paths from the root of the repository. Without any: what decides and what
        /// applies in the kernel. The kernel's files are tested by the kernel and the simulator, others by their crate.
        #[arg(value_name = "FILE")]
        files: Vec<String>,
    },
    /// Put known bugs into a copy of the repository, one after the other, and name the seed of the simulated cluster that
    /// finds each. A bug that no seed finds, and a table in crates/sim/bugs/README.md that is not true, are failures.
    Bugs {
        /// The bugs to look for, by the names of their patches in crates/sim/bugs. Without any: all of them.
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
    /// Ask a running server whatever its description allows, and hold every answer against it, by Schemathesis.
    Api {
        /// The number of requests for each operation, in each of three runs; 120 are more than ten thousand in all.
        #[arg(value_name = "CASES", default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        cases: u32,
    },
    /// Kill, stop and hold up three real nodes, cut their lines and crash their PostgreSQL, while executions run; then look
    /// whether each has ended and nothing was done more often than it was tried. Afterwards the same with a server on an
    /// embedded store, which other programs open, of which files are removed, and to which backups are put back.
    Chaos {
        /// For how many minutes, half of them for each.
        #[arg(value_name = "MINUTES", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1440))]
        minutes: u32,
    },
}

fn main() -> ExitCode {
    let root = repository_root();
    let outcome = match CommandLine::parse().command {
        Command::Tidy { list: Some(entry), .. } => tidy::list(&root, &entry),
        Command::Tidy { lower: false, .. } => tidy::run(&root),
        Command::Tidy { lower: true, .. } => tidy::lower(&root),
        Command::Test { only } => landing::run(&root, only.as_deref()),
        Command::Conformance { against } => conformance::run(&root, &against),
        Command::Schemas => schemas::run(&root),
        Command::Mutants { files } => mutants::run(&root, &files),
        Command::Bugs { names } => bugs::run(&root, &names),
        Command::Api { cases } => api::run(&root, cases),
        Command::Chaos { minutes } => chaos::run(&root, minutes),
    };
    match outcome {
        Ok(sentence) => {
            println!("{sentence}");
            ExitCode::SUCCESS
        }
        Err(report) => {
            eprintln!("{}", report.trim_end());
            ExitCode::FAILURE
        }
    }
}

/// The folder above this crate. Cargo says at run time where the crate is; what was true when it was compiled is only
/// for a program that is started by hand.
fn repository_root() -> PathBuf {
    let crate_folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    Path::new(&crate_folder).parent().expect("the crate xtask has a folder above it").to_owned()
}

#[cfg(test)]
mod tests {
    use super::CommandLine;
    use clap::CommandFactory;

    #[test]
    fn every_command_and_every_option_has_a_help_text() {
        let line = CommandLine::command();
        line.clone().debug_assert();
        for command in line.get_subcommands() {
            assert!(command.get_about().is_some(), "{} says nothing of itself", command.get_name());
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{} {} has no help", command.get_name(), argument.get_id());
            }
        }
    }
}
