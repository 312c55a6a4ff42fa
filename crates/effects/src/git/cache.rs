//! Packs on the disk, by organization, repository and commit.
//!
//! A pack is kept as it was received. Nothing on this side reads or executes it, and each checkout checks it anew, so that
//! one execution cannot change the files of another through the cache.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use mainspring_kernel::hash::Hash;
use rustix::fs::statvfs;
use tokio::{sync::mpsc, task::spawn_blocking};

use super::{
    error::GitError,
    limits::{DISK_CHECK_BYTES, DISK_FREE_BYTES_MIN, PARTIAL_MAX, UNUSED_MAX},
    remote::Pack,
};

/// Names of complete packs, and of downloads.
const PACK: &str = "pack";
const PARTIAL: &str = "partial";

/// Digits of the part of a name that stands for the organization.
const ORGANIZATION_DIGITS: usize = 16;

/// Parts of a pack between two threads.
const PARTS_QUEUED: usize = 8;
const PART_BYTES: usize = 64 * 1024;

/// The packs of a node.
#[derive(Debug)]
pub(super) struct Cache {
    folder: PathBuf,
    /// Bytes of all packs after the last one was added.
    bytes_max: u64,
    downloads: AtomicU64,
}

impl Cache {
    pub(super) fn new(folder: PathBuf, bytes_max: u64) -> Self {
        Self { folder, bytes_max, downloads: AtomicU64::new(0) }
    }

    /// The name of a pack. Organizations never share one, since a credential has shown it to one of them.
    pub(super) fn name(organization: Option<&str>, url: &str, commit: &str) -> String {
        let of = Hash::of(format!("{organization:?}").as_bytes()).hex();
        format!("{}-{}.{PACK}", &of[..ORGANIZATION_DIGITS], Hash::of(format!("{url}\0{commit}").as_bytes()).hex())
    }

    /// Opens a pack, and marks it as used now.
    pub(super) fn open(&self, name: &str) -> Option<File> {
        let file = OpenOptions::new().read(true).write(true).open(self.folder.join(name)).ok()?;
        let _ = file.set_modified(SystemTime::now());
        Some(file)
    }

    /// Receives a pack of at most `bytes_max` bytes, and keeps it.
    pub(super) async fn receive(&self, name: &str, mut pack: Pack, bytes_max: u64) -> Result<File, GitError> {
        let number = self.downloads.fetch_add(1, Ordering::Relaxed);
        let partial = Partial(self.folder.join(format!("{}-{number}.{PARTIAL}", std::process::id())));
        let (parts, mut received) = mpsc::channel::<Bytes>(PARTS_QUEUED);
        let (folder, path) = (self.folder.clone(), partial.0.clone());
        let writing = spawn_blocking(move || {
            let mut file = create(&folder, &path)?;
            let (mut bytes, mut checked) = (0, 0);
            while let Some(part) = received.blocking_recv() {
                if bytes >= checked {
                    check_free(&folder)?;
                    checked = bytes + DISK_CHECK_BYTES;
                }
                file.write_all(&part)?;
                bytes += part.len() as u64;
            }
            file.flush()
        });
        let sending = async move {
            let mut bytes = 0;
            while let Some(part) = pack.next().await? {
                bytes += part.len() as u64;
                if bytes > bytes_max {
                    let mib = bytes_max >> 20;
                    let why = format!(
                        "the files of the commit take more than {mib} MiB: raise `repositories.maxBytes` in the settings file"
                    );
                    return Err(GitError::Refused(why));
                }
                if parts.send(part).await.is_err() {
                    break;
                }
            }
            Ok(())
        };
        let (sent, written) = tokio::join!(sending, writing);
        let unwritten = |error: io::Error| GitError::Unavailable(format!("the repository cannot be stored: {error}"));
        let done = sent.and_then(|()| {
            written.map_err(io::Error::other).and_then(|written| written).map_err(unwritten)?;
            fs::rename(&partial.0, self.folder.join(name)).map_err(unwritten)?;
            File::open(self.folder.join(name)).map_err(unwritten)
        });
        drop(partial);
        self.tidy(SystemTime::now());
        done
    }

    /// Removes old packs and remains of downloads, then packs of the organization with the most bytes, the least recently
    /// used first, until the rest fits.
    pub(super) fn tidy(&self, now: SystemTime) {
        let mut packs = Vec::new();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let extension = path.extension().and_then(|extension| extension.to_str());
            let age_max = match extension {
                Some(PACK) => UNUSED_MAX,
                Some(PARTIAL) => PARTIAL_MAX,
                _ => continue,
            };
            let Ok(metadata) = entry.metadata() else { continue };
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            if now.duration_since(used).unwrap_or(Duration::ZERO) > age_max {
                let _ = fs::remove_file(&path);
            } else if extension == Some(PACK) {
                let name = entry.file_name().to_string_lossy().into_owned();
                packs.push(Stored { name, bytes: metadata.len(), used });
            }
        }
        for name in surplus(packs, self.bytes_max) {
            let _ = fs::remove_file(self.folder.join(name));
        }
    }
}

