//! `mainspring doctor`: checks this installation. It is read-only: it creates no store and no key, upgrades no
//! format, and takes no lock.
//!
//! A check has a name, a state, a message, and help unless it is fine. A broken check fails the command, a warning
//! does not. A check that depends on something broken is skipped, with the reason.

mod check;
mod database;
mod disk;
mod executions;
mod exposed;
mod folder;
mod gates;
mod host;
mod http_reach;
mod integrity;
mod models;
mod oidc;
mod open_files;
mod repositories;
mod sandboxes;
mod server;
mod settings;
mod sqlite;
mod vault;

use std::sync::Arc;

use clap::Args;
use mainspring_engine::data_dir::DataDir;
use mainspring_server::{
    http::problem::Problem,
    resources::{Organization, repository::Repository},
};
use mainspring_store::{Inspection, SealedStore, Store, StoreError, sqlite::Stamp};

use self::check::{Check, Report};
use crate::{
    context::{Context, Global},
    error::{CliError, Exit},
    server_settings::{ServerFlags, Settings},
    store_location::StoreLocation,
};

/// Check this installation, without changing anything
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Verify the whole store: every page, journal and audit log
    #[arg(long)]
    deep: bool,
    #[command(flatten)]
    flags: ServerFlags,
}

/// The installation that is checked.
struct Installation {
    /// The settings, unless they are invalid.
    settings: Option<Settings>,
    /// The global flags with the effective settings.
    global: Global,
    location: StoreLocation,
    /// The data folder of this machine, which exists for a shared store too.
    home: DataDir,
    /// The owner of that folder's lock: none, or a process with a pid if it is known.
    holder: Option<Option<u32>>,
    /// True with `--deep`.
    is_deep: bool,
}

/// A store that is opened read-only.
type Opened = Box<dyn Inspection>;

/// The contents of a store that depend on its format.
enum Contents {
    /// The store is empty.
    Nothing,
    /// The format is too old for this build to read.
    Older,
    /// The contents can be read.
    Store(Arc<dyn Store>),
}

impl Contents {
    fn of(opened: Opened) -> Self {
        match opened.format().found {
            0 => Self::Nothing,
            _ => opened.store().map_or(Self::Older, Self::Store),
        }
    }

    /// The ids of all organizations; `None` if they cannot be read.
    fn organizations(&self) -> Option<Result<Vec<String>, StoreError>> {
        let Self::Store(store) = self else { return None };
        let read = || {
            // `integrity` checks the seals.
            let store = SealedStore::without_key(store.clone());
            let found =
                Repository::of(store.catalogue(), "").all::<Organization>(None).map(|held| held.map(|held| held.id));
            let ids: Result<Vec<String>, Problem> = found.collect();
            ids.map_err(|problem| StoreError::Damaged(problem.full_message()))
        };
        Some(read())
    }
}

/// Runs all checks, and prints the report.
pub(crate) fn doctor(doctor: &Doctor, context: &Context) -> Result<Exit, CliError> {
    let mut report = Report::new(context.global.json);
    let settings = Settings::of(&doctor.flags, &context.global);
    report.add(settings::check(&doctor.flags, &settings));
    // Without valid settings, flags and environment still name the store.
    let global = settings.as_ref().map_or(&context.global, |settings| &settings.global).clone();
    let home = match global.home() {
        Ok(home) => home,
        Err(error) => {
            report.add(Check::broken("folder", error.failure.message, "name a folder with --dir"));
            return Ok(report.end());
        }
    };
    let location = match &global.store {
        Some(address) => StoreLocation::Shared(address.clone()),
        None => StoreLocation::Folder(home.clone()),
    };
    // A node of a shared store has its own folder inside of the data folder.
    let held = if global.store.is_some() { DataDir::new(home.folder().join("node")) } else { home.clone() };
    let holder = held.holder();
    let installation = Installation { settings: settings.ok(), global, location, home, holder, is_deep: doctor.deep };
    report.add(settings::tokens());
    report.add(models::check(&doctor.flags));
    models::check_tools(&doctor.flags).into_iter().for_each(|check| report.add(check));
    report.extend(vault::check(&doctor.flags));
    models::check_runners(&doctor.flags).into_iter().for_each(|check| report.add(check));
    sandboxes::check(&doctor.flags).into_iter().for_each(|check| report.add(check));
    folder::check(&installation, &mut report);
    match &installation.location {
        StoreLocation::Folder(_) => of_file(&installation, &mut report),
        StoreLocation::Shared(address) => {
            let opened = database::check(address, &mut report);
            let pinned = opened.as_ref().map(|opened| opened.metadata(mainspring_engine::keys::KEY_CHECK));
            let check = pinned.and_then(Result::ok).flatten().flatten();
            report.add(settings::key(&installation, check.as_deref()));
            of_store(&installation, opened, &mut report);
        }
    }
    report.extend(exposed::check(&installation));
    host::check(&installation, &mut report);
    repositories::check(&installation).into_iter().for_each(|check| report.add(check));
    oidc::check(&installation, &mut report);
    server::check(&installation, &mut report);
    Ok(report.end())
}

/// Checks the store of a data folder. If no process owns the folder, the file is inspected without touching its WAL and
/// index. If a process changed the file in the meantime, the results are discarded and the checks run again beside it.
fn of_file(installation: &Installation, report: &mut Report) {
    report.add(settings::key(installation, installation.home.key_check_text().as_deref()));
    report.add(open_files::check(installation));
    for is_alone in [installation.holder.is_none(), false] {
        let (stamp, mut draft) = (Stamp::of(&installation.home.journal()), Vec::new());
        let opened = sqlite::check(installation, is_alone, &mut draft);
        of_store(installation, opened, &mut draft);
        if !is_alone || stamp.is_unchanged() {
            return report.extend(draft);
        }
    }
}

/// Checks that are equal for all stores.
fn of_store(installation: &Installation, opened: Option<Opened>, report: &mut impl Extend<Check>) {
    let Some(opened) = opened else {
        report.extend(executions::skipped("there is no store to read"));
        report.extend(http_reach::check(&Contents::Nothing));
        return;
    };
    executions::check(installation, &*opened, report);
    let contents = Contents::of(opened);
    report.extend(http_reach::check(&contents));
    report.extend([gates::check(installation, &contents)]);
    report.extend(integrity::check(installation, &contents));
}

/// The check result for a store error.
fn refused(name: &'static str, error: &StoreError) -> Check {
    let message = error.to_string();
    match error {
        StoreError::Newer { .. } => {
            let message = format!("{message}; this build is {}", env!("CARGO_PKG_VERSION"));
            Check::broken(name, message, "`mainspring --version` shows the release of a program")
        }
        StoreError::Damaged(_) => {
            // SQLite's message already contains the help.
            let message = message.split(". Stop the engine").next().unwrap_or_default();
            let help = "stop what works on it, keep the files for study (also -wal and -shm), and restore the latest backup (of `mainspring backup`, or of the PostgreSQL server; `mainspring backup --help` says how)";
            Check::broken(name, message, help)
        }
        StoreError::Unavailable(_) => {
            Check::broken(name, message, "correct what the message names, and run `mainspring doctor` again")
        }
    }
}
