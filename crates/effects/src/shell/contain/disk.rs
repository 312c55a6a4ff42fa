//! The files of a workspace: counted, reduced to what is allowed, removed.
//!
//! Each folder is opened by its name in the open one above it, and never a link: no path is too long, and none leads
//! outside however a script moves its folders meanwhile. A folder that its owner may not read is made readable.

use std::{
    collections::HashSet,
    ffi::{CStr, CString},
    fs::{self, Permissions},
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::fs::PermissionsExt,
    },
    path::Path,
};

use rustix::{
    fs::{
        AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, Timespec, fchmod, fstat, openat, renameat, statat, statvfs,
        unlinkat,
    },
    io::Errno,
    process::geteuid,
};

use crate::shell::limits::{DISK_FREE_BYTES_MIN, WORKSPACE_BYTES_MAX, WORKSPACE_DEPTH_MAX, WORKSPACE_ENTRIES_MAX};

/// What the files of a workspace take.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) bytes: u64,
    /// Files and folders.
    pub(super) entries: u64,
}

impl Taken {
    fn with(self, bytes: u64) -> Self {
        Self { bytes: self.bytes.saturating_add(bytes), entries: self.entries + 1 }
    }

    /// A sentence on the limit that is passed.
    pub(super) fn excess(self, most: Self) -> Option<String> {
        if self.bytes > most.bytes {
            let mib = |bytes: u64| bytes >> 20;
            return Some(format!("its workspace holds {} MiB, and {} are allowed", mib(self.bytes), mib(most.bytes)));
        }
        (self.entries > most.entries).then(|| format!("its workspace has more than {} files and folders", most.entries))
    }
}

/// How much a workspace may hold.
pub(super) const MOST: Taken = Taken { bytes: WORKSPACE_BYTES_MAX, entries: WORKSPACE_ENTRIES_MAX };

/// A folder on the way, its name in the one above, and whether it counts as new.
struct Level {
    folder: Dir,
    name: CString,
    is_new: bool,
}

/// What a walk does with an entry.
enum Entry<'a> {
    /// A folder that is entered next, or one that lies too deep to be.
    Folder { is_too_deep: bool },
    /// Anything else.
    File,
    /// A folder whose entries are done.
    Left(&'a Level),
}

/// Bytes that an entry takes on the disk.
fn bytes_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512)
}

/// What is done with folders: the rights that their owner needs.
const COUNTING: u32 = 0o500;
const REMOVING: u32 = 0o700;

/// Opens a folder of a folder. Rights that its owner lacks for that are given; root needs none.
fn open(at: BorrowedFd<'_>, name: &CStr, needed: u32) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = match openat(at, name, flags | OFlags::RDONLY, Mode::empty()) {
        Err(Errno::ACCESS) => {
            let handle = openat(at, name, flags | OFlags::PATH, Mode::empty())?;
            // A handle without rights cannot be changed but by this path, which is that file's whatever its name is now.
            let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
            fs::set_permissions(path, Permissions::from_mode(0o700))?;
            openat(at, name, flags | OFlags::RDONLY, Mode::empty())?
        }
        folder => folder?,
    };
    let mode = fstat(&folder)?.st_mode;
    if mode & needed != needed && !geteuid().is_root() {
        fchmod(&folder, Mode::from_raw_mode((mode & 0o1777) | needed))?;
    }
    Ok(folder)
}

