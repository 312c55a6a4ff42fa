//! Detects that the store in a folder is not the one that was last used there, or is an older copy of it.
//!
//! The process record of an attempt is removed once its receipt is durable. In a restored copy of the store the attempt
//! is open again, and its missing record proves nothing: it may have run after the copy was made. The folder therefore
//! keeps a note outside of the store, with the last use of the store and its newest frame. The note is written before
//! any process record is removed, so every copy in which the attempt is open is older than the note.
//!
//! | the note | the store | verdict |
//! |---|---|---|
//! | there is none | was made just now | the same |
//! | there is none, or it cannot be read | was there before | unknown |
//! | is a copy: it was put into the folder with the rest | any | unknown |
//! | is whole | has another hold, or none | another store |
//! | is whole | has the hold, and an older newest frame | an older copy |
//! | is whole | has the hold, and no older frame | the same |
//!
//! The note need not survive a power failure, since after a reboot no attempt counts as never started. A restored
//! volume (a snapshot of the file system) contains the note with its times, and is not detected.

use std::{
    fmt,
    fs::{File, Metadata, OpenOptions},
    io::{self, Read},
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt},
    path::Path,
    time::UNIX_EPOCH,
};

use mainspring_kernel::hash::hex;
use mainspring_store::{StoreError, sqlite::SqliteStore};

/// Bytes read of a note. A valid note is shorter.
const NOTE_BYTES_MAX: u64 = 1024;

/// The note of a locked folder, kept open.
#[derive(Debug)]
pub(crate) struct Generation {
    file: File,
    /// Content when the folder was locked.
    before: Result<Note, Doubt>,
    /// Present content. `None` until it was compared with the store.
    now: Option<Note>,
    lock: Changed,
}

/// The reason why a store may be older than the work done in its folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// The folder has no note.
    Unnoted,
    /// The note cannot be read.
    Damaged,
    /// The note was copied into the folder.
    Copied,
    /// The store was last used in another folder, or the folder with another store.
    OtherStore,
    /// The store lacks frames that the folder has recorded.
    OlderCopy,
}

/// Identity and last change of a file: no copy has both in common with the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Changed {
    inode: u64,
    seconds: i64,
    nanoseconds: i64,
}

/// Identity of a file. An inode number alone is soon reused after a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Born {
    inode: u64,
    /// Time of creation since 1970, or 0 if the system does not provide it.
    nanoseconds: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Note {
    hold: String,
    frame: u64,
    /// Attempts that were started before this time may have run without a process record.
    untrusted_before_ms: u64,
    /// The inode of the note.
    itself: u64,
    /// The database: it changes constantly, but remains the same file.
    database: Born,
    /// The lock of the folder, which is written only when the folder is locked.
    lock: Changed,
}

impl Generation {
    /// Reads the note of a folder whose lock was taken and not yet written.
    pub(crate) fn read(path: &Path, lock: &File) -> io::Result<Self> {
        let lock = Changed::of(&lock.metadata()?);
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        let mut text = String::new();
        let is_read = (&file).take(NOTE_BYTES_MAX).read_to_string(&mut text).is_ok();
        let metadata = file.metadata()?;
        let before = match Note::parse(&text).filter(|_| is_read) {
            None if metadata.len() == 0 => Err(Doubt::Unnoted),
            None => Err(Doubt::Damaged),
            Some(note) if note.is_copied(&metadata, lock) => Err(Doubt::Copied),
            Some(note) => Ok(note),
        };
        Ok(Self { file, before, now: None, lock })
    }

    /// Records the lock file after its last write. It is recorded at once, so that a process that ends here does not
    /// appear to be a copy.
    pub(crate) fn lock_is_written(&mut self, lock: &File) -> io::Result<()> {
        self.lock = Changed::of(&lock.metadata()?);
        let Ok(note) = &mut self.before else { return Ok(()) };
        note.lock = self.lock;
        let note = note.clone();
        self.write(&note)
    }

    /// True if a write-ahead log certainly belongs to a former database, which was replaced since.
    pub(crate) fn has_foreign_log(&self, database: &Path, log: &Path) -> bool {
        let is_replaced = |note: &Note| database.metadata().is_ok_and(|metadata| Born::of(&metadata) != note.database);
        self.before.as_ref().is_ok_and(is_replaced) && log.metadata().is_ok_and(|metadata| metadata.len() > 0)
    }

    /// Compares a store with the note, and starts the next one. Returns the doubt about the store, and the time before
    /// which attempts are not trusted.
    pub(crate) fn begin(
        &mut self,
        store: &SqliteStore,
        database: &Path,
        now_ms: u64,
    ) -> Result<(Option<Doubt>, u64), BeginError> {
        let frame = store.newest_frame_number();
        let doubt = match &self.before {
            Err(doubt) => Some(*doubt),
            Ok(note) if store.last_hold()?.as_ref() != Some(&note.hold) => Some(Doubt::OtherStore),
            Ok(note) if frame < note.frame => Some(Doubt::OlderCopy),
            Ok(_) => None,
        };
        // No attempt starts before the first frame.
        let doubt = doubt.filter(|_| frame > 0);
        let known_ms = self.before.as_ref().map_or(0, |note| note.untrusted_before_ms);
        let untrusted_before_ms = if doubt.is_some() { known_ms.max(now_ms.saturating_add(1)) } else { known_ms };
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).map_err(|error| BeginError::Note(io::Error::other(error.to_string())))?;
        let hold = hex(&nonce);
        store.note_hold(&hold)?;
        let itself = self.file.metadata().map_err(BeginError::Note)?.ino();
        let database = Born::of(&database.metadata().map_err(BeginError::Note)?);
        let note = Note { hold, frame, untrusted_before_ms, itself, database, lock: self.lock };
        self.write(&note).map_err(BeginError::Note)?;
        self.now = Some(note);
        Ok((doubt, untrusted_before_ms))
    }

    /// Records a newer frame. When this returns, the note survives the end of this process.
    pub(crate) fn raise(&mut self, frame: u64) -> io::Result<()> {
        let known = self.now.as_ref().or(self.before.as_ref().ok());
        let Some(note) = known.filter(|note| note.frame < frame) else { return Ok(()) };
        let note = Note { frame, ..note.clone() };
        self.write(&note)?;
        self.now = Some(note);
        Ok(())
    }

    /// A single write call. All notes have the same length, so that no mixture of two is valid.
    fn write(&self, note: &Note) -> io::Result<()> {
        let text = note.text();
        self.file.write_all_at(text.as_bytes(), 0)?;
        if self.file.metadata()?.len() == text.len() as u64 { Ok(()) } else { self.file.set_len(text.len() as u64) }
    }
}

