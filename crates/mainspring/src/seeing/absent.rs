//! A build that shows nothing of itself: the same doors, with nothing behind them.

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
