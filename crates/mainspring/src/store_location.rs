//! The location of executions: a data folder of this machine, or a store that several machines share.

use std::{
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use mainspring_engine::{EngineError, data_dir::DataDir, keys, seal_note::SealNote};
use mainspring_server::services::{audit_marks::Marks, encryption_keys::EncryptionKeys};
use mainspring_store::{
    Store,
    postgres::{Options, PostgresStore},
    sqlite::SqliteStore,
};

use rustix::fs::Access;

use crate::{context::Global, error::CliError, paths};

/// The location of executions.
#[derive(Debug, Clone)]
pub(crate) enum StoreLocation {
    /// A data folder. One process at a time runs an engine on it.
    Folder(DataDir),
    /// The address of a shared store. Its nodes run the engines.
    Shared(String),
}

impl StoreLocation {
    /// The location that the flags name, or the default data folder.
    pub(crate) fn of(global: &Global) -> Result<Self, CliError> {
        match &global.store {
            Some(address) => Ok(Self::Shared(address.clone())),
            None => Ok(Self::Folder(global.home()?)),
        }
    }

    /// The installation's key. It is created only for a new data folder or a new store. All nodes of a shared store
    /// use one key.
    pub(crate) fn key(&self, store: &dyn Store) -> Result<[u8; 32], CliError> {
        match self {
            Self::Folder(home) => {
                let key = home.key(&paths::key_file(&[home.folder()]))?;
                home.check_key(&key)?;
                Ok(key)
            }
            Self::Shared(_) => Ok(keys::of_store(store, &paths::key_file(&[]))?),
        }
    }

    /// The file of the installation's key.
    pub(crate) fn key_file(&self) -> PathBuf {
        match self {
            Self::Folder(home) => paths::key_file(&[home.folder()]),
            Self::Shared(_) => paths::key_file(&[]),
        }
    }

    /// The keys that encrypt values in the store, of the same file.
    pub(crate) fn encryption_keys(&self, installation: [u8; 32]) -> Arc<EncryptionKeys> {
        Arc::new(EncryptionKeys::new(installation, Some(self.key_file())))
    }

    /// The store, opened to write inbox messages. A store of an older format is an error, since nodes of the older
    /// release may still use it.
    pub(crate) fn store(&self) -> Result<Arc<dyn Store>, CliError> {
        match self {
            Self::Folder(home) => Ok(Arc::new(SqliteStore::open_current(&home.journal()).map_err(EngineError::from)?)),
            Self::Shared(address) => open(address, false),
        }
    }

    /// The store, opened by a process that runs its executions. A store of an older format is upgraded.
    pub(crate) fn store_for_engine(&self) -> Result<Arc<dyn Store>, CliError> {
        match self {
            Self::Folder(home) => Ok(Arc::new(SqliteStore::open(&home.journal()).map_err(EngineError::from)?)),
            Self::Shared(address) => open(address, true),
        }
    }

    /// The audit marks: the furthest entry seen of each audit log, which detect that a log was truncated. They are
    /// stored next to the key, because an attacker who restores an old store may not be able to write there. If the
    /// key's folder is not writable, as with a mounted secret, they are stored in this machine's data folder. Both
    /// places are read, since a folder can become read-only or writable later. `makes` is false for read-only
    /// commands, which create nothing.
    pub(crate) fn marks(&self, home: &DataDir, key: [u8; 32], makes: bool) -> Marks {
        let (file, store) = (self.key_file(), self.store_name());
        let [first, second] = beside(&file, home, "audit-heads", makes);
        let marks = Marks::of(first, &store, key).and_in(second, &store);
        let former = match self {
            Self::Folder(_) => None,
            Self::Shared(address) => former_name(address),
        };
        match former {
            Some(former) => marks.and_in(first, former),
            None => marks,
        }
    }

    /// The file which records that the store has seals. It is where the audit marks are, for the same reason. `writes` is
    /// false for a process that does not run all executions of the store.
    pub(crate) fn seal_note(&self, home: &DataDir, writes: bool) -> SealNote {
        let file = self.key_file();
        SealNote::of(&beside(&file, home, "sealed-stores", writes), &self.store_name(), writes)
    }

    /// The name that distinguishes stores which share a key.
    fn store_name(&self) -> String {
        match self {
            Self::Folder(home) => {
                // At its first use the folder does not exist yet.
                let folder = home.folder();
                let parent = || Some(folder.parent()?.canonicalize().ok()?.join(folder.file_name()?));
                let whole = folder.canonicalize().ok().or_else(parent);
                whole.unwrap_or_else(|| folder.to_path_buf()).display().to_string()
            }
            // An unreadable address gives an empty name, which is harmless: such an address opens no store either.
            Self::Shared(address) => PostgresStore::identity(address).unwrap_or_default(),
        }
    }

    /// The data folder, unless the store is shared. A process that enqueues a message notifies the engine through a
    /// socket there.
    pub(crate) fn home(&self) -> Option<&DataDir> {
        match self {
            Self::Folder(home) => Some(home),
            Self::Shared(_) => None,
        }
    }

    /// The process or nodes that run the executions, as text; `None` if there are none.
    pub(crate) fn engine_description(&self, store: &dyn Store) -> Option<String> {
        match self {
            Self::Folder(home) => {
                let holder = home.holder()?;
                Some(holder.map_or("another process".to_string(), |pid| format!("the process {pid}")))
            }
            Self::Shared(_) => match store.cluster_view().ok()?.nodes.len() {
                0 => None,
                1 => Some("the node".into()),
                count => Some(format!("one of {count} nodes")),
            },
        }
    }

    /// The command that starts a process which runs the executions, as help text.
    pub(crate) fn help(&self) -> String {
        match self {
            Self::Folder(_) => "run `mainspring resume --all`".into(),
            Self::Shared(_) => "`mainspring node --store …` starts a node".into(),
        }
    }
}

/// The folder of the key and the data folder, the one to write to first: the folder of the key, unless `name` cannot be
/// written there. `makes` creates `name` in it.
fn beside<'a>(key_file: &'a Path, home: &'a DataDir, name: &str, makes: bool) -> [&'a Path; 2] {
    let beside = key_file.parent().unwrap_or(Path::new("."));
    let folder = beside.join(name);
    let is_usable = if makes {
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).is_ok()
            && rustix::fs::access(&folder, Access::WRITE_OK).is_ok()
    } else {
        folder.is_dir()
    };
    if is_usable { [beside, home.folder()] } else { [home.folder(), beside] }
}

