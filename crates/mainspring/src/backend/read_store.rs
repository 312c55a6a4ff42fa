//! Resolves the execution that a command line names, and opens the data folder or the store for it.

use std::sync::Arc;

use mainspring_effects::{sandbox::Profiles, shell::contain::Scripts};
use mainspring_engine::{Engine, EngineError, EngineScope, journal_loader::Loader, keys, start_request::is_child};
use mainspring_kernel::key::ExecutionKey;
use mainspring_server::services::stored_secrets::StoredSecrets;
use mainspring_store::{ExecutionRow, Filter, SealedStore, Store, sqlite::SqliteStore};

use crate::{
    context::Global,
    error::CliError,
    models, paths, period_budgets, runner, runners,
    secrets::NodeSecrets,
    server_settings::object_settings,
    store_location::StoreLocation,
    tool_servers::{self, ToolServers},
};

/// Rows that are searched for the beginning of a name.
const ROWS_SEARCHED: usize = 10_000;

/// A store that is opened for reading, with everything needed to load journals from it.
pub(crate) struct ReadStore {
    pub(crate) location: StoreLocation,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) loader: Loader,
    pub(crate) key: [u8; 32],
}

impl ReadStore {
    /// True if an engine runs the executions now.
    pub(crate) fn has_engine(&self) -> bool {
        self.location.engine_description(&*self.store).is_some()
    }

    /// Prints that no process runs an execution, and the command that continues it.
    pub(crate) fn unattended(&self, name: &str) -> String {
        let help = match self.location.home() {
            Some(_) => format!("`mainspring resume {name}` continues"),
            None => self.location.help(),
        };
        format!("no process runs it: {help}")
    }

    /// True if an input is sent to the inbox, and not decided by this process. A shared store belongs to its nodes,
    /// even if none is running.
    pub(crate) fn is_run_elsewhere(&self) -> bool {
        matches!(self.location, StoreLocation::Shared(_)) || self.has_engine()
    }
}

/// Opens the data folder without its lock, or the shared store.
pub(crate) fn open_read_only(global: &Global) -> Result<ReadStore, CliError> {
    let location = StoreLocation::of(global)?;
    let (store, key): (Arc<dyn Store>, _) = match &location {
        StoreLocation::Folder(home) => {
            if !home.journal().exists() {
                return Err(no_executions(&location));
            }
            let key = keys::load(&paths::key_file(&[home.folder()]))?;
            home.check_key(&key)?;
            (Arc::new(SqliteStore::open_read_only(&home.journal()).map_err(EngineError::from)?), key)
        }
        StoreLocation::Shared(_) => {
            let store = location.store()?;
            if !keys::is_begun(&*store)? {
                return Err(no_executions(&location));
            }
            let key = keys::load(&paths::key_file(&[]))?;
            keys::check_store(&*store, &key)?;
            (store, key)
        }
    };
    let store = SealedStore::over(store, key);
    let loader = Loader::new(store.clone(), key);
    Ok(ReadStore { location, store, loader, key })
}

/// The error of a read-only command if there are no executions.
pub(crate) fn no_executions(location: &StoreLocation) -> CliError {
    let place = location.home().map_or("the store".to_string(), |home| home.folder().display().to_string());
    let message = format!("there are no executions in {place}; `mainspring run FILE` starts one");
    CliError::bad_input("no_executions", message)
}

/// Locks the data folder and runs an engine on it.
pub(crate) async fn engine(global: &Global, reach: EngineScope) -> Result<Engine, CliError> {
    let settings = object_settings()?;
    let secrets = NodeSecrets::of(&settings)?;
    let ToolServers { executor, source, .. } =
        tool_servers::open(&settings, (&Scripts::Uncontained, &Profiles::default()), Some(&secrets))?;
    let agents = Some(models::executor(&settings, source, Some(&secrets)));
    let runners = Some(runners::executor(&settings, (&Scripts::Uncontained, &Profiles::default()), Some(&secrets)));
    let budgets = period_budgets::of_settings(&settings)?;
    let secret_source = Some(secrets.clone());
    let rules =
        runner::Rules { tools: executor, agents, runners, secrets: secret_source, budgets, ..runner::Rules::default() };
    let engine = engine_with(global, reach, rules).await?;
    let keys = StoreLocation::of(global)?.encryption_keys(*engine.key());
    secrets.bind(StoredSecrets::new(engine.store().clone(), keys));
    Ok(engine)
}

/// Like [`engine`], with rules for scripts.
pub(crate) async fn engine_with(global: &Global, reach: EngineScope, rules: runner::Rules) -> Result<Engine, CliError> {
    if global.store.is_some() {
        let message = "this command runs executions of a data folder; executions of a shared store are run by its nodes (`mainspring node --store …`)";
        return Err(CliError::bad_input("shared_store", message));
    }
    let home = global.home()?;
    let key = home.key(&paths::key_file(&[home.folder()]))?;
    runner::open_with(home, key, reach, global.telemetry.spans()?, rules).await
}

/// Finds an execution by its name, its key, the beginning of either, or `last`.
pub(crate) fn find(store: &dyn Store, name: &str) -> Result<ExecutionRow, CliError> {
    let failed = |error| CliError::from(EngineError::from(error));
    if let Some(row) = store.execution_by_id(name).map_err(failed)? {
        return Ok(row);
    }
    if let Some(key) = ExecutionKey::parse(name)
        && let Some(row) = store.execution(key).map_err(failed)?
    {
        return Ok(row);
    }
    let rows = store.executions(&Filter::default(), None, ROWS_SEARCHED).map_err(failed)?;
    if name == "last" {
        // `last` means the last execution that a person started, and not one of its children.
        let is_root = |row: &ExecutionRow| !is_child(&row.trigger_type);
        return rows.into_iter().find(is_root).ok_or_else(|| unknown(name));
    }
    let begins = |row: &ExecutionRow| row.id.starts_with(name) || row.key.to_string().starts_with(name);
    let mut found = rows.into_iter().filter(|row| !name.is_empty() && begins(row));
    match (found.next(), found.next()) {
        (Some(row), None) => Ok(row),
        (Some(_), Some(_)) => {
            let message = format!("several executions start with `{name}`; use more characters (`mainspring list`)");
            Err(CliError::bad_input("ambiguous_execution", message))
        }
        (None, _) => Err(unknown(name)),
    }
}

fn unknown(name: &str) -> CliError {
    CliError::bad_input("no_such_execution", format!("there is no execution `{name}`; `mainspring list` shows all"))
}
