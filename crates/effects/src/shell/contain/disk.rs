//! The files of a workspace: counting them, reducing them to the quota, removing them.
//!
//! Each folder is opened by its name relative to its open parent, and never through a link. So no path is too long, and
//! none leads outside of the workspace, however a script moves its folders at the same time. A folder that its owner
//! may not read is made readable.

use std::{
    collections::HashSet,
    ffi::{CStr, CString},
    fs::{self, Permissions},
    hash::{BuildHasher, RandomState},
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::fs::PermissionsExt,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{
        AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, Stat, Timespec, fchmod, fstat, openat, renameat_with,
        statat, statvfs, unlinkat,
    },
    io::Errno,
    process::geteuid,
};

use super::usage;
use crate::shell::limits::{
    DISK_FREE_BYTES_MIN, DISK_FREE_FILES_MIN, START_BYTES_MIN, WORKSPACE_BYTES_MAX, WORKSPACE_DEPTH_MAX,
    WORKSPACE_DISK_SHARE, WORKSPACE_ENTRIES_MAX,
};

/// Disk usage of the files of a workspace.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) bytes: u64,
    /// Number of files and folders.
    pub(super) entries: u64,
}

impl Usage {
    fn with(self, bytes: u64) -> Self {
        Self { bytes: self.bytes.saturating_add(bytes), entries: self.entries + 1 }
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_add(other.bytes), entries: self.entries.saturating_add(other.entries) }
    }

    /// Subtracts bytes that something else has used, down to zero.
    pub(super) fn without(self, bytes: u64) -> Self {
        Self { bytes: self.bytes.saturating_sub(bytes), ..self }
    }

    /// Returns a sentence about an exceeded limit.
    pub(super) fn excess(self, most: Self) -> Option<String> {
        if self.bytes > most.bytes {
            let mib = |bytes: u64| bytes >> 20;
            return Some(format!("its workspace holds {} MiB, and {} are allowed", mib(self.bytes), mib(most.bytes)));
        }
        (self.entries > most.entries).then(|| format!("its workspace has more than {} files and folders", most.entries))
    }
}

/// The quota of a workspace.
const MOST: Usage = Usage { bytes: WORKSPACE_BYTES_MAX, entries: WORKSPACE_ENTRIES_MAX };

/// The quota of a workspace on its disk, of which it may use no more than a share.
pub(super) fn most(workspace: &Path) -> Usage {
    let Ok(disk) = statvfs(workspace) else { return MOST };
    let share = |whole: u64| if whole == 0 { u64::MAX } else { whole / WORKSPACE_DISK_SHARE };
    let bytes = share(disk.f_blocks.saturating_mul(disk.f_frsize));
    Usage { bytes: MOST.bytes.min(bytes), entries: MOST.entries.min(share(disk.f_files)) }
}

/// A folder that the walk is in, its name in its parent, and whether it counts as new.
struct Level {
    folder: Dir,
    name: CString,
    is_new: bool,
}

/// An entry as the walk presents it.
enum Entry<'a> {
    /// A folder that is entered next, unless it is nested too deeply.
    Folder { is_too_deep: bool },
    /// Anything else.
    File,
    /// A folder whose entries are done.
    Left(&'a Level),
}

/// Returns the bytes that an entry occupies on the disk.
fn bytes_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512)
}

/// Permissions of a folder that its owner needs, by operation.
const COUNTING: u32 = 0o500;
const REMOVING: u32 = 0o700;

