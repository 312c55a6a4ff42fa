//! The installation's key, which authenticates journals and approvals. It is stored outside of every store, data folder
//! and workspace.
//!
//! ```text
//! 4f3c…                  64 hexadecimal digits: the installation's key, which never changes
//! encryption 91ab…       keys that encrypt secrets in the store, the newest last
//! ```

use std::{
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use mainspring_kernel::hash::{Hash, hex, unhex};
use mainspring_store::Store;
use rustix::{
    fs::{FlockOperation, Mode, OFlags, flock},
    io::Errno,
};

use crate::error::EngineError;

/// Reads the key from a file. It creates none, since a new key would not verify the journals sealed with the missing
/// one.
pub fn load(path: &Path) -> Result<[u8; 32], EngineError> {
    let failed = |why: String| EngineError::Key { path: path.to_owned(), why };
    read(path)?.ok_or_else(|| {
        failed(
            "it is missing, and the journals are sealed with it: restore it, or set MAINSPRING_KEY_FILE to its path"
                .into(),
        )
    })
}

/// Reads the key from a file, or creates both.
pub fn load_or_create(path: &Path) -> Result<[u8; 32], EngineError> {
    let failed = |why: String| EngineError::Key { path: path.to_owned(), why };
    for _ in 0..2 {
        if let Some(key) = read(path)? {
            return Ok(key);
        }
        create(path).map_err(|error| failed(error.to_string()))?;
    }
    Err(failed("it cannot be created".into()))
}

/// The name of the store's entry that identifies its key.
pub const KEY_CHECK: &str = "key-check";

/// True if this entry of a folder or store was made with this key.
pub fn is_key_of(check: &str, key: &[u8; 32]) -> bool {
    check.trim() == fingerprint(key)
}

/// Refuses a key that is not the store's: with another key, every journal would appear forged.
pub fn check_store(store: &dyn Store, key: &[u8; 32]) -> Result<(), EngineError> {
    let mine = fingerprint(key);
    if store.put_metadata_if_absent(KEY_CHECK, &mine)? == mine {
        Ok(())
    } else {
        Err(EngineError::OtherKey { place: "the store".into() })
    }
}

/// Loads the key of a file for a shared store. A missing key is created only for a new store.
pub fn of_store(store: &dyn Store, path: &Path) -> Result<[u8; 32], EngineError> {
    let key = if is_begun(store)? { load(path)? } else { load_or_create(path)? };
    check_store(store, &key)?;
    Ok(key)
}

/// True if a key was used in a shared store. Without one the store is empty.
pub fn is_begun(store: &dyn Store) -> Result<bool, EngineError> {
    Ok(store.metadata(KEY_CHECK)?.is_some())
}

/// Identifies the key without revealing it.
pub(crate) fn fingerprint(key: &[u8; 32]) -> String {
    Hash::keyed(key, &[b"mainspring key check 1"]).hex()
}

/// The location of the key: `given`, or the user's configuration folder. If that is inside a folder to avoid, such as a
/// workspace that is the user's home directory, the key is stored below `/var/tmp`.
pub fn location(
    given: Option<PathBuf>,
    config_home: Option<PathBuf>,
    home_dir: Option<PathBuf>,
    avoid: &[&Path],
) -> PathBuf {
    if let Some(given) = given {
        return given;
    }
    let config = config_home.or_else(|| home_dir.map(|home_dir| home_dir.join(".config")));
    let handles = |path: &PathBuf| !avoid.iter().any(|avoided| path.starts_with(avoided));
    let fallback = || PathBuf::from(format!("{SHARED}/mainspring-{}/key", rustix::process::getuid().as_raw()));
    config.map(|config| config.join("mainspring/key")).filter(handles).unwrap_or_else(fallback)
}

/// The keys of a file that encrypt values beside the installation's key, the newest last.
pub fn encryption_keys(path: &Path) -> Result<Vec<[u8; 32]>, EngineError> {
    Ok(read_file(path)?.map(|file| file.encryption).unwrap_or_default())
}

/// Adds a new encryption key to an existing key file, and returns it. The file is replaced in one step, so that a process
/// reads either the old keys or all of them.
pub fn add_encryption_key(path: &Path) -> Result<[u8; 32], EngineError> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|error| EngineError::Key { path: path.to_owned(), why: error.to_string() })?;
    change(path, |keys| match keys.len() {
        ENCRYPTION_KEYS_MAX.. => Err(format!("it has {ENCRYPTION_KEYS_MAX} encryption keys: remove unused ones first")),
        _ => {
            keys.push(key);
            Ok(())
        }
    })?;
    Ok(key)
}

/// Removes an encryption key from a key file. False if it is not there.
pub fn remove_encryption_key(path: &Path, is_removed: impl Fn(&[u8; 32]) -> bool) -> Result<bool, EngineError> {
    let mut found = false;
    change(path, |keys| {
        let before = keys.len();
        keys.retain(|key| !is_removed(key));
        found = keys.len() < before;
        Ok(())
    })?;
    Ok(found)
}

