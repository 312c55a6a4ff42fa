//! Containers for scripts: bubblewrap around them, Landlock and a filter of system calls (seccomp) inside.
//!
//! | layer | protects |
//! |---|---|
//! | mount namespace | every file except the workspace, the system's programs and the folders that the configuration allows |
//! | process, IPC and host name namespaces | other processes: their memory, and delivery of signals to them |
//! | network namespace | the network, unless the configuration grants the host's |
//! | user namespace without capabilities, `no_new_privs` | root's privileges, set-uid programs |
//! | Landlock | files outside of the workspace, `/tmp` and harmless devices against writes; sockets outside of the container |
//! | filter of system calls | mounts, namespaces, tracing, keys, BPF, io_uring, kernel modules, rare socket families |
//! | resource limits, [`quota`], [`disk`] and [`cgroup`] | the machine's memory, processes, files and disk against exhaustion |
//!
//! The parts: [`arguments`] builds the command line of bubblewrap, and [`hidden`] lists the paths that it covers.
//! [`helper`] runs inside of the container, applies the inner layers and becomes bash. [`order`] is the message that
//! tells it which script to run, sent after the process group was recorded.

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
mod usage;

use std::{
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

use super::{error::ShellError, limits::READY_BYTES, script::find_program};

pub(super) use arguments::HOME;
pub(super) use cgroup::Cgroup;
use cgroup::Cgroups;
pub use disk::{make_room, remove as remove_workspace};
pub(super) use helper::protections;
pub use helper::{HELPER_ARGUMENT, serve_if_helper};
use hidden::Hidden;
use rustix::process::Pid;

/// The containment of a node's scripts.
#[derive(Debug, Clone, Default)]
pub enum Scripts {
    /// As the user of this process, with all of that user's permissions.
    #[default]
    Uncontained,
    /// In containers.
    Contained(Arc<Container>),
    /// Not at all, with the reason as a sentence.
    Off(String),
}

/// The network of contained scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Network {
    /// Only a loopback interface of the container's own.
    #[default]
    None,
    /// The host's network: the internet, and also the host's loopback services, its private network and the metadata
    /// address of its cloud. Rejected where the kernel cannot block the host's abstract sockets.
    Host,
    /// The host's network, including the host's abstract sockets where the kernel cannot block them.
    HostAndSockets,
}

impl Network {
    /// Returns the value of this network in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Host => "host",
            Self::HostAndSockets => "host-and-sockets",
        }
    }

    /// Checks that scripts with this network cannot reach abstract sockets of the host (unix(7)). No mount hides those:
    /// it takes a separate network namespace or Landlock's scopes. The error is a sentence.
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

/// The settings from which containers are built.
#[derive(Debug, Clone)]
pub struct ContainerSettings {
    /// The folders to search for bubblewrap, as in `PATH`.
    pub search_path: OsString,
    /// The executable that becomes the [`helper`] inside when it is called with [`HELPER_ARGUMENT`].
    pub helper: PathBuf,
    /// Files and folders that scripts may read and execute, in addition to those of the system.
    pub readable: Vec<PathBuf>,
    /// Files and folders that no container shows: state, keys, configuration.
    pub hidden: Vec<PathBuf>,
    /// The folder of all workspaces. It may be in a hidden folder, since a container mounts only the workspace of its
    /// script.
    pub workspaces: PathBuf,
    /// The network of scripts.
    pub network: Network,
    /// True for a server, which may move its process to another control group so that the groups of scripts
    /// can be limited.
    pub may_arrange_cgroups: bool,
    /// True if the kernel accounts for the memory of scripts. [`Container::probe`] sets it.
    pub is_memory_counted: bool,
}

/// Containers that were tried on this machine and hold.
#[derive(Debug, Clone)]
pub struct Container {
    bwrap: PathBuf,
    settings: ContainerSettings,
    hidden: Hidden,
    cgroups: Cgroups,
    protections: Protections,
}

/// The inner protections that the helper reports as applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protections {
    /// The degree to which Landlock is enforced.
    pub landlock: Landlock,
}

/// The degree to which the kernel enforces the requested Landlock rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words say it")]
pub enum Landlock {
    Full,
    Partial,
    Missing,
}

