//! The mounts of this process, read from `/proc/self/mountinfo` (proc_pid_mountinfo(5)).

use std::{
    ffi::OsString,
    fs,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    /// `major:minor` of the device, the same for all mounts of one file system.
    pub(super) device: String,
    /// The folder of the file system that is mounted.
    pub(super) root: PathBuf,
    /// The path of the mount point.
    pub(super) point: PathBuf,
    /// The type of the file system, such as `ext4`.
    pub(super) kind: String,
    /// The options of the file system, separated by commas.
    pub(super) options: String,
}

/// Reads all mounts of this process, in the order in which they were made. A caller rejects its request on an error.
pub(super) fn all() -> Result<Vec<Mount>, String> {
    let text = fs::read("/proc/self/mountinfo").map_err(|error| format!("/proc/self/mountinfo: {error}"))?;
    let mounts: Option<Vec<_>> = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(parse).collect();
    mounts.ok_or_else(|| "/proc/self/mountinfo has a line that is not understood".into())
}

fn parse(line: &[u8]) -> Option<Mount> {
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let text = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
    let behind = fields.iter().skip(6).position(|field| *field == b"-")? + 7;
    Some(Mount {
        device: text(fields.get(2)?),
        root: unescaped(fields.get(3)?),
        point: unescaped(fields.get(4)?),
        kind: text(fields.get(behind)?),
        options: text(fields.get(behind + 2)?),
    })
}

/// Decodes a field in which spaces, tabs, line feeds and backslashes are a backslash and three octal digits.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, behind)) = rest.split_first() {
        let octal = behind.get(..3).and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match octal.filter(|_| *first == b'\\') {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[3..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

/// Returns every path under which a file is visible, since bind mounts give one file several. `real` must be a real
/// path.
pub(super) fn paths_of(real: &Path, mounts: &[Mount]) -> Vec<PathBuf> {
    let mut paths = vec![real.to_owned()];
    // The last of several mounts at one point covers the others.
    let holder = mounts
        .iter()
        .filter(|mount| real.starts_with(&mount.point))
        .reduce(|best, next| if next.point.as_os_str().len() >= best.point.as_os_str().len() { next } else { best });
    let Some(holder) = holder else { return paths };
    let Ok(within) = real.strip_prefix(&holder.point) else { return paths };
    let within = holder.root.join(within);
    for mount in mounts.iter().filter(|mount| mount.device == holder.device) {
        if let Ok(rest) = within.strip_prefix(&mount.root) {
            paths.push(mount.point.join(rest));
        } else if mount.root.starts_with(&within) {
            paths.push(mount.point.clone());
        }
    }
    // `join` of an empty path leaves a slash at the end, which a comparison by components ignores.
    paths.sort();
    paths.dedup();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(device: &str, root: &str, point: &str) -> Mount {
        let text =
            format!("36 35 {device} {root} {point} rw,noatime shared:1 master:2 - ext4 /dev/root rw,errors=continue");
        parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn mount_lines_are_unescaped() {
        let read = mount("8:1", r"/a\040b", r"/mnt/x\134y");
        assert_eq!((read.root.as_path(), read.point.as_path()), (Path::new("/a b"), Path::new(r"/mnt/x\y")));
        assert_eq!((read.kind.as_str(), read.options.as_str()), ("ext4", "rw,errors=continue"));
        assert!(parse(b"36 35 8:1 / /").is_none());
        assert!(all().unwrap().iter().any(|mount| mount.point == Path::new("/proc")));
    }

    #[test]
    fn a_file_has_a_path_for_each_bind_mount() {
        let mounts = [
            mount("8:1", "/", "/"),
            mount("8:2", "/", "/srv"),
            mount("8:2", "/data", "/usr/local/data"),
            mount("8:2", "/data/workspaces", "/usr/share/w"),
            mount("8:3", "/data", "/opt/else"),
        ];
        let paths = |path: &str| paths_of(Path::new(path), &mounts);
        let expected = ["/srv/data/", "/usr/local/data", "/usr/share/w"].map(PathBuf::from);
        assert_eq!(paths("/srv/data"), expected);
        assert_eq!(paths("/srv/data/key"), ["/srv/data/key", "/usr/local/data/key"].map(PathBuf::from));
        assert_eq!(paths("/etc/ours/key"), [PathBuf::from("/etc/ours/key")]);
    }
}