/// The reason why a folder cannot be used.
#[derive(Debug)]
pub(crate) enum BeginError {
    /// The store refuses to record its use.
    Store(StoreError),
    /// The note cannot be written.
    Note(io::Error),
}

impl From<StoreError> for BeginError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Changed {
    fn of(metadata: &Metadata) -> Self {
        Self { inode: metadata.ino(), seconds: metadata.ctime(), nanoseconds: metadata.ctime_nsec() }
    }
}

impl Born {
    fn of(metadata: &Metadata) -> Self {
        let since = metadata.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let nanoseconds = since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
        Self { inode: metadata.ino(), nanoseconds }
    }
}

impl Note {
    /// A copy is another file, or the same file overwritten. A tool can reset the time of modification, but not the
    /// time of change. A copied folder has an overwritten lock.
    fn is_copied(&self, metadata: &Metadata, lock: Changed) -> bool {
        let (modified, changed) =
            ((metadata.mtime(), metadata.mtime_nsec()), (metadata.ctime(), metadata.ctime_nsec()));
        self.itself != metadata.ino() || modified != changed || self.lock != lock
    }

    fn text(&self) -> String {
        let Self { hold, frame, untrusted_before_ms, itself, database, lock } = self;
        let Changed { inode, seconds, nanoseconds } = lock;
        let Born { inode: database, nanoseconds: born } = database;
        format!(
            "mainspring generation 1\nhold {hold:>32}\nframe {frame:020}\nuntrusted-before {untrusted_before_ms:020}\n\
             file {itself:020}\ndatabase {database:020} {born:020}\nlock {inode:020} {seconds:020} {nanoseconds:09}\n"
        )
    }

    /// Accepts only the output of [`text`](Self::text).
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().skip(1);
        let mut value_of = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let hold = value_of("hold").filter(|hold| hold.len() == 32)?.to_owned();
        let mut number = |name: &str| value_of(name)?.parse::<u64>().ok();
        let (frame, untrusted_before_ms) = (number("frame")?, number("untrusted-before")?);
        let itself = number("file")?;
        let mut database = value_of("database")?.split(' ');
        let database = Born { inode: database.next()?.parse().ok()?, nanoseconds: database.next()?.parse().ok()? };
        let mut lock = value_of("lock")?.split(' ');
        let lock = Changed {
            inode: lock.next()?.parse().ok()?,
            seconds: lock.next()?.parse().ok()?,
            nanoseconds: lock.next()?.parse().ok()?,
        };
        let note = Self { hold, frame, untrusted_before_ms, itself, database, lock };
        (note.text() == text).then_some(note)
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Unnoted => "the folder does not record which store was last used in it",
            Self::Damaged => "the file `generation` of the folder cannot be read",
            Self::Copied => "the folder was copied",
            Self::OtherStore => "another store than this one was used in the folder last",
            Self::OlderCopy => "the store is an older copy of the one that was used in the folder last",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note() -> Note {
        let lock = Changed { inode: 7, seconds: 1_700_000_000, nanoseconds: 5 };
        Note {
            hold: "ab".repeat(16),
            frame: 3,
            untrusted_before_ms: 0,
            itself: 9,
            database: Born { inode: 8, nanoseconds: 1 },
            lock,
        }
    }

    #[test]
    fn a_note_is_read_back_and_every_damage_is_detected() {
        let text = note().text();
        assert_eq!(Note::parse(&text), Some(note()));
        assert!(text.len() < NOTE_BYTES_MAX as usize);
        for end in 0..text.len() {
            assert_eq!(Note::parse(&text[..end]), None, "cut off at {end}");
        }
        for (from, to) in [("generation 1", "generation 2"), ("frame 0", "frame +"), ("hold a", "hold  a")] {
            assert_eq!(Note::parse(&text.replace(from, to)), None, "{from} as {to}");
        }
        assert_eq!(Note::parse(&(text + "x")), None);
    }

    #[test]
    fn every_note_has_the_same_length() {
        let longest = Note {
            frame: u64::MAX,
            untrusted_before_ms: u64::MAX,
            itself: u64::MAX,
            database: Born { inode: u64::MAX, nanoseconds: u64::MAX },
            lock: Changed { inode: u64::MAX, seconds: i64::MAX, nanoseconds: 999_999_999 },
            ..note()
        };
        assert_eq!(longest.text().len(), note().text().len());
        assert_eq!(Note::parse(&longest.text()), Some(longest));
    }
}