/// Opens a folder inside of a folder. Permissions that the owner lacks are added; root needs none.
fn open(at: BorrowedFd<'_>, name: &CStr, needed: u32) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = match openat(at, name, flags | OFlags::RDONLY, Mode::empty()) {
        Err(Errno::ACCESS) => {
            let handle = openat(at, name, flags | OFlags::PATH, Mode::empty())?;
            // A descriptor opened with `O_PATH` can change the mode only through this path, which names the same file
            // even if it was renamed.
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

/// Walks through a folder without following links or entering mounts. `each` gets every entry with its parent folder,
/// its name and its metadata, and ends the walk by returning false. Entries that are removed at the same time are
/// skipped.
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

/// Returns whether the error means that an entry was removed or is no folder any more.
fn is_gone(error: &io::Error) -> bool {
    [Errno::NOENT, Errno::NOTDIR, Errno::LOOP].iter().any(|gone| error.raw_os_error() == Some(gone.raw_os_error()))
}

fn open_root(workspace: &Path, needed: u32) -> io::Result<OwnedFd> {
    let name = CString::new(workspace.as_os_str().as_encoded_bytes())?;
    open(CWD, &name, needed)
}

/// Counts the entries that `counts` selects, up to the first excess. A file with several names counts once.
fn count_those(workspace: &Path, most: Usage, counts: impl Fn(&Stat) -> bool) -> io::Result<(Usage, Option<String>)> {
    let (mut taken, mut excess) = (Usage::default(), None);
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

/// Returns a sentence about what exceeds the quota of a workspace. A workspace that cannot be scanned counts as an
/// excess.
pub(super) fn excess(workspace: &Path, most: Usage) -> Option<String> {
    counted(workspace, most).1
}

/// As [`excess`], with the usage that was counted until then.
pub(super) fn counted(workspace: &Path, most: Usage) -> (Usage, Option<String>) {
    let excess = match count_those(workspace, most, |_| true) {
        Ok(counted) => return counted,
        Err(error) if is_gone(&error) => None,
        Err(error) => Some(format!("its workspace cannot be looked through ({error})")),
    };
    (Usage::default(), excess)
}

/// Returns a sentence if the disk has less free space, in bytes or files, than `times` the server's reserve.
pub(super) fn full(workspace: &Path, times: u64) -> Option<String> {
    let disk = statvfs(workspace).ok()?;
    let (shown, mib) = (workspace.display(), (times * DISK_FREE_BYTES_MIN) >> 20);
    if disk.f_bavail.saturating_mul(disk.f_frsize) < times * DISK_FREE_BYTES_MIN {
        return Some(format!("the disk of {shown} has less than {mib} MiB left, which the server needs"));
    }
    // Some file systems report no number of files.
    let files = times * DISK_FREE_FILES_MIN.min(disk.f_files / 20);
    (disk.f_favail < files)
        .then(|| format!("the disk of {shown} has room for less than {files} more files, which the server needs"))
}

/// Returns the free space on the disk of a workspace.
pub(super) fn free(workspace: &Path) -> Option<Usage> {
    let disk = statvfs(workspace).ok()?;
    Some(Usage { bytes: disk.f_bavail.saturating_mul(disk.f_frsize), entries: disk.f_favail })
}

/// Removes files of the largest workspaces if their disk has no room to open a store, and returns the workspaces that
/// lost files. Their executions may still need the files, but no execution resumes while the server cannot start.
pub fn make_room(workspaces: &Path) -> Vec<PathBuf> {
    let free = || free(workspaces).map_or(u64::MAX, |free| free.bytes);
    if free() >= START_BYTES_MIN { Vec::new() } else { make_room_of(workspaces, 2 * START_BYTES_MIN, free) }
}

fn make_room_of(workspaces: &Path, wanted: u64, free: impl Fn() -> u64) -> Vec<PathBuf> {
    let everything = Usage { bytes: u64::MAX, entries: u64::MAX };
    let folders = fs::read_dir(workspaces).into_iter().flatten().flatten().map(|entry| entry.path());
    let folders = folders.filter(|path| path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()));
    let mut sizes: Vec<_> = folders.map(|path| (counted(&path, everything).0.bytes, path)).collect();
    sizes.sort_by(|one, other| other.cmp(one));
    let mut reduced = Vec::new();
    for (bytes, path) in sizes {
        let missing = wanted.saturating_sub(free());
        if missing == 0 {
            break;
        }
        let kept = Usage { bytes: bytes.saturating_sub(missing), entries: u64::MAX };
        if bytes > 0 && remove_beyond(&path, Usage::default(), kept, |_| true).is_ok() {
            reduced.push(path);
        }
    }
    reduced
}

/// Returns the time that the file system gives to a change made now, which need not equal any system clock.
pub(crate) fn stamp(workspace: &Path) -> Option<Timespec> {
    let _readable = open_root(workspace, REMOVING).ok()?;
    let file = tempfile_in(workspace).ok()?;
    fstat(file).ok().map(|stat| changed(&stat))
}

/// Returns the last change of a file or of its attributes (ctime), which no program can set.
fn changed(stat: &Stat) -> Timespec {
    Timespec { tv_sec: stat.st_ctime, tv_nsec: i64::try_from(stat.st_ctime_nsec).unwrap_or(i64::MAX) }
}

/// Makes a file without a name, or opens the folder itself where the file system has no such files.
fn tempfile_in(folder: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match openat(CWD, folder, flags, Mode::RUSR) {
        Ok(file) => Ok(file),
        Err(_) => open_root(folder, COUNTING),
    }
}

/// Removes files of a workspace that exceeds its quota until an eighth of the quota is free, so that the next script
/// has room. Files that changed since `since` go first; the others follow only if they exceed the quota alone.
pub(super) fn reduce(workspace: &Path, since: Option<Timespec>, most: Usage) -> io::Result<()> {
    let is_new = |stat: &Stat| match since {
        Some(since) => changed(stat) >= since,
        None => true,
    };
    if excess(workspace, most).is_none() {
        return Ok(());
    }
    let everything = Usage { bytes: u64::MAX, entries: u64::MAX };
    let (old, _) = count_those(workspace, everything, |stat| !is_new(stat))?;
    let room = Usage { bytes: most.bytes / 8 * 7, entries: most.entries / 8 * 7 };
    remove_beyond(workspace, old, room, is_new)?;
    match excess(workspace, most) {
        Some(_) if since.is_some() => remove_beyond(workspace, Usage::default(), room, |_| true),
        _ => Ok(()),
    }
}

/// Removes files that `is_new` selects until the rest fits. Entries that a parallel step removes at the same time are
/// skipped. The first error is returned at the end.
fn remove_beyond(workspace: &Path, kept: Usage, most: Usage, is_new: impl Fn(&Stat) -> bool) -> io::Result<()> {
    let (mut kept, mut failed) = (kept, None);
    let root = open_root(workspace, REMOVING)?;
    let root_again = root.try_clone()?;
    let each = |at: BorrowedFd<'_>, name: &CStr, stat: &Stat, entry: Entry<'_>| {
        let fits = kept.with(bytes_of(stat)).excess(most).is_none();
        match entry {
            Entry::Folder { is_too_deep: true } => {
                keep_error(&mut failed, remove_through(at, name, root_again.as_fd()))
            }
            Entry::File if is_new(stat) && !fits => {
                keep_error(&mut failed, unlinkat(at, name, AtFlags::empty()).map_err(Into::into));
            }
            Entry::Left(level) if level.is_new && !fits => {
                // A folder that is not empty stays with its remaining content.
                let _ = unlinkat(at, name, AtFlags::REMOVEDIR);
            }
            Entry::File | Entry::Left(_) if is_new(stat) => kept = kept.with(bytes_of(stat)),
            Entry::Folder { .. } | Entry::File | Entry::Left(_) => {}
        }
        Ok(true)
    };
    walk(root, REMOVING, each, &is_new)?;
    failed.map_or(Ok(()), Err)
}

/// Keeps the first error, except for entries that no longer exist.
fn keep_error(failed: &mut Option<io::Error>, result: io::Result<()>) {
    if let Err(error) = result
        && !is_gone(&error)
    {
        failed.get_or_insert(error);
    }
}

/// Removes a folder with all of its content, at any depth and without following links.
pub fn remove(folder: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let parent = open_root(parent, COUNTING)?;
    let name = CString::new(name.as_encoded_bytes())?;
    remove_through(parent.as_fd(), &name, parent.as_fd())?;
    usage::forget(folder);
    Ok(())
}

/// Removes a folder. Subfolders that are nested too deeply are first moved to `aside` and removed there.
fn remove_through(at: BorrowedFd<'_>, name: &CStr, aside: BorrowedFd<'_>) -> io::Result<()> {
    let mut moved = Vec::new();
    remove_level(at, name, aside, &mut moved)?;
    while let Some(name) = moved.pop() {
        remove_level(aside, &name, aside, &mut moved)?;
    }
    Ok(())
}

fn remove_level(at: BorrowedFd<'_>, name: &CStr, aside: BorrowedFd<'_>, moved: &mut Vec<CString>) -> io::Result<()> {
    let mut failed = None;
    // A folder that loses entries while it is read may return fewer than it has.
    for _ in 0..REMOVE_ROUNDS_MAX {
        failed = None;
        let each = |at: BorrowedFd<'_>, name: &CStr, _: &Stat, entry: Entry<'_>| {
            let removed = match entry {
                Entry::Folder { is_too_deep: false } => Ok(()),
                Entry::Folder { is_too_deep: true } => move_aside(at, name, aside).map(|name| moved.push(name)),
                Entry::File => unlinkat(at, name, AtFlags::empty()).map_err(Into::into),
                Entry::Left(_) => {
                    let _ = unlinkat(at, name, AtFlags::REMOVEDIR);
                    Ok(())
                }
            };
            keep_error(&mut failed, removed);
            Ok(true)
        };
        match open(at, name, REMOVING) {
            Ok(folder) => walk(folder, REMOVING, each, |_| true)?,
            Err(error) if is_gone(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
        match unlinkat(at, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            Err(Errno::NOENT) => return Ok(()),
            removed => return removed.map_err(Into::into),
        }
    }
    Err(failed.unwrap_or_else(|| Errno::NOTEMPTY.into()))
}

/// Moves a folder to an unused name that a script cannot predict.
fn move_aside(at: BorrowedFd<'_>, name: &CStr, aside: BorrowedFd<'_>) -> io::Result<CString> {
    let random = || CString::new(format!("{REMOVED}{:016x}", RandomState::new().hash_one(name)));
    loop {
        let moved = random()?;
        match renameat_with(at, name, aside, &moved, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            // Some file systems do not support `RENAME_NOREPLACE`.
            Err(Errno::INVAL) => {
                return renameat_with(at, name, aside, &moved, RenameFlags::empty())
                    .map(|()| moved)
                    .map_err(Into::into);
            }
            renamed => return renamed.map(|()| moved).map_err(Into::into),
        }
    }
}

/// Prefix of the names of folders that were nested too deeply and are being removed. Leftovers of a server that ended
/// during a removal are removed together with the workspaces.
const REMOVED: &str = ".mainspring-removed-";

/// Rounds of removal for a folder that still has entries after all of them were removed.
const REMOVE_ROUNDS_MAX: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: Usage = Usage { bytes: 11 << 20, entries: 24 };

    fn place() -> (tempfile::TempDir, std::path::PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let workspace = root.path().join("workspace");
        fs::create_dir(&workspace).unwrap();
        (root, workspace)
    }

    fn write(workspace: &Path, name: &str, mib: usize) {
        fs::write(workspace.join(name), vec![1; mib << 20]).unwrap();
    }

    /// Makes nested folders with names that add up to a path longer than the system accepts.
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
    fn unreadable_folders_and_long_paths_are_counted() {
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
        assert!(excess(&workspace, Usage { entries: 100, ..SOME }).is_some_and(|why| why.contains("12 MiB")));
        remove(&workspace).unwrap();
        assert!(!workspace.exists());
        assert_eq!(excess(&workspace, SOME), None, "it is gone");
    }

    #[test]
    fn too_deep_folders_are_reported_and_removed() {
        let (_root, workspace) = place();
        nest(&workspace, WORKSPACE_DEPTH_MAX * 2 + 3);
        let most = Usage { entries: 10_000, bytes: 1 << 30 };
        assert!(excess(&workspace, most).is_some_and(|why| why.contains("deep")));
        reduce(&workspace, None, most).unwrap();
        assert_eq!(excess(&workspace, most), None);
        remove(&workspace).unwrap();
        fs::create_dir(&workspace).unwrap();
        nest(&workspace, WORKSPACE_DEPTH_MAX * 3);
        remove(&workspace).unwrap();
        assert!(!workspace.exists());
    }

    /// Neither names that a script can guess nor folders in the way stop a removal.
    #[test]
    fn existing_names_do_not_prevent_a_removal() {
        let (root, workspace) = place();
        let guessed = |folder: &Path| {
            for number in 0..6 {
                fs::create_dir_all(folder.join(format!(".mainspring-removed-{number}-0/x"))).unwrap();
                fs::create_dir_all(folder.join(format!(".mainspring-removed-0-{number}/x"))).unwrap();
            }
        };
        guessed(&workspace);
        nest(&workspace, WORKSPACE_DEPTH_MAX * 3);
        let most = Usage { entries: 10_000, bytes: 1 << 30 };
        reduce(&workspace, None, most).unwrap();
        assert_eq!(excess(&workspace, most), None);
        guessed(root.path());
        fs::create_dir(workspace.join("more")).unwrap();
        nest(&workspace.join("more"), WORKSPACE_DEPTH_MAX * 3);
        remove(&workspace).unwrap();
        assert!(!workspace.exists());
        remove(&workspace).unwrap();
    }

    #[test]
    fn the_largest_workspaces_are_removed_before_a_start() {
        let (root, large) = place();
        let small = root.path().join("small");
        fs::create_dir(&small).unwrap();
        (0..4).for_each(|number| write(&large, &number.to_string(), 2));
        write(&small, "one", 2);
        let all = Usage { bytes: u64::MAX, entries: u64::MAX };
        let used = || counted(&large, all).0.bytes + counted(&small, all).0.bytes;
        let free = || (11 << 20) - used().min(11 << 20);
        assert_eq!(make_room_of(root.path(), 3 << 20, free), std::slice::from_ref(&large));
        assert!(free() >= 3 << 20 && small.join("one").exists());
        assert!(fs::read_dir(&large).unwrap().count() >= 2, "no more than is needed");
        assert!(make_room_of(root.path(), 3 << 20, free).is_empty() && make_room(root.path()).is_empty());
    }

    #[test]
    fn a_workspace_has_a_share_of_its_disk() {
        let (_root, workspace) = place();
        let (most, disk) = (most(&workspace), statvfs(&workspace).unwrap());
        assert!(most.bytes <= MOST.bytes.min(disk.f_blocks * disk.f_frsize / WORKSPACE_DISK_SHARE));
        assert!(disk.f_files == 0 || most.entries <= MOST.entries.min(disk.f_files / WORKSPACE_DISK_SHARE));
        assert!(full(&workspace, 0).is_none() && full(&workspace, 1 << 20).is_some());
    }

    #[test]
    fn symlinks_are_not_followed_and_hard_links_count_once() {
        let (root, workspace) = place();
        write(root.path(), "outside", 11);
        std::os::unix::fs::symlink(root.path(), workspace.join("link")).unwrap();
        std::os::unix::fs::symlink(root.path().join("outside"), workspace.join("file")).unwrap();
        write(&workspace, "one", 6);
        fs::hard_link(workspace.join("one"), workspace.join("two")).unwrap();
        assert_eq!(excess(&workspace, SOME), None);
        assert!(excess(&workspace, Usage { entries: 3, ..SOME }).is_some_and(|why| why.contains("files and folders")));
        reduce(&workspace, None, Usage { bytes: 0, entries: 0 }).unwrap();
        remove(&workspace).unwrap();
        assert!(root.path().join("outside").exists());
    }

    #[test]
    fn new_files_are_removed_before_old_ones() {
        let (_root, workspace) = place();
        write(&workspace, "old", 6);
        // The next change gets a later time only after the clock of the file system has ticked.
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
