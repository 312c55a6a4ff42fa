//! The mode of `bash` steps on a server: in containers, as the server's user, or off.

use std::{
    ffi::OsString,
    fs,
    io::Write,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use mainspring_effects::shell::contain::{Container, ContainerSettings, Network, Scripts, make_room};
use mainspring_store::postgres::PostgresStore;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use crate::{
    context::Global,
    error::CliError,
    paths::{self, FIRST_TOKEN, REPOSITORY_CACHE},
};

/// The name of the mode setting. The values follow.
pub(crate) const SCRIPTS: &str = "scripts";
const MODES: [&str; 3] = ["contained", "uncontained", "off"];

/// Files and folders that engine and server create in the data folder.
const OURS: [&str; 19] = [
    "journal.db",
    "journal.db-wal",
    "journal.db-shm",
    "journal.db-journal",
    "generation",
    "audit-heads",
    "sealed-stores",
    "lock",
    "wakeup.sock",
    // The name of the socket in earlier releases.
    "bell",
    "boot",
    "key-check",
    "key",
    FIRST_TOKEN,
    "processes",
    "workspaces",
    REPOSITORY_CACHE,
    "node",
    // A folder in the root of each ext4 volume.
    "lost+found",
];

/// Prefixes of temporary files that a killed process may leave in the data folder.
const OURS_BEGIN: [&str; 4] = [".mainspring-backup-", ".doctor-", ".key-", ".heads-"];

/// The flags of what runs steps for others.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Scripts (`bash` steps)")]
pub(crate) struct ScriptFlags {
    /// The mode of scripts: contained, uncontained (as this user, with all rights) or off [default: contained, env:
    /// MAINSPRING_SCRIPTS]
    #[arg(long, value_name = "MODE")]
    scripts: Option<String>,
    /// The network of contained scripts: none; host, which reaches loopback services and metadata addresses too; or
    /// host-and-sockets, for kernels that cannot isolate abstract sockets [default: none, env:
    /// MAINSPRING_SCRIPTS_NETWORK]
    #[arg(long, value_name = "NETWORK")]
    scripts_network: Option<String>,
    /// Files and folders that contained scripts may read in addition to the system's: /opt/node:/opt/cargo [env:
    /// MAINSPRING_SCRIPTS_READ]
    #[arg(long, value_name = "PATHS")]
    scripts_read: Option<String>,
}

impl ScriptFlags {
    /// The flags, in the order of the settings.
    pub(crate) fn given(&self) -> [Option<String>; 3] {
        [self.scripts.clone(), self.scripts_network.clone(), self.scripts_read.clone()]
    }

    /// The settings from flags and environment, for a command that has no other settings.
    pub(crate) fn rules(&self) -> Result<ScriptSettings, CliError> {
        let variables = ["MAINSPRING_SCRIPTS", "MAINSPRING_SCRIPTS_NETWORK", "MAINSPRING_SCRIPTS_READ"];
        let environment = variables.map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
        let [mode, network, read] = self.given();
        let [mode_said, network_said, read_said] = environment;
        ScriptSettings::of(mode.or(mode_said), network.or(network_said), read.or(read_said))
    }
}

/// The script settings of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScriptSettings {
    mode: String,
    network: Network,
    readable: Vec<PathBuf>,
    /// Further files and folders of the server that are hidden from scripts.
    own: Vec<PathBuf>,
}

