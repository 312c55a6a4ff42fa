//! `mainspring test`: scenario files on virtual time.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::{
    cli::Global,
    exit::{Exit, Refusal},
    terminal::Terminal,
};

/// Run scenarios.
#[derive(Debug, Args)]
pub(crate) struct Test {
    /// Files, or folders that are searched for *.scenario.json and *.scenario.yaml
    #[arg(required = true, value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,
}

/// Runs every case in every mode.
pub(crate) fn test(_: &Test, _: &Global, _: &Terminal) -> Result<Exit, Refusal> {
    Err(Refusal::internal("not_joined", "to be joined with the simulator"))
}
