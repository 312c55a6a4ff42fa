//! Where a measurement stands: a folder that goes with the process, and empty stores of the kind that was asked for.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use mainspring_effects::Executors;
use mainspring_engine::{Engine, Reach, home::Home};
use mainspring_kernel::hash::hex;
use mainspring_store::{Store, sqlite::SqliteStore};

use crate::{evaluating, exit::Refusal};

/// Seals the journals of a measurement. Nobody relies on them.
const KEY: [u8; 32] = [7; 32];

/// Which kind of store, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StoreUrl {
    /// A file of its own in the folder of the measurement.
    Sqlite,
    /// A database by its URL.
    Postgres(String),
}

impl StoreUrl {
    /// As the lines name it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres(_) => "postgres",
        }
    }
}

impl std::str::FromStr for StoreUrl {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        match url.split_once(':') {
            Some(("sqlite", "")) => Ok(Self::Sqlite),
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => Ok(Self::Postgres(url.into())),
            _ => Err("write `sqlite:` for a file in the folder of executions, or postgres://USER@HOST/DATABASE".into()),
        }
    }
}

/// A folder that is removed when this is dropped.
pub(super) struct Ground {
    folder: PathBuf,
    url: StoreUrl,
}

impl Ground {
    /// A fresh folder inside of another one.
    pub(super) fn new(beside: &Path, url: StoreUrl) -> Result<Self, Refusal> {
        let mut suffix = [0; 8];
        getrandom::fill(&mut suffix).map_err(|error| Refusal::internal("no_randomness", error.to_string()))?;
        let folder = beside.join(format!("bench-{}", hex(&suffix)));
        fs::create_dir_all(&folder).map_err(|error| unusable(&error))?;
        Ok(Self { folder, url })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A folder in this one that is named for what is measured in it.
    pub(super) fn place(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn url(&self) -> &StoreUrl {
        &self.url
    }

    /// The store of a place, empty if it is new.
    pub(super) fn store(&self, name: &str) -> Result<Arc<dyn Store>, Refusal> {
        store_at(&self.url, &self.place(name))
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The one place that knows kinds of stores.
pub(super) fn store_at(url: &StoreUrl, folder: &Path) -> Result<Arc<dyn Store>, Refusal> {
    match url {
        StoreUrl::Sqlite => {
            let home = Home::new(folder);
            home.create()?;
            let store = SqliteStore::open(&home.journal());
            Ok(Arc::new(store.map_err(mainspring_engine::EngineError::from)?))
        }
        StoreUrl::Postgres(_) => Err(Refusal::bad_input(
            "not_in_this_build",
            "--store: PostgreSQL is not in this build yet; leave the flag out to measure on SQLite",
        )),
    }
}

/// An engine on a store that is used by nobody else.
pub(super) fn engine(store: Arc<dyn Store>, executors: Executors) -> Result<Arc<Engine>, Refusal> {
    Ok(Arc::new(Engine::run(store, KEY, (executors, evaluating::evaluator()), None, Reach::All)?))
}

/// A folder or a file of the measurement that the operating system refuses.
pub(super) fn unusable(error: &io::Error) -> Refusal {
    Refusal::bad_input("folder_unusable", format!("the folder for the measurement cannot be used: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_stores() {
        assert_eq!("sqlite:".parse(), Ok(StoreUrl::Sqlite));
        for url in ["postgres://me@host/mine", "postgresql://host"] {
            assert_eq!(url.parse(), Ok(StoreUrl::Postgres(url.into())));
        }
        for url in ["", "sqlite", "sqlite:x.db", "postgres:host", "mysql://host"] {
            assert!(url.parse::<StoreUrl>().is_err(), "{url}");
        }
    }
}