impl ScriptSettings {
    /// Parses the texts of the three settings.
    pub(crate) fn of(mode: Option<String>, network: Option<String>, read: Option<String>) -> Result<Self, CliError> {
        let bad = |name: &str, why: String| CliError::bad_input("bad_setting", format!("{name}: {why}"));
        let mode = mode.unwrap_or_else(|| MODES[0].into());
        if !MODES.contains(&mode.as_str()) {
            return Err(bad(SCRIPTS, format!("`{mode}` is not one of {}", MODES.join(", "))));
        }
        let network = match network.as_deref() {
            None | Some("none") => Network::None,
            Some("host") => Network::Host,
            Some("host-and-sockets") => Network::HostAndSockets,
            Some(other) => {
                let why = format!("`{other}` is not one of none, host and host-and-sockets");
                return Err(bad("scriptsNetwork", why));
            }
        };
        let readable: Vec<PathBuf> =
            std::env::split_paths(&read.unwrap_or_default()).filter(|path| !path.as_os_str().is_empty()).collect();
        match readable.iter().find(|path| !path.is_absolute()) {
            Some(path) => Err(bad("scriptsRead", format!("`{}` is not an absolute path", path.display()))),
            None => Ok(Self { mode, network, readable, own: Vec::new() }),
        }
    }

    /// Adds files and folders that are hidden from scripts.
    pub(crate) fn hiding(mut self, own: impl IntoIterator<Item = PathBuf>) -> Self {
        self.own.extend(own);
        self
    }

    /// True if the configuration turns scripts off.
    pub(crate) fn is_off(&self) -> bool {
        self.mode == "off"
    }

    /// True if scripts have all rights of the server's user.
    pub(crate) fn is_uncontained(&self) -> bool {
        self.mode == "uncontained"
    }

    /// The mode in a sandbox, with the folder of its process.
    pub(crate) fn in_sandbox(&self, folder: &Path) -> Result<Scripts, CliError> {
        match self.mode.as_str() {
            "uncontained" => Ok(Scripts::Uncontained),
            "off" => Ok(Scripts::Off("the command of the sandbox profile says `--scripts off`".into())),
            _ => Ok(self.probed(folder, [folder.to_owned()].into_iter().chain(self.own.iter().cloned()), false)?),
        }
    }

    /// The mode that this machine supports. A container is tried before anything relies on containers. `works` is
    /// true if this process runs scripts; it may then create the folder and the control groups for them.
    pub(crate) fn in_force(&self, global: &Global, works: bool) -> Result<Scripts, CliError> {
        match self.mode.as_str() {
            "uncontained" => return Ok(Scripts::Uncontained),
            "off" => return Ok(Scripts::Off("the configuration has `scripts: off`".into())),
            _ => {}
        }
        let folder = global.home()?.folder().to_owned();
        let hidden = [Some(folder.clone()), Some(paths::key_file(&[&folder])), paths::config_home().map(ours)];
        let hidden = hidden.into_iter().flatten().chain(paths::state_home().ok().map(ours));
        let sockets = global.store.iter().flat_map(|store| PostgresStore::sockets(store));
        let hidden = hidden.chain(sockets).chain(self.own.iter().cloned());
        if works {
            // The trial container checks that the folder is hidden, so the folder must exist.
            make_folder(&folder)?;
            // Frees disk space before the store is opened, which needs some.
            for workspace in make_room(&folder.join("workspaces")) {
                let shown = workspace.display();
                let said = format!("The disk is full: the workspace {shown} lost files, so that the server can start.");
                let _ = writeln!(std::io::stderr(), "{said}");
            }
        }
        self.probed(&folder, hidden, works)
    }

    /// Tries a container.
    fn probed(
        &self,
        folder: &Path,
        hidden: impl Iterator<Item = PathBuf>,
        may_arrange_cgroups: bool,
    ) -> Result<Scripts, CliError> {
        let helper = std::env::current_exe();
        let helper = helper.map_err(|error| CliError::internal("no_executable", error.to_string()))?;
        let settings = ContainerSettings {
            search_path: std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into()),
            helper,
            readable: self.readable.clone(),
            hidden: hidden.collect(),
            workspaces: folder.join("workspaces"),
            network: self.network,
            may_arrange_cgroups,
            is_memory_counted: false,
        };
        Ok(match Container::probe(settings) {
            Ok(container) => Scripts::Contained(Arc::new(container)),
            Err(why) => Scripts::Off(format!(
                "{why}. Fix that, or set `--scripts uncontained` if members who run scripts may have all rights of this user"
            )),
        })
    }
}

