//! Checks the disk of the data folder: filesystem, free space, duration of a sync.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    time::Instant,
};

use rustix::fs::{CWD, Mode, OFlags, StatFs, openat, statfs};

use super::check::{Check, Report};

/// Below the first, writes will soon fail; below the second, they fail.
const FREE_BYTES_LOW: u64 = 1024 * 1024 * 1024;
const FREE_BYTES_NONE: u64 = 32 * 1024 * 1024;

/// Free inodes. A workspace with sources has some thousands of files.
const FREE_FILES_LOW: u64 = 10_000;

/// Measured syncs, and the bytes of each, as in a small commit.
const SYNCS: usize = 21;
const SYNC_BYTES: usize = 4096;

/// No medium writes in so few microseconds, so a faster sync did not reach the medium.
const SYNC_TOO_QUICK_US: u64 = 20;

/// Every step waits for some syncs. At this value in microseconds a step without work takes a tenth of a second.
const SYNC_SLOW_US: u64 = 20_000;

/// Kinds of filesystems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A local disk.
    Local,
    /// A network filesystem. Its locks and shared memory are not reliable enough for SQLite.
    Network,
    /// A filesystem in memory.
    Memory,
    /// A container layer, which is deleted with its container.
    Layer,
}

/// Filesystems by their magic numbers on Linux (statfs(2)).
const FILESYSTEMS: [(u64, &str, Kind); 19] = [
    (0x6969, "nfs", Kind::Network),
    (0x517b, "smb", Kind::Network),
    (0xff53_4d42, "cifs", Kind::Network),
    (0xfe53_4d42, "smb2", Kind::Network),
    (0x0102_1997, "9p", Kind::Network),
    (0x00c3_6400, "ceph", Kind::Network),
    (0x5346_414f, "afs", Kind::Network),
    (0x0bd0_0bd0, "lustre", Kind::Network),
    (0x6573_5546, "fuse", Kind::Network),
    (0x786f_4256, "vboxsf", Kind::Network),
    (0x7461_636f, "ocfs2", Kind::Network),
    (0x0102_1994, "tmpfs", Kind::Memory),
    (0x8584_58f6, "ramfs", Kind::Memory),
    (0x794c_7630, "overlay", Kind::Layer),
    (0xef53, "ext4", Kind::Local),
    (0x5846_5342, "xfs", Kind::Local),
    (0x9123_683e, "btrfs", Kind::Local),
    (0x2fc1_2fc1, "zfs", Kind::Local),
    (0xf2f5_2010, "f2fs", Kind::Local),
];

/// Checks the disk of the folder, or of its nearest existing parent.
pub(super) fn check(folder: &Path, is_there: bool, report: &mut Report) {
    let existing = folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    match statfs(existing) {
        Ok(found) => {
            report.add(filesystem(number(&found)));
            let is_counted = found.f_files > 0;
            let free_files = if is_counted { found.f_ffree } else { u64::MAX };
            report.add(space(found.f_bavail.saturating_mul(found.f_bsize.unsigned_abs()), free_files));
        }
        Err(error) => {
            let why = format!("{}: {error}", existing.display());
            report.extend(["filesystem", "space"].map(|name| Check::skipped(name, why.clone())));
        }
    }
    report.add(match is_there.then(|| measure(folder)) {
        None => Check::skipped("sync", "there is no folder to measure yet"),
        Some(Ok(median_us)) => sync(median_us),
        Some(Err(error)) => Check::skipped("sync", format!("nothing can be written to the folder: {error}")),
    });
}

/// The magic number has 32 bits, and is signed on some machines.
fn number(found: &StatFs) -> u64 {
    u64::try_from(i128::from(found.f_type) & 0xffff_ffff).unwrap_or_default()
}

fn filesystem(number: u64) -> Check {
    let known = FILESYSTEMS.iter().find(|(known, ..)| *known == number);
    let Some((_, name, kind)) = known else {
        let message = format!("the folder is on a filesystem of the kind {number:#x}, of which nothing is known here");
        return Check::ok("filesystem", message);
    };
    let check = match kind {
        Kind::Local => Check::ok("filesystem", format!("the folder is on {name}")),
        Kind::Network => {
            let message = format!("the folder is on {name}, where locks and syncs are not always what SQLite needs");
            Check::warning(
                "filesystem",
                message,
                "move it to a disk of this machine, or keep executions in PostgreSQL with --store",
            )
        }
        Kind::Memory => {
            let message = format!("the folder is on {name}, which is memory: a restart of the machine deletes it");
            Check::warning("filesystem", message, "move it to a disk")
        }
        Kind::Layer => {
            let message = format!("the folder is on {name}, which is deleted with its container");
            Check::warning("filesystem", message, "mount a volume there, or move it to a disk")
        }
    };
    check.with("kind", *name)
}