/// Most encryption keys of a file. There are two during a rotation.
const ENCRYPTION_KEYS_MAX: usize = 8;

/// The beginning of a line with an encryption key.
const ENCRYPTION: &str = "encryption ";

/// The content of a key file.
struct KeyFile {
    installation: [u8; 32],
    encryption: Vec<[u8; 32]>,
}

impl KeyFile {
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let installation = key_of(lines.next()?)?;
        let encryption = lines.map(|line| key_of(line.strip_prefix(ENCRYPTION)?.trim())).collect::<Option<Vec<_>>>()?;
        (encryption.len() <= ENCRYPTION_KEYS_MAX).then_some(Self { installation, encryption })
    }

    fn to_text(&self) -> String {
        let others = self.encryption.iter().map(|key| format!("{ENCRYPTION}{}\n", hex(key)));
        [format!("{}\n", hex(&self.installation))].into_iter().chain(others).collect()
    }
}

fn key_of(digits: &str) -> Option<[u8; 32]> {
    let mut key = [0; 32];
    unhex(digits, &mut key).then_some(key)
}

/// Changes the encryption keys of a file. Changes by several processes happen one after the other.
fn change(path: &Path, edit: impl FnOnce(&mut Vec<[u8; 32]>) -> Result<(), String>) -> Result<(), EngineError> {
    let failed = |why: String| EngineError::Key { path: path.to_owned(), why };
    let folder = File::open(folder_of(path)).map_err(|error| failed(error.to_string()))?;
    flock(&folder, FlockOperation::LockExclusive).map_err(|error| failed(error.to_string()))?;
    let mut file = read_file(path)?.ok_or_else(|| failed("it is missing; the first start creates it".into()))?;
    edit(&mut file.encryption).map_err(failed)?;
    let written = write_new(folder_of(path), &file.to_text()).and_then(|new| {
        fs::rename(&new, path).inspect_err(|_| {
            // The original error is the one to report.
            let _ = fs::remove_file(&new);
        })
    });
    written.and_then(|()| folder.sync_all()).map_err(|error| failed(format!("it cannot be written: {error}")))
}

/// Writes a file of another name into a folder, which only its owner can read.
fn write_new(folder: &Path, text: &str) -> std::io::Result<PathBuf> {
    let mut suffix = [0; 8];
    getrandom::fill(&mut suffix).map_err(std::io::Error::other)?;
    let path = folder.join(format!(".key-{}", hex(&suffix)));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(path)
}

/// Reads the installation's key. `None` if there is no file.
fn read(path: &Path) -> Result<Option<[u8; 32]>, EngineError> {
    Ok(read_file(path)?.map(|file| file.installation))
}

/// Reads a key file. `None` if there is none. Folder and file are opened once and checked by their descriptors, so that
/// they cannot be replaced between check and use.
fn read_file(path: &Path) -> Result<Option<KeyFile>, EngineError> {
    let failed = |why: String| EngineError::Key { path: path.to_owned(), why };
    let folder = match File::open(folder_of(path)) {
        Ok(folder) => folder,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error.to_string())),
    };
    let name = path.file_name().ok_or_else(|| failed("it is not a regular file".into()))?;
    // Opening a FIFO at this path does not block.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match rustix::fs::openat(&folder, name, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(failed("it is a symbolic link: name the file that it leads to".into())),
        Err(error) => return Err(failed(error.to_string())),
    };
    check_folder(path, &folder).map_err(failed)?;
    let metadata = file.metadata().map_err(|error| failed(error.to_string()))?;
    if !metadata.is_file() || metadata.uid() != rustix::process::getuid().as_raw() || metadata.mode() & 0o077 != 0 {
        return Err(failed("other users can read or own it; it must be your own file with mode 0600".into()));
    }
    let mut text = String::new();
    file.take(KEY_FILE_BYTES_MAX).read_to_string(&mut text).map_err(|error| failed(error.to_string()))?;
    let wrong = "it does not contain 64 hexadecimal digits, followed by `encryption` lines with 64 digits each";
    KeyFile::parse(&text).map(Some).ok_or_else(|| failed(wrong.into()))
}

/// Bytes read of a key file: the digits of all keys, with room for line breaks.
const KEY_FILE_BYTES_MAX: u64 = 1024;

/// Refuses a folder in which other users could replace the key. Below the shared `/var/tmp`, where another user could
/// have created the folder, it must grant them no access at all.
fn check_folder(path: &Path, folder: &File) -> Result<(), String> {
    let metadata = folder.metadata().map_err(|error| error.to_string())?;
    let (own, shown) = (rustix::process::getuid().as_raw(), folder_of(path).display());
    let is_shared = path.starts_with(SHARED);
    // The folder of a secret that the system mounts belongs to root.
    if metadata.uid() != own && (is_shared || metadata.uid() != 0) {
        return Err(format!("its folder {shown} belongs to another user: name another file with MAINSPRING_KEY_FILE"));
    }
    let closed = if is_shared { 0o077 } else { 0o022 };
    if metadata.mode() & closed != 0 {
        let mode = metadata.mode() & 0o777;
        return Err(format!("its folder {shown} is open to other users (mode {mode:o}): `chmod 700 {shown}`"));
    }
    Ok(())
}