impl fmt::Display for Container {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let landlock = match self.protections.landlock {
            Landlock::Full => "Landlock",
            Landlock::Partial => "Landlock in part",
            Landlock::Missing => "no Landlock in this kernel",
        };
        let memory = match self.settings.is_memory_counted {
            true => "control groups",
            false => {
                "no control groups: memory and processes of scripts are monitored but not limited, and a hostile script \
                 can exhaust the memory of this machine"
            }
        };
        write!(formatter, "bubblewrap, seccomp, {landlock}, {memory}; network: {}", self.settings.network.name())
    }
}

impl Container {
    /// Builds one container and checks that every layer is in force. The error says what is missing and what to do.
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
        let protections = Protections { landlock: Landlock::Missing };
        let mut container = Self { bwrap, settings, hidden, cgroups, protections };
        container.try_out()?;
        container.settings.network.check(container.protections.landlock)?;
        Ok(container)
    }

    /// Builds a container without a script, and checks from inside that the server's own files are not visible.
    fn try_out(&mut self) -> Result<(), String> {
        let mut trial = self.command(None);
        trial.arg(helper::LOOK).args(&self.hidden.paths);
        let trial = trial.stdin(Stdio::null()).output();
        let trial = trial.map_err(|error| format!("{} cannot be started: {error}", self.bwrap.display()))?;
        let (ready, seen) = trial.stdout.split_at(trial.stdout.len().min(READY_BYTES));
        let protections = helper::protections(ready).zip(helper::seen(seen, self.hidden.paths.len()));
        let (protections, seen) = protections.ok_or_else(|| {
            let said = String::from_utf8_lossy(&trial.stderr);
            let said = said.lines().next().unwrap_or("it said nothing").chars().take(300).collect::<String>();
            format!("no container can be made on this machine: {said}")
        })?;
        self.protections = protections;
        match self.hidden.leaked(&seen) {
            Some(path) => Err(format!(
                "{}, which is the server's own, is seen from inside of a container: keep it in another folder",
                path.display()
            )),
            None => Ok(()),
        }
    }

    /// Returns whether the kernel accounts for, and limits, the memory of scripts. Elsewhere [`quota`] only polls it.
    pub fn counts_memory(&self) -> bool {
        self.settings.is_memory_counted
    }

    /// Returns whether scripts see this folder of the host, directly or through a parent folder.
    pub(super) fn shows(&self, folder: &Path) -> bool {
        arguments::shown(&self.settings).iter().any(|shown| folder.starts_with(shown))
    }

    /// The inner protections in force.
    pub fn protections(&self) -> Protections {
        self.protections
    }

    /// The network of scripts.
    pub fn network(&self) -> Network {
        self.settings.network
    }

    /// Builds the command that makes a container. Its environment is empty: the variables of a step are set inside, so
    /// that a variable such as `LD_PRELOAD` does not reach a program that sets up the container.
    pub(super) fn command(&self, place: Option<&Place>) -> Command {
        let mut command = Command::new(&self.bwrap);
        command.args(arguments::of(&self.settings, &self.hidden, place)).env_clear().current_dir("/");
        command
    }

    /// Resolves the workspace of an attempt and the working directory of its script to their real paths, and checks
    /// both.
    pub(super) fn place(&self, workspace: &Path, folder: &Path) -> Result<Place, ShellError> {
        let real = |path: &Path| path.canonicalize().map_err(|error| ShellError::NotContained(error.to_string()));
        let given = folder;
        let (workspace, folder) = (real(workspace)?, real(folder)?);
        let is_own = workspace.parent() == Some(&self.settings.workspaces);
        let is_shown = is_own || !self.hidden.overlaps(&workspace);
        if !is_shown || workspace.parent().is_none() {
            return Err(ShellError::WorkspaceNotContainable(workspace));
        }
        if !folder.starts_with(&workspace) {
            return Err(ShellError::CwdOutside(given.to_owned()));
        }
        Ok(Place { workspace, folder })
    }

    /// Makes the control groups of one script and moves a process into them; its children follow. A script without
    /// control groups is rejected if the trial could make some.
    pub(super) fn confine(&self, organization: Option<&str>, name: &str, member: Pid) -> Result<Cgroup, ShellError> {
        let made = self.cgroups.confine(organization, name, member);
        made.map_err(|error| ShellError::NotContained(format!("its control groups cannot be made: {error}")))
    }
}

/// The folders of a contained script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The only folder of the host that the script may write to.
    pub(super) workspace: PathBuf,
    /// The working directory, inside of the workspace.
    pub(super) folder: PathBuf,
}

/// Returns whether one of the paths contains the other.
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
