//! The interface of telemetry in a build without it.

use std::net::SocketAddr;

use clap::Args;
use mainspring_engine::trace_spans::Spans;

use crate::{error::CliError, output::terminal::Terminal};

/// The telemetry flags of every command: none in this build.
#[derive(Debug, Clone, Args)]
pub(crate) struct Telemetry {
    #[arg(skip)]
    pub(crate) otlp: Option<String>,
}

impl Telemetry {
    pub(crate) fn begin(&self, _: &str) -> Result<(), CliError> {
        Ok(())
    }

    pub(crate) fn spans(&self) -> Result<Option<Spans>, CliError> {
        Ok(None)
    }

    pub(crate) fn end(&self, _: &Terminal) {}
}

/// `doctor` reads the variable; nothing else does in this build.
pub(crate) const ADDRESS_VARIABLE: &str = "MAINSPRING_METRICS";

/// Always `None`: there are no metrics.
pub(crate) fn warning(_: SocketAddr) -> Option<&'static str> {
    None
}

/// The metrics flags of commands with an engine: none in this build.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub(crate) struct Metrics {}

impl Metrics {
    pub(crate) fn is_flag(&self) -> bool {
        false
    }

    pub(crate) fn begin(&self, _: bool, _: &Terminal) -> Result<(), CliError> {
        Ok(())
    }
}
