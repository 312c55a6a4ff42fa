//! A build that shows nothing of itself: the same doors, with nothing behind them.

use std::net::SocketAddr;

use clap::Args;
use mainspring_engine::span::Spans;

use crate::{cli::Global, exit::Refusal, terminal::Terminal};

/// What every command takes: nothing.
#[derive(Debug, Clone, Args)]
pub(crate) struct Seeing {
    #[arg(skip)]
    pub(crate) otlp: Option<String>,
}

impl Seeing {
    pub(crate) fn begin(&self, _: &str) -> Result<(), Refusal> {
        Ok(())
    }

    pub(crate) fn spans(&self) -> Result<Option<Spans>, Refusal> {
        Ok(None)
    }

    pub(crate) fn end(&self, _: &Terminal) {}
}

/// Looked at by the doctor, and obeyed by nobody here.
pub(crate) const ADDRESS_VARIABLE: &str = "MAINSPRING_METRICS";

/// There are no metrics to warn of.
pub(crate) fn warning(_: SocketAddr) -> Option<&'static str> {
    None
}

/// What commands take that run an engine: nothing.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub(crate) struct Metrics {}

impl Metrics {
    pub(crate) fn is_flag(&self) -> bool {
        false
    }

    pub(crate) fn begin(&self, _: &Global, _: &Terminal) -> Result<(), Refusal> {
        Ok(())
    }
}