/// Walks through a folder without following links, and without what is mounted in it. Each entry is shown with the folder
/// that it is in, its name and its state; false from `each` ends the walk. What goes away meanwhile is passed over.
fn walk(
    root: OwnedFd,
    needed: u32,
    mut each: impl FnMut(BorrowedFd<'_>, &CStr, &Stat, Entry<'_>) -> io::Result<bool>,
    is_new: impl Fn(&Stat) -> bool,
) -> io::Result<()> {
    let device = fstat(&root)?.st_dev;
    let mut levels = vec![Level { folder: Dir::new(root)?, name: CString::default(), is_new: false }];
    while let Some(level) = levels.last_mut() {
        let Some(entry) = level.folder.read() else {
            let Some(left) = levels.pop() else { break };
            if let Some(above) = levels.last() {
                let stat = left.folder.stat()?;
                if !each(above.folder.fd()?, &left.name, &stat, Entry::Left(&left))? {
                    break;
                }
            }
            continue;
        };
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let at = level.folder.fd()?;
        let stat = match statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => continue,
            stat => stat?,
        };
        let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory && stat.st_dev == device;
        let is_too_deep = levels.len() >= WORKSPACE_DEPTH_MAX;
        let Some(level) = levels.last() else { break };
        let at = level.folder.fd()?;
        let kind = if is_folder { Entry::Folder { is_too_deep } } else { Entry::File };
        if !each(at, name, &stat, kind)? {
            break;
        }
        if is_folder && !is_too_deep {
            match open(at, name, needed) {
                Ok(folder) => {
                    let level = Level { folder: Dir::new(folder)?, name: name.to_owned(), is_new: is_new(&stat) };
                    levels.push(level);
                }
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Whether something was removed, or is no folder any more.
fn is_gone(error: &io::Error) -> bool {
    [Errno::NOENT, Errno::NOTDIR, Errno::LOOP].iter().any(|gone| error.raw_os_error() == Some(gone.raw_os_error()))
}

fn open_root(workspace: &Path, needed: u32) -> io::Result<OwnedFd> {
    let name = CString::new(workspace.as_os_str().as_encoded_bytes())?;
    open(CWD, &name, needed)
}

/// Counts the entries that are not passed over. A file with several names counts once.
fn count_those(workspace: &Path, most: Taken, counts: impl Fn(&Stat) -> bool) -> io::Result<(Taken, Option<String>)> {
    let (mut taken, mut excess) = (Taken::default(), None);
    let mut named = HashSet::new();
    let each = |_: BorrowedFd<'_>, _: &CStr, stat: &Stat, entry: Entry<'_>| {
        let is_folder = matches!(entry, Entry::Folder { .. });
        match entry {
            Entry::Left(_) => return Ok(true),
            Entry::Folder { is_too_deep: true } => {
                excess = Some(format!("folders in its workspace lie more than {WORKSPACE_DEPTH_MAX} deep"));
            }
            Entry::Folder { .. } | Entry::File => {}
        }
        if counts(stat) {
            let is_first = is_folder || stat.st_nlink <= 1 || named.insert(stat.st_ino);
            taken = taken.with(if is_first { bytes_of(stat) } else { 0 });
        }
        excess = excess.take().or_else(|| taken.excess(most));
        Ok(excess.is_none())
    };
    walk(open_root(workspace, COUNTING)?, COUNTING, each, |_| false)?;
    Ok((taken, excess))
}

/// A sentence on what a workspace has too much of. A workspace that cannot be looked through has too much.
pub(super) fn excess(workspace: &Path, most: Taken) -> Option<String> {
    match count_those(workspace, most, |_| true) {
        Ok((_, excess)) => excess,
        Err(error) if is_gone(&error) => None,
        Err(error) => Some(format!("its workspace cannot be looked through ({error})")),
    }
}

/// A sentence where the disk has too little left.
pub(super) fn full(workspace: &Path) -> Option<String> {
    let free = statvfs(workspace).ok().map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    let is_full = free.is_some_and(|free| free < DISK_FREE_BYTES_MIN);
    let (shown, mib) = (workspace.display(), DISK_FREE_BYTES_MIN >> 20);
    is_full.then(|| format!("the disk of {shown} has less than {mib} MiB left, which the server needs"))
}

/// Bytes that are free on the disk of a workspace.
pub(super) fn free(workspace: &Path) -> Option<u64> {
    statvfs(workspace).ok().map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// The time that the file system gives to what is changed now, which is not exactly that of any clock.
pub(crate) fn stamp(workspace: &Path) -> Option<Timespec> {
    let _readable = open_root(workspace, REMOVING).ok()?;
    let file = tempfile_in(workspace).ok()?;
    fstat(file).ok().map(|stat| changed(&stat))
}

/// When a file or its attributes were changed last. No program can choose that time.
fn changed(stat: &Stat) -> Timespec {
    Timespec { tv_sec: stat.st_ctime, tv_nsec: i64::try_from(stat.st_ctime_nsec).unwrap_or(i64::MAX) }
}

/// A new file without a name; of a file system that has none such, the folder itself.
fn tempfile_in(folder: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match openat(CWD, folder, flags, Mode::RUSR) {
        Ok(file) => Ok(file),
        Err(_) => open_root(folder, COUNTING),
    }
}

/// Removes files that have changed since a time until an eighth of what is allowed is free, or any where the others alone do
/// not fit. The next script has room by that. No file is removed from a workspace that fits.
pub(super) fn reduce(workspace: &Path, since: Option<Timespec>, most: Taken) -> io::Result<()> {
    let is_new = |stat: &Stat| match since {
        Some(since) => changed(stat) >= since,
        None => true,
    };
    if excess(workspace, most).is_none() {
        return Ok(());
    }
    let everything = Taken { bytes: u64::MAX, entries: u64::MAX };
    let (old, _) = count_those(workspace, everything, |stat| !is_new(stat))?;
    let room = Taken { bytes: most.bytes / 8 * 7, entries: most.entries / 8 * 7 };
    remove_beyond(workspace, old, room, is_new)?;
    match excess(workspace, most) {
        Some(_) if since.is_some() => remove_beyond(workspace, Taken::default(), room, |_| true),
        _ => Ok(()),
    }
}

fn remove_beyond(workspace: &Path, kept: Taken, most: Taken, is_new: impl Fn(&Stat) -> bool) -> io::Result<()> {
    let mut kept = kept;
    let root = open_root(workspace, REMOVING)?;
    let root_again = root.try_clone()?;
    let mut deep = 0;
    let each = |at: BorrowedFd<'_>, name: &CStr, stat: &Stat, entry: Entry<'_>| {
        let fits = kept.with(bytes_of(stat)).excess(most).is_none();
        match entry {
            Entry::Folder { is_too_deep: true } => {
                deep += 1;
                remove_through(at, name, root_again.as_fd(), deep)?;
            }
            Entry::File if is_new(stat) && !fits => unlinkat(at, name, AtFlags::empty())?,
            Entry::Left(level) if level.is_new && !fits => {
                // One that is not empty keeps what was kept in it.
                let _ = unlinkat(at, name, AtFlags::REMOVEDIR);
            }
            Entry::File | Entry::Left(_) if is_new(stat) => kept = kept.with(bytes_of(stat)),
            Entry::Folder { .. } | Entry::File | Entry::Left(_) => {}
        }
        Ok(true)
    };
    walk(root, REMOVING, each, &is_new)
}

/// Removes a folder and all that is in it, however deep and without following links.
pub fn remove(folder: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let parent = open_root(parent, COUNTING)?;
    let name = CString::new(name.as_encoded_bytes())?;
    remove_through(parent.as_fd(), &name, parent.as_fd(), 0)
}

/// Removes a folder. Folders that lie too deep in it are moved to `aside` first, and removed from there.
fn remove_through(at: BorrowedFd<'_>, name: &CStr, aside: BorrowedFd<'_>, number: u64) -> io::Result<()> {
    let moved = |count: u64| CString::new(format!(".mainspring-removed-{number}-{count}")).unwrap_or_default();
    let mut made = 0;
    remove_level(at, name, aside, &mut made, &moved)?;
    let mut next = 0;
    while next < made {
        remove_level(aside, &moved(next), aside, &mut made, &moved)?;
        next += 1;
    }
    Ok(())
}

fn remove_level(
    at: BorrowedFd<'_>,
    name: &CStr,
    aside: BorrowedFd<'_>,
    made: &mut u64,
    moved: &impl Fn(u64) -> CString,
) -> io::Result<()> {
    // A folder that loses entries while it is read may show fewer than it has.
    for _ in 0..REMOVE_ROUNDS_MAX {
        let each = |at: BorrowedFd<'_>, name: &CStr, _: &Stat, entry: Entry<'_>| {
            match entry {
                Entry::Folder { is_too_deep: false } => {}
                Entry::Folder { is_too_deep: true } => {
                    renameat(at, name, aside, moved(*made))?;
                    *made += 1;
                }
                Entry::File => unlinkat(at, name, AtFlags::empty())?,
                Entry::Left(_) => drop(unlinkat(at, name, AtFlags::REMOVEDIR)),
            }
            Ok(true)
        };
        walk(open(at, name, REMOVING)?, REMOVING, each, |_| true)?;
        match unlinkat(at, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY) => {}
            removed => return removed.map_err(Into::into),
        }
    }
    Err(Errno::NOTEMPTY.into())
}

/// How often a folder is looked through again that has entries after all of them were removed.
const REMOVE_ROUNDS_MAX: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: Taken = Taken { bytes: 11 << 20, entries: 24 };

    fn place() -> (tempfile::TempDir, std::path::PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let workspace = root.path().join("workspace");
        fs::create_dir(&workspace).unwrap();
        (root, workspace)
    }

    fn write(workspace: &Path, name: &str, mib: usize) {
        fs::write(workspace.join(name), vec![1; mib << 20]).unwrap();
    }

    /// Folders in each other, by names that make a path longer than the system takes.
    fn nest(workspace: &Path, depth: usize) {
        let mut at = open_root(workspace, COUNTING).unwrap();
        let name = CString::new(vec![b'd'; 200]).unwrap();
        for _ in 0..depth {
            rustix::fs::mkdirat(&at, &name, Mode::RWXU).unwrap();
            at = open(at.as_fd(), &name, COUNTING).unwrap();
        }
        let flags = OFlags::CREATE | OFlags::WRONLY;
        let file = openat(&at, c"large", flags, Mode::RUSR).unwrap();
        io::Write::write_all(&mut fs::File::from(file), &vec![1; 12 << 20]).unwrap();
    }

    #[test]
    fn folders_that_nobody_may_read_and_long_paths_are_counted() {
        let (_root, workspace) = place();
        assert_eq!(excess(&workspace, SOME), None);
        fs::create_dir(workspace.join("closed")).unwrap();
        write(&workspace, "closed/large", 12);
        for mode in [0o300, 0o400, 0o000] {
            fs::set_permissions(workspace.join("closed"), Permissions::from_mode(mode)).unwrap();
            assert!(excess(&workspace, SOME).is_some_and(|why| why.contains("12 MiB")), "mode {mode:o}");
        }
        remove(&workspace.join("closed")).unwrap();
        nest(&workspace, 30);
        assert!(excess(&workspace, Taken { entries: 100, ..SOME }).is_some_and(|why| why.contains("12 MiB")));
        remove(&workspace).unwrap();
        assert!(!workspace.exists());
        assert_eq!(excess(&workspace, SOME), None, "it is gone");
    }

    #[test]
    fn folders_that_lie_too_deep_are_told_and_removed() {
        let (_root, workspace) = place();
        nest(&workspace, WORKSPACE_DEPTH_MAX * 2 + 3);
        let most = Taken { entries: 10_000, bytes: 1 << 30 };
        assert!(excess(&workspace, most).is_some_and(|why| why.contains("deep")));
        reduce(&workspace, None, most).unwrap();
        assert_eq!(excess(&workspace, most), None);
        remove(&workspace).unwrap();
        fs::create_dir(&workspace).unwrap();
        nest(&workspace, WORKSPACE_DEPTH_MAX * 3);
        remove(&workspace).unwrap();
        assert!(!workspace.exists());
    }

    #[test]
    fn links_are_not_followed_and_names_of_one_file_count_once() {
        let (root, workspace) = place();
        write(root.path(), "outside", 11);
        std::os::unix::fs::symlink(root.path(), workspace.join("link")).unwrap();
        std::os::unix::fs::symlink(root.path().join("outside"), workspace.join("file")).unwrap();
        write(&workspace, "one", 6);
        fs::hard_link(workspace.join("one"), workspace.join("two")).unwrap();
        assert_eq!(excess(&workspace, SOME), None);
        assert!(excess(&workspace, Taken { entries: 3, ..SOME }).is_some_and(|why| why.contains("files and folders")));
        reduce(&workspace, None, Taken { bytes: 0, entries: 0 }).unwrap();
        remove(&workspace).unwrap();
        assert!(root.path().join("outside").exists());
    }

    #[test]
    fn what_is_new_goes_before_what_was_there() {
        let (_root, workspace) = place();
        write(&workspace, "old", 6);
        // The next change has a later time only when the clock of the file system has ticked.
        let before = stamp(&workspace).unwrap();
        while stamp(&workspace).unwrap() == before {
            std::thread::yield_now();
        }
        let since = stamp(&workspace);
        fs::create_dir(workspace.join("new")).unwrap();
        for number in 0..3 {
            write(&workspace, &format!("new/{number}"), 2);
        }
        assert!(excess(&workspace, SOME).is_some());
        reduce(&workspace, since, SOME).unwrap();
        assert_eq!(excess(&workspace, SOME), None);
        assert!(workspace.join("old").exists());
        assert_eq!(fs::read_dir(workspace.join("new")).unwrap().count(), 1);
        write(&workspace, "old", 12);
        reduce(&workspace, stamp(&workspace), SOME).unwrap();
        assert_eq!(excess(&workspace, SOME), None, "where old files alone are too many, they go");
    }
}
