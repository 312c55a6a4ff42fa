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
//! | limits, [`quota`], [`disk`] and [`cgroup`] | taking all memory, processes, files or disk |
//!
//! The parts: [`arguments`] is the command line of bubblewrap, [`hidden`] what it covers; [`helper`] runs inside, builds the inner walls and becomes
//! bash; [`order`] is how it is told what to run, after the group was written down.

mod arguments;
mod cgroup;
pub(super) mod disk;
mod filter;
mod helper;
mod hidden;
pub(super) mod launcher;
mod mounts;
pub(super) mod order;
pub(super) mod priority;
pub(super) mod quota;
mod stock;

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
use cgroup::Cgroups;
pub use disk::{make_room, remove as remove_workspace};
pub(super) use helper::walls;
pub use helper::{HELPER_ARGUMENT, serve_if_helper};
use hidden::Hidden;
use rustix::process::Pid;

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
    /// Refused where the kernel cannot keep scripts from the host's abstract sockets.
    Host,
    /// The same, with the abstract sockets of the host where the kernel cannot keep scripts from them.
    HostAndSockets,
}

impl Network {
    /// Its word in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Host => "host",
            Self::HostAndSockets => "host-and-sockets",
        }
    }

    /// Whether scripts with this network are kept from abstract sockets of the host (unix(7)), which no mount hides: by a
    /// network of their own, or by the scopes of Landlock. The error is a sentence.
    fn check(self, landlock: Landlock) -> Result<(), String> {
        match (self, landlock) {
            (Self::Host, Landlock::Partial | Landlock::Missing) => Err(
                "the Landlock of this kernel does not keep scripts with the host's network from abstract sockets of the \
                 host, as those of containerd and D-Bus (Linux 6.12 or later does): say `--scripts-network none`, or \
                 `host-and-sockets` if scripts may reach them"
                    .into(),
            ),
            _ => Ok(()),
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
    /// Whether this process works for good, and may move itself to another control group so that those of scripts can be
    /// limited.
    pub may_arrange_cgroups: bool,
    /// Whether the kernel counts the memory of scripts. [`Container::probe`] finds it out.
    pub is_memory_counted: bool,
}

/// Containers that were tried on this machine and hold.
#[derive(Debug, Clone)]
pub struct Container {
    bwrap: PathBuf,
    settings: ContainerSettings,
    hidden: Hidden,
    cgroups: Cgroups,
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
        let memory = match self.settings.is_memory_counted {
            true => "control groups",
            false => {
                "no control groups: memory and processes of scripts are watched, not enforced, and a hostile script can \
                 take the memory of this machine"
            }
        };
        write!(formatter, "bubblewrap, seccomp, {landlock}, {memory}; network: {}", self.settings.network.name())
    }
}

impl Container {
    /// Builds one container and looks whether all walls stand. The error says what is missing and what to do.
    pub fn probe(settings: ContainerSettings) -> Result<Self, String> {
        let Some(bwrap) = find_program("bwrap", &settings.search_path) else {
            return Err("bubblewrap is not installed (`apt-get install bubblewrap`)".into());
        };
        let workspaces = hidden::real(&settings.workspaces);
        let own: Vec<_> = settings.hidden.iter().chain([&workspaces]).cloned().collect();
        let paths = Hidden::of(&own, &[])?;
        for path in &settings.readable {
            let real = path.canonicalize().map_err(|error| format!("the folder {}: {error}", path.display()))?;
            if let Some(secret) = paths.paths.iter().find(|hidden| overlaps(hidden, &real)) {
                let (path, secret) = (path.display(), secret.display());
                return Err(format!(
                    "{path} cannot be shown to scripts: {secret}, which is the server's own, is in it"
                ));
            }
        }
        let hidden = Hidden::of(&own, &arguments::shown(&settings))?;
        let cgroups = Cgroups::find(settings.may_arrange_cgroups);
        let settings = ContainerSettings { workspaces, is_memory_counted: cgroups.count_memory(), ..settings };
        let walls = Walls { landlock: Landlock::Missing };
        let mut container = Self { bwrap, settings, hidden, cgroups, walls };
        container.try_out()?;
        container.settings.network.check(container.walls.landlock)?;
        Ok(container)
    }

    /// Builds a container without a script, and looks from inside whether the server's own files are seen.
    fn try_out(&mut self) -> Result<(), String> {
        let mut trial = self.command(None);
        trial.arg(helper::LOOK).args(&self.hidden.paths);
        let trial = trial.stdin(Stdio::null()).output();
        let trial = trial.map_err(|error| format!("{} cannot be started: {error}", self.bwrap.display()))?;
        let (ready, seen) = trial.stdout.split_at(trial.stdout.len().min(READY_BYTES));
        let walls = helper::walls(ready).zip(helper::seen(seen, self.hidden.paths.len()));
        let (walls, seen) = walls.ok_or_else(|| {
            let said = String::from_utf8_lossy(&trial.stderr);
            let said = said.lines().next().unwrap_or("it said nothing").chars().take(300).collect::<String>();
            format!("no container can be made on this machine: {said}")
        })?;
        self.walls = walls;
        match self.hidden.leaked(&seen) {
            Some(path) => Err(format!(
                "{}, which is the server's own, is seen from inside of a container: keep it in another folder",
                path.display()
            )),
            None => Ok(()),
        }
    }

    /// Whether the kernel counts, and limits, the memory of scripts. Elsewhere it is watched alone.
    pub fn counts_memory(&self) -> bool {
        self.settings.is_memory_counted
    }

    /// Whether a folder of the host is shown to scripts, or one in which it lies.
    pub(super) fn shows(&self, folder: &Path) -> bool {
        arguments::shown(&self.settings).iter().any(|shown| folder.starts_with(shown))
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
        command.args(arguments::of(&self.settings, &self.hidden, place)).env_clear().current_dir("/");
        command
    }

    /// The workspace of an attempt and the folder that its script starts in, both by their real paths.
    pub(super) fn place(&self, workspace: &Path, folder: &Path) -> Result<Place, Refusal> {
        let real = |path: &Path| path.canonicalize().map_err(|error| Refusal::NotContained(error.to_string()));
        let given = folder;
        let (workspace, folder) = (real(workspace)?, real(folder)?);
        let is_own = workspace.parent() == Some(&self.settings.workspaces);
        let is_shown = is_own || !self.hidden.overlaps(&workspace);
        if !is_shown || workspace.parent().is_none() {
            return Err(Refusal::WorkspaceNotContainable(workspace));
        }
        if !folder.starts_with(&workspace) {
            return Err(Refusal::CwdOutside(given.to_owned()));
        }
        Ok(Place { workspace, folder })
    }

    /// The control groups of one script, with this process and all that it starts in them. Where the trial could make
    /// some, a script without them is refused.
    pub(super) fn confine(&self, organization: Option<&str>, name: &str, member: Pid) -> Result<Cgroup, Refusal> {
        let made = self.cgroups.confine(organization, name, member);
        made.map_err(|error| Refusal::NotContained(format!("its control groups cannot be made: {error}")))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_of_the_host_needs_scopes_of_landlock() {
        for landlock in [Landlock::Full, Landlock::Partial, Landlock::Missing] {
            assert_eq!(Network::None.check(landlock), Ok(()));
            assert_eq!(Network::HostAndSockets.check(landlock), Ok(()));
            assert_eq!(Network::Host.check(landlock).is_ok(), landlock == Landlock::Full, "{landlock:?}");
        }
    }
}