fn make_folder(folder: &Path) -> Result<(), CliError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| {
        let message = format!("the folder {} cannot be created: {error}; use another with --dir", folder.display());
        CliError::bad_input("no_folder", message)
    })
}

fn ours(folder: PathBuf) -> PathBuf {
    folder.join("mainspring")
}

/// The name of the mode, and an explanation.
pub(crate) fn words(scripts: &Scripts) -> (&'static str, String) {
    match scripts {
        Scripts::Contained(container) => ("contained", container.to_string()),
        Scripts::Uncontained => {
            ("uncontained", "scripts have all rights of this user, and can read the installation's key".into())
        }
        Scripts::Off(why) => ("off", why.clone()),
    }
}

/// Protects the memory, environment and descriptors of this process from other processes of the same user.
pub(crate) fn close_this_process() -> Result<(), CliError> {
    let failed = |why: String| CliError::internal("not_closed", why);
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(|error| failed(error.to_string()))?;
    // Descriptors inherited from the parent process must not reach scripts and sandbox workers.
    close_fds::set_fds_cloexec(3, &[]);
    Ok(())
}

/// Makes the data folder of a server accessible to its owner only, and returns a message if its mode changed. A folder that
/// contains files of others is not changed, but an error.
pub(crate) fn close_folder(folder: &Path) -> Result<Option<String>, CliError> {
    let Ok(metadata) = fs::metadata(folder) else { return Ok(None) };
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(None);
    }
    let shown = folder.display();
    let open = format!("the folder {shown} is open to other users (mode {mode:o})");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_ours = |name: &OsString| {
        let begins = |text: &str| OURS_BEGIN.iter().any(|ours| text.starts_with(ours));
        OURS.iter().any(|ours| name == ours) || name.to_str().is_some_and(begins)
    };
    let foreign = entries.map(|entry| entry.file_name()).find(|name| !is_ours(name));
    if let Some(foreign) = foreign {
        let foreign = foreign.to_string_lossy().into_owned();
        let message = format!("{open}, and `{foreign}` in it is not ours: `chmod 700 {shown}`, or name another folder");
        return Err(CliError::bad_input("folder_open", message));
    }
    let closed = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    closed.map_err(|error| CliError::bad_input("folder_open", format!("{open}, and cannot be closed: {error}")))?;
    Ok(Some(format!("{open}: it was closed to them (mode 700).")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_or_refused_by_name() {
        let of = |mode: &str, network: &str, read: &str| {
            let texts = [mode, network, read].map(|text| Some(text.to_owned()).filter(|text| !text.is_empty()));
            let [mode, network, read] = texts;
            ScriptSettings::of(mode, network, read).map_err(|error| error.failure.message)
        };
        assert_eq!(of("", "", "").unwrap(), of("contained", "none", "").unwrap());
        assert_eq!(of("off", "host", "/a:/b").unwrap().readable, [Path::new("/a"), Path::new("/b")]);
        for (mode, network, read, word) in
            [("on", "", "", "scripts:"), ("", "all", "", "scriptsNetwork"), ("", "", "/a:b", "scriptsRead")]
        {
            assert!(of(mode, network, read).is_err_and(|said| said.contains(word)), "{word}");
        }
    }

    #[test]
    fn an_open_folder_is_closed_unless_it_holds_something_else() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("state");
        assert_eq!(close_folder(&folder).unwrap(), None);
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        for name in OURS.into_iter().chain([".key-1f", ".mainspring-backup-2e.partial"]) {
            fs::write(folder.join(name), "").unwrap();
        }
        assert!(close_folder(&folder).unwrap().is_some_and(|said| said.contains("755")));
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        assert_eq!(close_folder(&folder).unwrap(), None);
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o750)).unwrap();
        fs::write(folder.join("thesis.tex"), "").unwrap();
        assert!(close_folder(&folder).is_err_and(|error| error.failure.message.contains("thesis.tex")));
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o750);
    }
}