/// A folder in which every user can create folders.
const SHARED: &str = "/var/tmp";

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes the key under another name and links it to its own. A partial key is never visible, and two processes that
/// create a key at the same time both use the first one.
fn create(path: &Path) -> std::io::Result<()> {
    let folder = folder_of(path);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(std::io::Error::other)?;
    let whole = write_new(folder, &format!("{}\n", hex(&key)))?;
    let linked = fs::hard_link(&whole, path);
    fs::remove_file(&whole)?;
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => fs::File::open(folder)?.sync_all(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_created_once_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config/key");
        assert!(load(&path).unwrap_err().to_string().contains("is missing"));
        assert!(!path.exists() && !path.parent().unwrap().exists());
        let key = load_or_create(&path).unwrap();
        assert_eq!(load(&path).unwrap(), key);
        assert_eq!(load_or_create(&path).unwrap(), key);
        assert_ne!(load_or_create(&folder.path().join("other")).unwrap(), key);
        assert_eq!(fs::read_dir(folder.path().join("config")).unwrap().count(), 1);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(load_or_create(&path).unwrap_err().to_string().contains("0600"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "short").unwrap();
        assert!(load_or_create(&path).unwrap_err().to_string().contains("64 hexadecimal"));
    }

    #[test]
    fn encryption_keys_follow_the_permanent_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config/key");
        assert!(add_encryption_key(&path).is_err() && !path.exists(), "a change creates no key");
        let key = load_or_create(&path).unwrap();
        assert_eq!(encryption_keys(&path).unwrap(), Vec::<[u8; 32]>::new());
        let added = [add_encryption_key(&path).unwrap(), add_encryption_key(&path).unwrap()];
        assert_eq!((load(&path).unwrap(), encryption_keys(&path).unwrap()), (key, added.to_vec()));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!remove_encryption_key(&path, |one| *one == key).unwrap(), "the first key stays");
        assert!(remove_encryption_key(&path, |one| *one == added[0]).unwrap());
        assert_eq!((load(&path).unwrap(), encryption_keys(&path).unwrap()), (key, added[1..].to_vec()));
        assert_eq!(fs::read_dir(folder.path().join("config")).unwrap().count(), 1);
        for _ in 1..ENCRYPTION_KEYS_MAX {
            add_encryption_key(&path).unwrap();
        }
        assert!(add_encryption_key(&path).unwrap_err().to_string().contains("remove unused"));
        assert_eq!(encryption_keys(&path).unwrap().len(), ENCRYPTION_KEYS_MAX, "a full file is read as a whole");
        let text = fs::read_to_string(&path).unwrap();
        for wrong in [text.replace("encryption ", "encryption"), text.replace("encryption ", ""), text.clone() + "x\n"]
        {
            fs::write(&path, wrong).unwrap();
            assert!(load(&path).unwrap_err().to_string().contains("64 hexadecimal"));
        }
    }

    #[test]
    fn key_files_writable_by_others_are_rejected() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("config");
        let (path, link) = (folder.join("key"), folder.join("link"));
        let key = load_or_create(&path).unwrap();
        let refused = |path: &Path, part: &str| {
            for read in [load(path), load_or_create(path)] {
                let why = read.unwrap_err().to_string();
                assert!(why.contains(part), "{why}");
            }
        };
        let open = |mode: u32| fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        for mode in [0o777, 0o770, 0o702, 0o1777] {
            open(mode);
            refused(&path, "chmod 700");
        }
        for mode in [0o755, 0o700] {
            open(mode);
            assert_eq!(load(&path).unwrap(), key, "others may see that it is there");
        }
        std::os::unix::fs::symlink(&path, &link).unwrap();
        refused(&link, "symbolic link");
        refused(&folder, "with mode 0600");
        fs::write(&path, "0".repeat(200)).unwrap();
        refused(&path, "64 hexadecimal");
        // Below a folder shared by all users, no access is allowed.
        open(0o755);
        let opened = File::open(&folder).unwrap();
        assert!(check_folder(&path, &opened).is_ok());
        assert!(check_folder(Path::new("/var/tmp/mainspring-7/key"), &opened).unwrap_err().contains("mode 755"));
    }

    #[test]
    fn the_default_key_file_is_outside_of_step_folders() {
        let home_dir = Some(PathBuf::from("/users/ada"));
        let config = location(None, None, home_dir.clone(), &[Path::new("/users/ada/project")]);
        assert_eq!(config, Path::new("/users/ada/.config/mainspring/key"));
        let config = location(None, None, home_dir.clone(), &[Path::new("/users/ada")]);
        assert!(config.starts_with("/var/tmp"));
        assert_eq!(location(Some("/k".into()), None, home_dir, &[Path::new("/")]), Path::new("/k"));
    }
}