fn space(free_bytes: u64, free_files: u64) -> Check {
    let mib = free_bytes / (1024 * 1024);
    let message = format!("{}.{} GiB are free", mib / 1024, mib % 1024 * 10 / 1024);
    let help = "free space, or move the folder to a larger disk";
    let check = match () {
        () if free_bytes < FREE_BYTES_NONE => Check::broken("space", format!("only {mib} MiB are free"), help),
        () if free_files == 0 => {
            Check::broken("space", format!("{message}, but for no file more"), "remove files (`df -i`)")
        }
        () if free_bytes < FREE_BYTES_LOW => Check::warning("space", format!("only {mib} MiB are free"), help),
        () if free_files < FREE_FILES_LOW => {
            Check::warning("space", format!("{message}, but for {free_files} files only"), "remove files (`df -i`)")
        }
        () => Check::ok("space", message),
    };
    check.with("freeBytes", free_bytes)
}

/// The median duration of a sync in microseconds.
fn measure(folder: &Path) -> io::Result<u64> {
    let mut file = unnamed(folder)?;
    let mut took = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        file.write_all(&[0; SYNC_BYTES])?;
        let begun = Instant::now();
        file.sync_data()?;
        took.push(begun.elapsed());
    }
    took.sort_unstable();
    Ok(u64::try_from(took[SYNCS / 2].as_micros()).unwrap_or(u64::MAX))
}

/// Creates a file without a name, which is deleted when it is closed. On a filesystem without such files, a named
/// file is unlinked at once.
fn unnamed(folder: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    if let Ok(file) = openat(CWD, folder, flags, Mode::RUSR | Mode::WUSR) {
        return Ok(file.into());
    }
    let path = folder.join(format!(".doctor-{}", std::process::id()));
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

fn sync(median_us: u64) -> Check {
    let took = if median_us < 1_000 {
        format!("{median_us} µs")
    } else {
        format!("{}.{} ms", median_us / 1_000, median_us % 1_000 / 100)
    };
    let check = match () {
        () if median_us < SYNC_TOO_QUICK_US => {
            let message = format!(
                "a sync takes {took}, which no disk achieves: acknowledged commits may not survive a power failure"
            );
            Check::warning("sync", message, "check whether this is memory, or a virtual disk that ignores flushes")
        }
        () if median_us > SYNC_SLOW_US => {
            let message = format!("a sync takes {took}, and every step waits for several");
            Check::warning("sync", message, "use a faster disk, or find out which other process uses this one")
        }
        () => Check::ok("sync", format!("a sync takes {took}")),
    };
    check.with("medianMicroseconds", median_us)
}

#[cfg(test)]
mod tests {
    use super::{super::check::State, *};

    #[test]
    fn every_disk_threshold_gives_its_state() {
        const GIB: u64 = 1024 * 1024 * 1024;
        let table = [
            (sync(0), State::Warning, "no disk achieves"),
            (sync(19), State::Warning, "no disk achieves"),
            (sync(20), State::Ok, "takes 20 µs"),
            (sync(1_250), State::Ok, "takes 1.2 ms"),
            (sync(20_000), State::Ok, "20.0 ms"),
            (sync(20_001), State::Warning, "every step waits"),
            (space(0, 1 << 20), State::Broken, "0 MiB"),
            (space(FREE_BYTES_NONE, 1 << 20), State::Warning, "only 32 MiB"),
            (space(GIB - 1, 1 << 20), State::Warning, "1023 MiB"),
            (space(GIB + GIB / 2, 1 << 20), State::Ok, "1.5 GiB"),
            (space(GIB, FREE_FILES_LOW - 1), State::Warning, "9999 files"),
            (space(GIB, 0), State::Broken, "no file more"),
            (filesystem(0x6969), State::Warning, "nfs"),
            (filesystem(0xff53_4d42), State::Warning, "cifs"),
            (filesystem(0x0102_1994), State::Warning, "memory"),
            (filesystem(0x794c_7630), State::Warning, "container"),
            (filesystem(0xef53), State::Ok, "ext4"),
            (filesystem(1), State::Ok, "0x1"),
        ];
        for (check, state, said) in table {
            assert!(check.state == state && check.message.contains(said), "{check:?}");
        }
    }

    #[test]
    fn measuring_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        assert!(measure(folder.path()).is_ok());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(measure(&folder.path().join("none")).is_err());
    }
}
