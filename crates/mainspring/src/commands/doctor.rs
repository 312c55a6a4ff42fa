//! `mainspring doctor`: whether this installation is well. It looks, and changes nothing: no store is made or brought to a
//! newer format, no key is made, nothing is held up that runs.
//!
//! A check has a name, a state, a sentence, and a mend where it is not well. A thing that is broken fails the command, a
//! warning does not. What cannot be looked at because of something that is broken is skipped, and says why.

mod check;
mod database;
mod disk;
mod executions;
mod exposed;
mod file;
mod folder;
mod gates;
mod held;
mod machine;
mod proof;
mod reach;
mod server;
mod settings;
mod sign_in;

use std::sync::Arc;

use clap::Args;
use mainspring_engine::home::Home;
use mainspring_server::{nouns::Organization, problem::Problem, shelf::Shelf};
use mainspring_store::{Inspection, Store, StoreError, sqlite::Stamp};

use self::check::{Check, Report};
use crate::{
    cli::Global,
    exit::{Exit, Refusal},
    ground::Ground,
    settings::{ServerFlags, Settings},
    terminal::Terminal,
};

/// Look whether this installation is well, and change nothing
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Look through all of the store: every page, every journal, every audit log
    #[arg(long)]
    deep: bool,
    #[command(flatten)]
    flags: ServerFlags,
}

/// What is looked at.
struct Patient {
    /// Settings, if they can be read.
    settings: Option<Settings>,
    /// The flags of every command, with what is in force of them.
    global: Global,
    /// Where things are.
    ground: Ground,
    /// The folder of this machine, also where the store is shared.
    home: Home,
    /// Who works on that folder: nobody, or a process whose number may be known.
    holder: Option<Option<u32>>,
    /// Whether everything is looked through.
    is_deep: bool,
}

/// A store that is open for looking, with what it was called.
type Opened = Box<dyn Inspection>;

/// The things of a store, beside what every format has.
enum Contents {
    /// There are none yet.
    Nothing,
    /// They are of a format that this build cannot read.
    Older,
    /// They can be read.
    Store(Arc<dyn Store>),
}

impl Contents {
    fn of(opened: Opened) -> Self {
        match opened.format().found {
            0 => Self::Nothing,
            _ => opened.store().map_or(Self::Older, Self::Store),
        }
    }

    /// The ids of all organizations; `None` where they cannot be read.
    fn organizations(&self) -> Option<Result<Vec<String>, StoreError>> {
        let Self::Store(store) = self else { return None };
        let read = || {
            let found = Shelf::of(store.catalogue(), "").all::<Organization>(None).map(|held| held.map(|held| held.id));
            let ids: Result<Vec<String>, Problem> = found.collect();
            ids.map_err(|problem| StoreError::Damaged(problem.whole()))
        };
        Some(read())
    }
}

/// Looks at everything, and says how it is.
pub(crate) fn doctor(doctor: &Doctor, global: &Global, _: &Terminal) -> Result<Exit, Refusal> {
    let mut report = Report::new(global.json);
    let settings = Settings::of(&doctor.flags, global);
    report.add(settings::check(&doctor.flags, &settings));
    // With settings that cannot be read, flags and environment still say where to look.
    let global = settings.as_ref().map_or(global, |settings| &settings.global).clone();
    let home = match global.home() {
        Ok(home) => home,
        Err(refusal) => {
            report.add(Check::broken("folder", refusal.failure.message, "name a folder with --dir"));
            return Ok(report.end());
        }
    };
    let ground = match &global.store {
        Some(address) => Ground::Shared(address.clone()),
        None => Ground::Folder(home.clone()),
    };
    // A node of a shared store has its own folder in that one.
    let held = if global.store.is_some() { Home::new(home.folder().join("node")) } else { home.clone() };
    let holder = held.holder();
    let patient = Patient { settings: settings.ok(), global, ground, home, holder, is_deep: doctor.deep };
    report.add(settings::tokens());
    folder::look(&patient, &mut report);
    match &patient.ground {
        Ground::Folder(_) => of_file(&patient, &mut report),
        Ground::Shared(address) => {
            let opened = database::look(address, &mut report);
            let pinned = opened.as_ref().map(|opened| opened.pinned(mainspring_engine::keys::KEY_CHECK));
            let check = pinned.and_then(Result::ok).flatten().flatten();
            report.add(settings::key(&patient, check.as_deref()));
            of_store(&patient, opened, &mut report);
        }
    }
    report.extend(exposed::look(&patient));
    machine::look(&patient, &mut report);
    sign_in::look(&patient, &mut report);
    server::look(&patient, &mut report);
    Ok(report.end())
}

/// Looks at a file as if nobody worked on it where nobody does; and again, beside whoever has begun to, if that was so.
fn of_file(patient: &Patient, report: &mut Report) {
    report.add(settings::key(patient, patient.home.key_check_text().as_deref()));
    report.add(held::look(patient));
    for is_alone in [patient.holder.is_none(), false] {
        let (stamp, mut draft) = (Stamp::of(&patient.home.journal()), Vec::new());
        let opened = file::look(patient, is_alone, &mut draft);
        of_store(patient, opened, &mut draft);
        if !is_alone || stamp.is_unchanged() {
            return report.extend(draft);
        }
    }
}

/// What is the same in every store.
fn of_store(patient: &Patient, opened: Option<Opened>, report: &mut impl Extend<Check>) {
    let Some(opened) = opened else {
        report.extend(executions::skipped("there is no store to look into"));
        report.extend(reach::look(&Contents::Nothing));
        return;
    };
    executions::look(patient, &*opened, report);
    let contents = Contents::of(opened);
    report.extend(reach::look(&contents));
    report.extend([gates::look(patient, &contents)]);
    report.extend(proof::look(patient, &contents));
}

/// What a store that cannot be looked at comes to, under the name of what was asked of it.
fn refused(name: &'static str, error: &StoreError) -> Check {
    let says = error.to_string();
    match error {
        StoreError::Newer { .. } => {
            let says = format!("{says}; this build is {}", env!("CARGO_PKG_VERSION"));
            Check::broken(name, says, "`mainspring --version` says which release a program is")
        }
        StoreError::Damaged(_) => {
            // What SQLite says of itself has the mend with it.
            let says = says.split(". Stop the engine").next().unwrap_or_default();
            let mend = "stop what works on it, keep the files for study (also -wal and -shm), and restore the latest backup (of `mainspring backup`, or of the PostgreSQL server; docs/how-to/backup-and-restore.md)";
            Check::broken(name, says, mend)
        }
        StoreError::Unavailable(_) => Check::broken(name, says, "mend what the sentence names, and look again"),
    }
}
