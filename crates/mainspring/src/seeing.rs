//! What operators see of a running engine: metrics for Prometheus, traces over OTLP, logs with fields.
//!
//! Each is off until it is asked for, and none can hold up the work: metrics and traces have a thread of their own, and
//! what a collector does not take is dropped and counted. `docs/how-to/observe.md` says how to use them.

mod logs;
mod metrics;
mod server;
mod traces;

use std::sync::{Arc, OnceLock};

use clap::{Args, ValueEnum};
use mainspring_engine::span::Spans;

pub(crate) use self::metrics::{ADDRESS_VARIABLE, Metrics, warning};
use self::traces::{Settings, Tracer};
use crate::{exit::Refusal, terminal::Terminal};

/// What every command takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Seeing {
    /// Write traces to an OpenTelemetry collector (OTLP over HTTP) [env: OTEL_EXPORTER_OTLP_ENDPOINT]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) otlp: Option<String>,
    /// Write logs to standard error: off, error, warn, info, debug [default: info for `node`, else off]
    #[arg(long, global = true, value_name = "LEVEL", env = "MAINSPRING_LOG")]
    log: Option<String>,
    /// The form of the logs
    #[arg(long, global = true, value_name = "FORMAT", value_enum, default_value = "text")]
    log_format: LogFormat,
    #[arg(skip)]
    traces: Arc<OnceLock<Tracer>>,
}

/// The form of a line of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// For people
    Text,
    /// An object in each line
    Json,
}

impl Seeing {
    /// Before anything else is done: from here on, lines are written. `usually` is the level of who asks for none.
    pub(crate) fn begin(&self, usually: &str) -> Result<(), Refusal> {
        logs::begin(self.log.as_deref().filter(|log| !log.is_empty()).unwrap_or(usually), self.log_format)
    }

    /// Where an engine's spans go, if traces are asked for.
    pub(crate) fn spans(&self) -> Result<Option<Spans>, Refusal> {
        let Some(settings) = Settings::read(self.otlp.as_deref(), |name| std::env::var(name).ok())? else {
            return Ok(None);
        };
        Ok(Some(self.traces.get_or_init(|| Tracer::begin(settings)).spans()))
    }

    /// Writes what is left, for a bounded time, and says what could not be written.
    pub(crate) fn end(&self, terminal: &Terminal) {
        if let Some(lost) = self.traces.get().and_then(Tracer::end) {
            terminal.remark(&lost);
        }
    }
}
