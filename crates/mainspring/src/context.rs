//! The surroundings of a command: the global flags, the terminal and the signals of this process.

use std::path::PathBuf;

use clap::{Args, ValueHint, builder::BoolishValueParser};
use mainspring_engine::data_dir::DataDir;

use crate::{error::CliError, output::terminal::Terminal, paths, signals::Signals, telemetry::Telemetry};

/// The surroundings of a command.
pub(crate) struct Context {
    pub(crate) global: Global,
    pub(crate) terminal: Terminal,
    pub(crate) signals: Signals,
}

impl Context {
    /// The context of this process.
    pub(crate) fn new(global: Global) -> Self {
        Self { global, terminal: Terminal::of_process(), signals: Signals::default() }
    }
}

/// The global flags.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// The data folder [default: $XDG_STATE_HOME/mainspring]
    #[arg(long, visible_alias = "data-dir", global = true, hide_short_help = true, value_name = "DIR", env = "MAINSPRING_DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
    /// A shared store instead of a data folder: postgres://user@host/database. Set an address with a
    /// password in MAINSPRING_STORE, because other users can read command lines
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_name = "URL",
        env = "MAINSPRING_STORE",
        hide_env_values = true
    )]
    pub(crate) store: Option<String>,
    /// A server instead of a local store: https://mainspring.example.com [env: MAINSPRING_SERVER]
    #[arg(long, global = true, hide_short_help = true, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) server: Option<String>,
    /// Send the token over plain HTTP to another machine, readable by everyone on the network path
    #[arg(long, global = true, hide_short_help = true, env = "MAINSPRING_PLAIN_HTTP", hide_env_values = true, value_parser = BoolishValueParser::new())]
    pub(crate) plain_http: bool,
    /// True if a flag names the location of executions, and not the environment.
    #[arg(skip)]
    pub(crate) place_by_flag: bool,
    /// True if a flag names the address of the store, and not the environment.
    #[arg(skip)]
    pub(crate) store_by_flag: bool,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) telemetry: Telemetry,
}

impl Global {
    /// The data folder that `--dir` names, or the default one.
    pub(crate) fn home(&self) -> Result<DataDir, CliError> {
        match &self.dir {
            Some(given) => Ok(DataDir::new(given)),
            None => Ok(DataDir::new(paths::state_home()?.join("mainspring"))),
        }
    }
}

/// Runs a future on a runtime of one thread.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| CliError::internal("no_runtime", error.to_string()))?.block_on(work)
}
