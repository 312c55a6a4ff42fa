//! The command line of bubblewrap (bwrap(1)).

use std::{
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
};

use super::{ContainerSettings, Network, Place, helper, hidden::Hidden};
use crate::shell::limits::{SHM_BYTES_MAX, TMP_BYTES_MAX};

/// The path of the helper inside of the container. No system has a folder of this name.
const HELPER: &str = "/.mainspring-helper";

/// The home folder of a contained script. It is removed with the container, so an earlier step cannot leave a profile
/// in it.
pub(crate) const HOME: &str = "/tmp/home";

/// Folders of the system. On most systems all of them except `/usr` are links into it.
const SYSTEM: [&str; 8] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"];

/// Files of `/etc` that programs need: names, time zones, certificates, libraries. Passwords, keys, profiles and
/// settings are left out.
const ETC: [&str; 23] = [
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/protocols",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/mime.types",
    "/etc/magic",
    "/etc/os-release",
    "/etc/debian_version",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust/extracted",
    "/etc/ca-certificates",
];

/// Files of `/proc` that describe the machine and its memory, and that no build needs.
const COVERED: [&str; 9] = [
    "/proc/kcore",
    "/proc/kmsg",
    "/proc/kallsyms",
    "/proc/keys",
    "/proc/key-users",
    "/proc/timer_list",
    "/proc/sched_debug",
    "/proc/sysrq-trigger",
    "/proc/config.gz",
];

/// The configuration of the resolver (resolv.conf(5)), shown only with the host's network.
const RESOLVER: &str = "/etc/resolv.conf";

/// Lists all paths of the host that a container shows in addition to the workspace.
pub(super) fn shown(settings: &ContainerSettings) -> Vec<PathBuf> {
    let system = SYSTEM.iter().chain(&ETC).chain([&RESOLVER]).map(PathBuf::from);
    system.chain(settings.readable.iter().cloned()).collect()
}

/// Builds the arguments for a script in its folders, or for the trial.
pub(super) fn of(settings: &ContainerSettings, hidden: &Hidden, place: Option<&Place>) -> Vec<OsString> {
    let mut line = Line(Vec::new());
    for flag in ["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"] {
        line.add([flag]);
    }
    if settings.network == Network::None {
        line.add(["--unshare-net"]);
    }
    line.add(["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "mainspring"]);
    for folder in SYSTEM {
        line.system(Path::new(folder));
    }
    ETC.iter().for_each(|file| line.add(["--ro-bind-try", file, file]));
    if settings.network != Network::None {
        line.add(["--ro-bind-try", RESOLVER, RESOLVER]);
    }
    // The kernel's settings are files that a process of root may write without any capability, so all of /proc is
    // read-only.
    line.add(["--proc", "/proc"]);
    for file in COVERED.into_iter().filter(|file| Path::new(file).exists()) {
        line.add(["--ro-bind", "/dev/null", file]);
    }
    line.add(["--remount-ro", "/proc", "--dev", "/dev"]);
    if !settings.is_memory_counted {
        // A shared mapping of /dev/zero is memory that no process is charged for. Programs can read zeros from
        // /dev/full as well, and it cannot be mapped.
        line.add(["--dev-bind", "/dev/full", "/dev/zero"]);
    }
    line.add(["--remount-ro", "/dev"]);
    let (shm, tmp) = (SHM_BYTES_MAX.to_string(), TMP_BYTES_MAX.to_string());
    line.add(["--size", &shm, "--perms", "1777", "--tmpfs", "/dev/shm"]);
    line.add(["--size", &tmp, "--perms", "1777", "--tmpfs", "/tmp", "--dir", HOME]);
    for path in &settings.readable {
        line.bind("--ro-bind", path);
    }
    line.add(["--ro-bind".into(), settings.helper.clone().into_os_string(), HELPER.into()]);
    let covered: Vec<_> = hidden.covered().collect();
    covered.iter().for_each(|(path, is_folder)| line.cover(path, *is_folder));
    if let Some(Place { workspace, .. }) = place {
        line.bind("--bind", workspace);
    }
    for (folder, _) in covered.iter().filter(|(_, is_folder)| *is_folder) {
        line.add([OsStr::new("--remount-ro"), folder.as_os_str()]);
    }
    line.add(["--remount-ro", "/"]);
    let folder = place.map_or(PathBuf::from("/tmp"), |place| place.folder.clone());
    line.add(["--chdir".into(), folder.into_os_string()]);
    line.add(["--", HELPER, helper::HELPER_ARGUMENT, memory_flag(settings), "/tmp", "/dev"]);
    line.0.extend(place.map(|place| place.workspace.clone().into_os_string()));
    line.0
}

fn memory_flag(settings: &ContainerSettings) -> &'static str {
    if settings.is_memory_counted { helper::MEMORY_COUNTED } else { helper::MEMORY_WATCHED }
}

struct Line(Vec<OsString>);

impl Line {
    fn add<const COUNT: usize>(&mut self, words: [impl Into<OsString>; COUNT]) {
        self.0.extend(words.map(Into::into));
    }

    fn bind(&mut self, how: &str, path: &Path) {
        self.add([how.into(), path.into(), path.as_os_str().to_owned()]);
    }

    /// Covers a folder with an empty one, into which later arguments may bind the workspace, or a file with an empty
    /// file.
    fn cover(&mut self, path: &Path, is_folder: bool) {
        match is_folder {
            true => self.add(["--size", "65536", "--perms", "0555", "--tmpfs"].map(OsStr::new)),
            false => self.add(["--ro-bind", "/dev/null"].map(OsStr::new)),
        }
        self.add([path]);
    }

    /// Adds a folder of the system, or the link that is in its place.
    fn system(&mut self, path: &Path) {
        match fs::read_link(path) {
            Ok(target) => self.add(["--symlink".into(), target.into_os_string(), path.as_os_str().to_owned()]),
            Err(_) => self.bind("--ro-bind-try", path),
        }
    }
}
