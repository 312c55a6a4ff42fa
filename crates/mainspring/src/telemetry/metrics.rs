//! Exports the engine's metrics for Prometheus.

use std::{
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use clap::Args;
use mainspring_kernel::{json::compact, value::Value};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use super::server;
use crate::{
    error::CliError,
    output::terminal::{Terminal, print_err},
};

/// The metrics flags of commands with an engine.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub(crate) struct Metrics {
    /// Serve Prometheus metrics at http://ADDR/metrics, such as 127.0.0.1:9464; port 0 selects a free port
    #[arg(long, value_name = "ADDR", env = ADDRESS_VARIABLE)]
    metrics: Option<String>,
}

impl Metrics {
    /// True if the flag is set, and not only the environment.
    pub(crate) fn is_flag(&self) -> bool {
        self.metrics.is_some() && self.metrics != std::env::var(ADDRESS_VARIABLE).ok()
    }
}

/// The environment variable with the meaning of `--metrics`.
pub(crate) const ADDRESS_VARIABLE: &str = "MAINSPRING_METRICS";

/// Buckets for durations from microseconds to a minute, in seconds.
const TIMES: [f64; 18] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0,
];

/// Buckets for durations up to a day: attempts, and timers that became due while no engine was running.
const LONG_TIMES: [f64; 14] =
    [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1_800.0, 7_200.0, 86_400.0];

/// Buckets for counts and bytes, in powers of four.
const COUNTS: [f64; 9] = [1.0, 4.0, 16.0, 64.0, 256.0, 1_024.0, 4_096.0, 16_384.0, 65_536.0];
const BYTES: [f64; 9] =
    [256.0, 1_024.0, 4_096.0, 16_384.0, 65_536.0, 262_144.0, 1_048_576.0, 4_194_304.0, 16_777_216.0];

/// The interval in which recorded samples are moved into histograms. Without it they accumulate if nothing scrapes.
const UPKEEP: Duration = Duration::from_secs(5);

impl Metrics {
    /// Starts the exporter. This must precede the engine and its store, which register their metrics when they
    /// open. An unusable port is an error before anything starts.
    pub(crate) fn begin(&self, json: bool, terminal: &Terminal) -> Result<(), CliError> {
        let Some(address) = self.metrics.as_deref().filter(|address| !address.is_empty()) else { return Ok(()) };
        let refused = |error: std::io::Error| {
            let help = "give an address of this machine and a free port, as 127.0.0.1:9464, or port 0 for any";
            CliError::bad_input("bad_metrics_address", format!("--metrics {address}: {error}; {help}"))
        };
        let listener = TcpListener::bind(address).map_err(refused)?;
        let bound = listener.local_addr().map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let handle = install()?;
        let thread = std::thread::Builder::new().name("metrics".into()).spawn(move || serve(listener, &handle));
        thread.map_err(|error| CliError::internal("no_thread", error.to_string()))?;
        let url = format!("http://{bound}/metrics");
        let warning = warning(bound);
        if json {
            let warning = warning.map(|warning| ("warning", warning.into()));
            print_err!("{}", compact(&Value::map([("metrics", Value::from(url))].into_iter().chain(warning))));
        } else {
            terminal.note(&format!("metrics at {url}"));
            warning.into_iter().for_each(|warning| terminal.note(warning));
        }
        Ok(())
    }
}

/// A warning if other machines can reach the metrics.
pub(crate) fn warning(bound: SocketAddr) -> Option<&'static str> {
    let says = "metrics are readable without a credential by everyone who can reach the address: bind a loopback address \
                (127.0.0.1:9464), or restrict the port to your scraper with a firewall";
    (!bound.ip().is_loopback()).then_some(says)
}

fn install() -> Result<PrometheusHandle, CliError> {
    let buckets = || {
        let suffix = |suffix: &str| Matcher::Suffix(suffix.into());
        let full = |name: &str| Matcher::Full(name.into());
        PrometheusBuilder::new()
            .set_buckets(&COUNTS)?
            .set_buckets_for_metric(suffix("_seconds"), &TIMES)?
            .set_buckets_for_metric(suffix("_bytes"), &BYTES)?
            .set_buckets_for_metric(full("mainspring_attempt_seconds"), &LONG_TIMES)?
            .set_buckets_for_metric(full("mainspring_timer_lateness_seconds"), &LONG_TIMES)?
            .install_recorder()
    };
    let handle = buckets().map_err(|error| CliError::internal("no_metrics", error.to_string()))?;
    metrics::describe_gauge!("mainspring_build_info", "1, with the release in a label.");
    metrics::gauge!("mainspring_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    Ok(handle)
}

fn serve(listener: TcpListener, handle: &PrometheusHandle) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    runtime.block_on(async {
        let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
        let upkeep = async {
            let mut again = tokio::time::interval(UPKEEP);
            loop {
                again.tick().await;
                handle.run_upkeep();
            }
        };
        let rendering = handle.clone();
        tokio::join!(upkeep, server::serve(listener, move || rendering.render()));
    });
}
