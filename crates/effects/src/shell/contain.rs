//! Containers for scripts: bubblewrap around them, Landlock and a filter of system calls inside.
//!
//! | wall | keeps a script from |
//! |---|---|
//! | mount namespace | every file but its workspace, the programs of the system and the folders that are allowed |
//! | process, IPC and host name namespaces | other processes, their memory and signals to them |
//! | network namespace | all network, unless the configuration gives the host's |
//! | user namespace without capabilities, no new privileges | rights of root, set-uid programs |
//! | Landlock | writing anywhere but the workspace, `/tmp` and devices that are safe; sockets outside of the container |
//! | filter of system calls | mounts, namespaces, tracing, keys, BPF, io_uring, modules, rare socket families |
//! | limits, [`quota`] and [`cgroup`] | taking all memory, processes, files or disk |
//!
//! The parts: [`arguments`] is the command line of bubblewrap; [`helper`] runs inside, builds the inner walls and becomes
//! bash; [`order`] is how it is told what to run, after the group was written down.

mod arguments;
mod cgroup;
mod filter;
mod helper;
pub(super) mod launcher;
pub(super) mod order;
pub(super) mod quota;

use std::{
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

use super::{limits::READY_BYTES, refusal::Refusal, script::find_program};

pub(super) use arguments::HOME;
pub(super) use cgroup::Cgroup;
pub use helper::{HELPER_ARGUMENT, serve_if_helper};

/// How the scripts of a node run.
#[derive(Debug, Clone, Default)]
pub enum Scripts {
    /// As the user who runs this process, with all that this user may do.
    #[default]
    Uncontained,
    /// In containers.
    Contained(Arc<Container>),
    /// Not at all, and why.
    Off(String),
}

/// The network of contained scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Network {
    /// A loopback interface of their own and nothing else.
    #[default]
    None,
    /// The host's: the internet, and also its loopback services, its private network and the metadata address of its cloud.
    Host,
}

impl Network {
    /// Its word in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Host => "host",
        }
    }
}

/// What containers are made of.
#[derive(Debug, Clone)]
pub struct ContainerSettings {
    /// Where bubblewrap is looked for.
    pub search_path: OsString,
    /// The program that becomes the [`helper`] inside when it is called with [`HELPER_ARGUMENT`].
    pub helper: PathBuf,
    /// Files and folders that scripts may read and execute, beside those of the system.
    pub readable: Vec<PathBuf>,
    /// Files and folders that no container shows: state, keys, configuration.
    pub hidden: Vec<PathBuf>,
    /// The folder of workspaces, which may lie in a hidden one: each script is shown its own.
    pub workspaces: PathBuf,
    /// The network.
    pub network: Network,
}

/// Containers that were tried on this machine and hold.
#[derive(Debug, Clone)]
pub struct Container {
    bwrap: PathBuf,
    settings: ContainerSettings,
    walls: Walls,
}

/// What the helper says of the walls that it has built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walls {
    /// How much of Landlock the kernel has: all that is asked for, some, or nothing.
    pub landlock: Landlock,
}

/// How much of Landlock is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words say it")]
pub enum Landlock {
    Full,
    Partial,
    Missing,
}

impl fmt::Display for Container {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let landlock = match self.walls.landlock {
            Landlock::Full => "Landlock",
            Landlock::Partial => "Landlock in part",
            Landlock::Missing => "no Landlock in this kernel",
        };
        write!(formatter, "bubblewrap, seccomp, {landlock}; network: {}", self.settings.network.name())
    }
}

impl Container {
    /// Builds one container and looks whether all walls stand. The error says what is missing and what to do.
    pub fn probe(settings: ContainerSettings) -> Result<Self, String> {
        let Some(bwrap) = find_program("bwrap", &settings.search_path) else {
            return Err("bubblewrap is not installed (`apt-get install bubblewrap`)".into());
        };
        let canonical = |path: PathBuf| path.canonicalize().unwrap_or(path);
        let hidden: Vec<_> = settings.hidden.into_iter().map(canonical).collect();
        let workspaces = canonical(settings.workspaces);
        let mut readable = Vec::new();
        for path in settings.readable {
            let real = path.canonicalize().map_err(|error| format!("the folder {}: {error}", path.display()))?;
            if let Some(secret) = hidden.iter().find(|hidden| overlaps(hidden, &real)) {
                let (path, secret) = (path.display(), secret.display());
                return Err(format!(
                    "{path} cannot be shown to scripts: {secret}, which is the server's own, is in it"
                ));
            }
            readable.push(path);
        }
        let settings = ContainerSettings { hidden, workspaces, readable, ..settings };
        let mut container = Self { bwrap, settings, walls: Walls { landlock: Landlock::Missing } };
        let trial = container.command(None).stdin(Stdio::null()).output();
        let trial = trial.map_err(|error| format!("{} cannot be started: {error}", container.bwrap.display()))?;
        container.walls = trial.stdout.get(..READY_BYTES).and_then(helper::walls).ok_or_else(|| {
            let said = String::from_utf8_lossy(&trial.stderr);
            let said = said.lines().next().unwrap_or("it said nothing").chars().take(300).collect::<String>();
            format!("no container can be made on this machine: {said}")
        })?;
        Ok(container)
    }

    /// The walls inside.
    pub fn walls(&self) -> Walls {
        self.walls
    }

    /// The network of scripts.
    pub fn network(&self) -> Network {
        self.settings.network
    }

    /// The command that makes a container. Its environment is empty: variables of a step are given inside, where a
    /// variable like `LD_PRELOAD` reaches nothing that builds the walls.
    pub(super) fn command(&self, place: Option<&Place>) -> Command {
        let mut command = Command::new(&self.bwrap);
        command.args(arguments::of(&self.settings, place)).env_clear().current_dir("/");
        command
    }

    /// The workspace of an attempt and the folder that its script starts in, both by their real paths.
    pub(super) fn place(&self, workspace: &Path, folder: &Path) -> Result<Place, Refusal> {
        let real = |path: &Path| path.canonicalize().map_err(|error| Refusal::NotContained(error.to_string()));
        let (workspace, folder) = (real(workspace)?, real(folder)?);
        let ContainerSettings { hidden, workspaces, .. } = &self.settings;
        let is_own = workspace.parent() == Some(workspaces);
        let is_shown = is_own || !hidden.iter().any(|hidden| overlaps(hidden, &workspace));
        if !is_shown || workspace.parent().is_none() {
            return Err(Refusal::WorkspaceNotContainable(workspace));
        }
        if !folder.starts_with(&workspace) {
            return Err(Refusal::CwdOutside(folder));
        }
        Ok(Place { workspace, folder })
    }
}

/// Where a contained script works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The folder that it may write to.
    pub(super) workspace: PathBuf,
    /// Where it starts, inside of the workspace.
    pub(super) folder: PathBuf,
}

/// Whether one of the paths is in the other.
fn overlaps(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}