/// The file of a download. It is removed unless the download is complete, also if an attempt stops waiting.
struct Partial(PathBuf);

impl Drop for Partial {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A pack in the folder.
#[derive(Debug, Clone)]
struct Stored {
    name: String,
    bytes: u64,
    used: SystemTime,
}

/// The names of the packs to remove so that the rest has at most `bytes_max` bytes.
fn surplus(mut packs: Vec<Stored>, bytes_max: u64) -> Vec<String> {
    fn organization(pack: &Stored) -> &str {
        pack.name.split('-').next().unwrap_or_default()
    }
    packs.sort_by_key(|pack| pack.used);
    let mut removed = Vec::new();
    while packs.iter().map(|pack| pack.bytes).sum::<u64>() > bytes_max {
        let bytes_of =
            |of: &str| packs.iter().filter(|pack| organization(pack) == of).map(|pack| pack.bytes).sum::<u64>();
        let Some(largest) = packs.iter().map(organization).max_by_key(|of| bytes_of(of)).map(ToString::to_string)
        else {
            break;
        };
        let Some(oldest) = packs.iter().position(|pack| organization(pack) == largest) else { break };
        removed.push(packs.remove(oldest).name);
    }
    removed
}

fn create(folder: &Path, path: &Path) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

fn check_free(folder: &Path) -> io::Result<()> {
    let disk = statvfs(folder)?;
    if disk.f_bavail.saturating_mul(disk.f_frsize) < DISK_FREE_BYTES_MIN {
        return Err(io::ErrorKind::StorageFull.into());
    }
    Ok(())
}

/// Reads a file on another thread. The parts end with the file or with an error.
pub(super) fn parts_of(mut file: File) -> mpsc::Receiver<io::Result<Bytes>> {
    let (parts, received) = mpsc::channel(PARTS_QUEUED);
    spawn_blocking(move || {
        let mut buffer = vec![0; PART_BYTES];
        loop {
            let part = match file.read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => Ok(Bytes::copy_from_slice(&buffer[..count])),
                Err(error) => Err(error),
            };
            let is_over = part.is_err();
            if parts.blocking_send(part).is_err() || is_over {
                return;
            }
        }
    });
    received
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pack(name: &str, bytes: u64, used: u64) -> Stored {
        Stored { name: name.into(), bytes, used: SystemTime::UNIX_EPOCH + Duration::from_secs(used) }
    }

    #[test]
    fn the_largest_organization_loses_its_oldest_packs() {
        let packs = [pack("a-1", 10, 1), pack("b-1", 30, 3), pack("b-2", 30, 2), pack("a-2", 10, 9)];
        for (bytes_max, expected) in [
            (80, &[][..]),
            (79, &["b-2"]),
            (50, &["b-2"]),
            (49, &["b-2", "b-1"]),
            (19, &["b-2", "b-1", "a-1"]),
            (0, &["b-2", "b-1", "a-1", "a-2"]),
        ] {
            assert_eq!(surplus(packs.to_vec(), bytes_max), expected, "{bytes_max}");
        }
    }

    #[test]
    fn organizations_have_packs_of_their_own() {
        let name = |organization, url| Cache::name(organization, url, "c");
        let names = [name(Some("a"), "u"), name(Some("b"), "u"), name(None, "u"), name(Some("a"), "v")];
        for (place, one) in names.iter().enumerate() {
            assert_eq!(names.iter().position(|other| other == one), Some(place));
        }
    }

    #[test]
    fn old_packs_and_remains_of_downloads_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().into(), 1_000);
        let (now, day) = (SystemTime::now(), Duration::from_secs(24 * 3600));
        for (name, age) in [("a-1.pack", day), ("a-2.pack", 8 * day), ("1-0.partial", day), ("2-0.partial", day / 48)] {
            File::create(folder.path().join(name)).unwrap().set_modified(now - age).unwrap();
        }
        assert!(cache.open("a-2.pack").is_some(), "it is used, and stays");
        cache.tidy(now);
        let kept = ["a-1.pack", "a-2.pack", "1-0.partial", "2-0.partial"].map(|name| folder.path().join(name).exists());
        assert_eq!(kept, [true, true, false, true]);
    }
}
