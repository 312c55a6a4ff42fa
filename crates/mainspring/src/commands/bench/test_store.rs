//! The environment of a measurement: a temporary folder, and empty stores of the selected kind.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use mainspring_effects::Executors;
use mainspring_engine::{
    ClusterOptions, Engine, EngineError, EngineScope, admission::Limits, data_dir::DataDir, lease::LeaseTiming,
    trace_spans::Spans,
};
use mainspring_kernel::hash::{Hash, hex};
use mainspring_store::{Store, postgres::PostgresStore, sqlite::SqliteStore};

use super::effects;
use crate::{error::CliError, evaluator};

/// The key of the measurement's journals, which protects nothing.
pub(super) const KEY: [u8; 32] = [7; 32];

/// The kind and location of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StoreUrl {
    /// A SQLite file in the temporary folder.
    Sqlite,
    /// A PostgreSQL database, by its URL.
    Postgres(String),
}

impl StoreUrl {
    /// The name in the report.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres(_) => "postgres",
        }
    }
}

/// A temporary folder and its database schemas. Both are removed on drop.
pub(super) struct TestStore {
    folder: PathBuf,
    url: StoreUrl,
    /// The receiver of trace spans, if traces are enabled.
    spans: Option<Spans>,
    /// The places in which a store was opened.
    opened: Mutex<BTreeSet<PathBuf>>,
}

impl TestStore {
    /// Creates a temporary folder inside of another one.
    pub(super) fn new(beside: &Path, url: StoreUrl, spans: Option<Spans>) -> Result<Self, CliError> {
        let mut suffix = [0; 8];
        getrandom::fill(&mut suffix).map_err(|error| CliError::internal("no_randomness", error.to_string()))?;
        let folder = beside.join(format!("bench-{}", hex(&suffix)));
        fs::create_dir_all(&folder).map_err(|error| unusable(&error))?;
        Ok(Self { folder, url, spans, opened: Mutex::default() })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A subfolder for one measurement.
    pub(super) fn place(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn url(&self) -> &StoreUrl {
        &self.url
    }

    /// An engine on a store, with the executors of the measurement.
    pub(super) async fn engine(&self, store: Arc<dyn Store>, executors: Executors) -> Result<Arc<Engine>, CliError> {
        engine(store, executors, self.spans.clone()).await
    }

    /// One engine per store handle, all on the same store. Returns once each owns its share of the partitions.
    pub(super) async fn engines(&self, stores: Vec<Arc<dyn Store>>) -> Result<Vec<Arc<Engine>>, CliError> {
        let begin = |store| begin(store, effects::nothing(), self.spans.clone(), None);
        let begun = stores.into_iter().map(begin).collect::<Result<Vec<_>, _>>()?;
        let partitions = begun[0].1;
        let engines: Vec<Arc<Engine>> = begun.into_iter().map(|(engine, _)| engine).collect();
        let mut again = tokio::time::interval(POLL_INTERVAL);
        loop {
            let held: Vec<usize> = engines.iter().map(|engine| engine.owned_partitions().len()).collect();
            let share = partitions / engines.len();
            if held.iter().sum::<usize>() == partitions && held.iter().all(|held| *held >= share) {
                return Ok(engines);
            }
            again.tick().await;
        }
    }

    /// The store of a place, which is created empty.
    pub(super) fn store(&self, name: &str) -> Result<Arc<dyn Store>, CliError> {
        let place = self.place(name);
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).insert(place.clone());
        store_at(&self.url, &place)
    }
}

impl Drop for TestStore {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
        let StoreUrl::Postgres(address) = &self.url else { return };
        for place in &*self.opened.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = PostgresStore::open(&in_schema_of(address, place)).and_then(PostgresStore::remove);
        }
    }
}

/// Opens a store of either kind.
pub(super) fn store_at(url: &StoreUrl, folder: &Path) -> Result<Arc<dyn Store>, CliError> {
    match url {
        StoreUrl::Sqlite => {
            let home = DataDir::new(folder);
            home.create()?;
            let store = SqliteStore::open(&home.journal());
            Ok(Arc::new(store.map_err(EngineError::from)?))
        }
        StoreUrl::Postgres(address) => crate::store_location::open(&in_schema_of(address, folder), true),
    }
}

/// The address with a schema derived from the place, so that every measurement has an empty store.
fn in_schema_of(address: &str, place: &Path) -> String {
    let name = Hash::of(place.as_os_str().as_encoded_bytes()).hex();
    let separator = if address.contains('?') { '&' } else { '?' };
    format!("{address}{separator}schema=bench_{}", &name[..16])
}

/// The lease of a node. A measurement that kills a node waits this long.
const TERMS: LeaseTiming = LeaseTiming { lease_ms: 5_000 };

/// The polling interval for the ownership of partitions.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// An engine that owns all partitions of a store.
pub(super) async fn engine(
    store: Arc<dyn Store>,
    executors: Executors,
    spans: Option<Spans>,
) -> Result<Arc<Engine>, CliError> {
    all_of(begin(store, executors, spans, None)?).await
}

/// Like [`engine`], with the concurrency limits of a server.
pub(super) async fn counting_engine(store: Arc<dyn Store>, executors: Executors) -> Result<Arc<Engine>, CliError> {
    all_of(begin(store, executors, None, Some(Arc::new(mainspring_server::StoredLimits)))?).await
}

async fn all_of((engine, partitions): (Arc<Engine>, usize)) -> Result<Arc<Engine>, CliError> {
    let mut again = tokio::time::interval(POLL_INTERVAL);
    while engine.owned_partitions().len() < partitions {
        again.tick().await;
    }
    Ok(engine)
}

/// An engine that owns no partitions yet, and the number of partitions of its store.
fn begin(
    store: Arc<dyn Store>,
    executors: Executors,
    spans: Option<Spans>,
    limits: Option<Arc<dyn Limits>>,
) -> Result<(Arc<Engine>, usize), CliError> {
    let is_shared = store.is_shared();
    let sharing = is_shared.then(|| ClusterOptions { terms: TERMS, place: "bench".into() });
    let partitions = store.partitions().map_err(EngineError::from)? as usize;
    let resources =
        mainspring_engine::EngineResources { data_dir: None, sharing, spans, limits, budgets: None, seal_note: None };
    let engine = Engine::run(store, KEY, (executors, evaluator::evaluator()), resources, EngineScope::All)?;
    Ok((Arc::new(engine), partitions))
}

/// The error for an unusable folder of the measurement.
pub(super) fn unusable(error: &io::Error) -> CliError {
    CliError::bad_input("folder_unusable", format!("the folder for the measurement cannot be used: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_folder_has_its_own_schema() {
        let schema = |address: &str, place: &str| in_schema_of(address, Path::new(place));
        let first = schema("postgres://me@host/mine", "/a");
        assert!(first.starts_with("postgres://me@host/mine?schema=bench_"), "{first}");
        assert!(schema("postgres://me@host/mine?sslmode=disable", "/a").contains("disable&schema=bench_"));
        assert_ne!(first, schema("postgres://me@host/mine", "/b"));
        assert_eq!(first, schema("postgres://me@host/mine", "/a"));
    }
}
