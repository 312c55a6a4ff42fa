//! The command line of bubblewrap (bwrap(1)).

use std::{
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
};

use super::{ContainerSettings, Network, Place, helper, hidden::Hidden};
use crate::shell::limits::{SHM_BYTES_MAX, TMP_BYTES_MAX};

/// Where the helper is inside. No folder of a system is called so.
const HELPER: &str = "/.mainspring-helper";

/// The home of a contained script: its own, gone when it ends, and no place where an earlier step could leave a profile.
pub(crate) const HOME: &str = "/tmp/home";

/// Folders of the system; on most of them all but `/usr` are links into it.
const SYSTEM: [&str; 8] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"];

/// What programs read of `/etc`: names, zones, certificates, libraries. No passwords, keys, profiles or settings.
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

/// Files of `/proc` that tell of the machine and its memory, and no build asks for.
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

/// The file that says where names of hosts are asked for, shown with the host's network.
const RESOLVER: &str = "/etc/resolv.conf";

/// Everything of the host that a container shows beside the workspace.
pub(super) fn shown(settings: &ContainerSettings) -> Vec<PathBuf> {
    let system = SYSTEM.iter().chain(&ETC).chain([&RESOLVER]).map(PathBuf::from);
    system.chain(settings.readable.iter().cloned()).collect()
}

/// The arguments for a script at a place, or for a trial.
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
    // The kernel's settings are files that a process of root's may write without any capability: all of /proc is read-only.
    line.add(["--proc", "/proc"]);
    for file in COVERED.into_iter().filter(|file| Path::new(file).exists()) {
        line.add(["--ro-bind", "/dev/null", file]);
    }
    line.add(["--remount-ro", "/proc", "--dev", "/dev"]);
    if !settings.is_memory_counted {
        // A shared mapping of /dev/zero is memory that no process's account has. Zeros can be read from /dev/full as well,
        // which cannot be mapped.
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

    /// Puts an empty folder over a folder, which only what is bound into it later is in, or an empty file over a file.
    fn cover(&mut self, path: &Path, is_folder: bool) {
        match is_folder {
            true => self.add(["--size", "65536", "--perms", "0555", "--tmpfs"].map(OsStr::new)),
            false => self.add(["--ro-bind", "/dev/null"].map(OsStr::new)),
        }
        self.add([path]);
    }

    /// A folder of the system, or the link that it is.
    fn system(&mut self, path: &Path) {
        match fs::read_link(path) {
            Ok(target) => self.add(["--symlink".into(), target.into_os_string(), path.as_os_str().to_owned()]),
            Err(_) => self.bind("--ro-bind-try", path),
        }
    }
}
