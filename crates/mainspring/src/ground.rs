//! Where executions are kept: in a folder of this machine, or in a store that several machines share.

use std::{fs::DirBuilder, os::unix::fs::DirBuilderExt, path::Path, sync::Arc};

use mainspring_engine::{EngineError, home::Home, keys};
use mainspring_server::marks::Marks;
use mainspring_store::{
    Store,
    postgres::{Options, PostgresStore},
    sqlite::SqliteStore,
};

use rustix::fs::Access;

use crate::{cli::Global, exit::Refusal, place};

/// Where executions are kept.
#[derive(Debug, Clone)]
pub(crate) enum Ground {
    /// A folder, of which one process at a time is the engine.
    Folder(Home),
    /// The address of a store whose nodes are its engine.
    Shared(String),
}

impl Ground {
    /// What the flags say.
    pub(crate) fn of(global: &Global) -> Result<Self, Refusal> {
        match &global.store {
            Some(address) => Ok(Self::Shared(address.clone())),
            None => Ok(Self::Folder(global.home()?)),
        }
    }

    /// The installation's key, which is made only for a folder or a store that is begun with it. All nodes of a shared
    /// store have one key.
    pub(crate) fn key(&self, store: &dyn Store) -> Result<[u8; 32], Refusal> {
        match self {
            Self::Folder(home) => {
                let key = home.key(&place::key_file(&[home.folder()]))?;
                home.check_key(&key)?;
                Ok(key)
            }
            Self::Shared(_) => Ok(keys::of_store(store, &place::key_file(&[]))?),
        }
    }

    /// The store, to write to its inbox. One of an older format is refused: those of the older release may be at work on it.
    pub(crate) fn store(&self) -> Result<Arc<dyn Store>, Refusal> {
        match self {
            Self::Folder(home) => Ok(Arc::new(SqliteStore::open_current(&home.journal()).map_err(EngineError::from)?)),
            Self::Shared(address) => open(address, false),
        }
    }

    /// The store, for a process that works on its executions and so upgrades it.
    pub(crate) fn store_to_work_on(&self) -> Result<Arc<dyn Store>, Refusal> {
        match self {
            Self::Folder(home) => Ok(Arc::new(SqliteStore::open(&home.journal()).map_err(EngineError::from)?)),
            Self::Shared(address) => open(address, true),
        }
    }

    /// How far audit logs were seen to reach, beside the key: who can put back an old store need not be able to write there.
    /// Where the key lies in a folder that cannot be written, as that of a mounted secret, they lie in this machine's
    /// folder. Both are read, as a folder may have become one of the other kind. `makes` is false for those who only look.
    pub(crate) fn marks(&self, home: &Home, key: [u8; 32], makes: bool) -> Marks {
        let (file, store, former) = match self {
            Self::Folder(home) => {
                let folder = home.folder().canonicalize().unwrap_or_else(|_| home.folder().to_path_buf());
                (place::key_file(&[home.folder()]), folder.display().to_string(), None)
            }
            Self::Shared(address) => {
                // An address that cannot be read opens no store.
                let store = PostgresStore::place(address).unwrap_or_default();
                (place::key_file(&[]), store, former_name(address))
            }
        };
        let beside = file.parent().unwrap_or(Path::new("."));
        let heads = beside.join("audit-heads");
        let is_usable = if makes {
            DirBuilder::new().recursive(true).mode(0o700).create(&heads).is_ok()
                && rustix::fs::access(&heads, Access::WRITE_OK).is_ok()
        } else {
            heads.is_dir()
        };
        let [first, second] = if is_usable { [beside, home.folder()] } else { [home.folder(), beside] };
        let marks = Marks::of(first, &store, key).and_in(second, &store);
        match former {
            Some(former) => marks.and_in(first, former),
            None => marks,
        }
    }

    /// The folder, if it is one: who posts a letter rings the bell there.
    pub(crate) fn home(&self) -> Option<&Home> {
        match self {
            Self::Folder(home) => Some(home),
            Self::Shared(_) => None,
        }
    }

    /// Who works on the executions, in words; `None` if nobody does.
    pub(crate) fn who_works(&self, store: &dyn Store) -> Option<String> {
        match self {
            Self::Folder(home) => {
                let holder = home.holder()?;
                Some(holder.map_or("another process".to_string(), |pid| format!("the process {pid}")))
            }
            Self::Shared(_) => match store.table().ok()?.nodes.len() {
                0 => None,
                1 => Some("the node".into()),
                count => Some(format!("one of {count} nodes")),
            },
        }
    }

    /// What starts somebody who works on them.
    pub(crate) fn mend(&self) -> String {
        match self {
            Self::Folder(_) => "`mainspring resume --all` does".into(),
            Self::Shared(_) => "`mainspring node --store …` starts a node".into(),
        }
    }
}

/// The name of a store's marks in earlier versions: its address without user, password and parameters. Several stores had one
/// name where parameters tell them apart: these begin anew.
fn former_name(address: &str) -> Option<&str> {
    let (base, parameters) = address.split_once('?').unwrap_or((address, ""));
    let tells_apart = |parameter: &str| ["schema=", "host="].iter().any(|name| parameter.starts_with(name));
    let place = base.rsplit_once('@').map_or(base, |(_, place)| place);
    (!parameters.split('&').any(tells_apart)).then_some(place)
}

/// Opens a store that is shared, by its address; one of an older format only where it is to be upgraded.
pub(crate) fn open(address: &str, upgrades: bool) -> Result<Arc<dyn Store>, Refusal> {
    PostgresStore::check_address(address).map_err(|error| Refusal::bad_input("bad_store", error.to_string()))?;
    let options = Options { upgrades, ..Options::default() };
    Ok(Arc::new(PostgresStore::open_with(address, options).map_err(EngineError::from)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_an_earlier_version_are_found_unless_several_stores_shared_them() {
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
