//! Telemetry for operators: metrics for Prometheus, traces over OTLP, structured logs.
//!
//! Everything is off by default, and nothing delays executions: metrics and traces have threads of their own, and
//! spans that a collector does not accept are dropped and counted. `docs/how-to/observe.md` describes the usage.

mod logs;
mod metrics;
mod server;
mod traces;

use std::sync::{Arc, OnceLock};

use clap::{Args, ValueEnum};
use mainspring_engine::trace_spans::Spans;

pub(crate) use self::metrics::{ADDRESS_VARIABLE, Metrics, warning};
use self::traces::{Settings, Tracer};
use crate::{error::CliError, output::terminal::Terminal};

/// The telemetry flags of every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct Telemetry {
    /// Write traces to an OpenTelemetry collector (OTLP over HTTP) [env: OTEL_EXPORTER_OTLP_ENDPOINT]
    #[arg(long, global = true, hide_short_help = true, value_name = "URL")]
    pub(crate) otlp: Option<String>,
    /// Write logs to standard error: off, error, warn, info, debug [default: info for `node` and `up`, else off]
    #[arg(long, global = true, hide_short_help = true, value_name = "LEVEL", env = "MAINSPRING_LOG")]
    log: Option<String>,
    /// The format of log lines
    #[arg(long, global = true, hide_short_help = true, value_name = "FORMAT", value_enum, default_value = "text")]
    log_format: LogFormat,
    #[arg(skip)]
    traces: Arc<OnceLock<Tracer>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// Readable text
    Text,
    /// One JSON object per line
    Json,
}

impl Telemetry {
    /// Starts the log output, before anything else. `usually` is the level if none is set.
    pub(crate) fn begin(&self, usually: &str) -> Result<(), CliError> {
        logs::begin(self.log.as_deref().filter(|log| !log.is_empty()).unwrap_or(usually), self.log_format)
    }

    /// The receiver of an engine's spans, if traces are enabled.
    pub(crate) fn spans(&self) -> Result<Option<Spans>, CliError> {
        let Some(settings) = Settings::read(self.otlp.as_deref(), |name| std::env::var(name).ok())? else {
            return Ok(None);
        };
        Ok(Some(self.traces.get_or_init(|| Tracer::begin(settings)).spans()))
    }

    /// Exports remaining spans for a bounded time, and reports dropped ones.
    pub(crate) fn end(&self, terminal: &Terminal) {
        if let Some(lost) = self.traces.get().and_then(Tracer::end) {
            terminal.note(&lost);
        }
    }
}