/// The name under which earlier versions stored the marks of a store: its address without user, password and
/// parameters. `None` if parameters select the store, because several stores then shared one name; their marks
/// start again.
fn former_name(address: &str) -> Option<&str> {
    let (base, parameters) = address.split_once('?').unwrap_or((address, ""));
    let tells_apart = |parameter: &str| ["schema=", "host="].iter().any(|name| parameter.starts_with(name));
    let place = base.rsplit_once('@').map_or(base, |(_, place)| place);
    (!parameters.split('&').any(tells_apart)).then_some(place)
}

/// Opens a shared store by its address. `upgrades` allows the upgrade of an older format, which is an error
/// otherwise.
pub(crate) fn open(address: &str, upgrades: bool) -> Result<Arc<dyn Store>, CliError> {
    PostgresStore::check_address(address).map_err(|error| CliError::bad_input("bad_store", error.to_string()))?;
    let options = Options { upgrades, ..Options::default() };
    Ok(Arc::new(PostgresStore::open_with(address, options).map_err(EngineError::from)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unambiguous_marks_of_earlier_versions_are_found() {
        let table = [
            ("postgres://u:p@h:1/d", Some("h:1/d")),
            ("postgres://h/d?sslmode=require", Some("postgres://h/d")),
            ("postgres://u@h/d?schema=staging", None),
            ("postgres:///d?user=a@b&host=/run/pg1", None),
        ];
        for (address, former) in table {
            assert_eq!(former_name(address), former, "{address}");
        }
    }
}
