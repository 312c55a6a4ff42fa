//! What is written down of an attempt before its script starts, so that a later process finds what it left running.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use mainspring_kernel::hash::Hash;
use rustix::process::Pid;

use super::{
    limits::NOTE_BYTES_MAX,
    process::{Stat, boot_id, pid_of},
};
use crate::AttemptName;

/// The variable in which every process of an attempt carries the attempt's mark.
pub(super) const MARK_VARIABLE: &str = "MAINSPRING_MARK";

/// The variable in which the processes that make a container carry the attempt's mark.
pub(super) const CONTAINER_VARIABLE: &str = "MAINSPRING_CONTAINER";

/// One attempt's group of processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Note {
    /// The attempt's mark.
    pub(super) mark: Mark,
    /// The first process, whose number is also its group's.
    pub(super) leader: Pid,
    /// When it started: a number alone may have passed to a stranger.
    pub(super) started_ticks: u64,
    /// In which boot: in another one nothing of it is left.
    pub(super) boot: String,
}

/// What tells one attempt from all others, in file names and environments: step names are long and have brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark(String);

/// What is in the place of a note.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The attempt's script was certainly not started, or the note was forgotten.
    Nothing,
    /// Something that is no note of this attempt, or cannot be read.
    Damaged,
    /// The note.
    Note(Note),
}

/// Sixty-four hexadecimal digits.
const MARK_CHARS: usize = 64;

impl Mark {
    /// The same for the same attempt, always: it must be known when the note is not readable.
    pub(super) fn of(attempt: AttemptName<'_>) -> Self {
        // What has a fixed length comes first, so that no two attempts give the same bytes.
        let number = attempt.number.to_be_bytes();
        Self(Hash::of_parts(&[b"attempt", &attempt.execution.0, &number, attempt.step.as_bytes()]).hex())
    }

    /// As the environment has it.
    pub(super) fn assignment(&self) -> String {
        format!("{MARK_VARIABLE}={}", self.0)
    }

    /// As the environment of a container's first processes has it, which no script inside can change.
    pub(super) fn container(&self) -> String {
        format!("{CONTAINER_VARIABLE}={}", self.0)
    }

    /// Sixty-four hexadecimal digits.
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    fn path_in(&self, notes: &Path) -> PathBuf {
        notes.join(&self.0)
    }

    fn path_of_unfinished_in(&self, notes: &Path) -> PathBuf {
        notes.join(format!("{}.unfinished", self.0))
    }
}

impl Note {
    /// Of a child of ours that has just been started.
    pub(super) fn of(mark: Mark, leader: Pid) -> io::Result<Self> {
        let stat = Stat::of(leader).ok_or_else(|| io::Error::other("/proc does not show a child"))?;
        Ok(Self { mark, leader, started_ticks: stat.started_ticks, boot: boot_id()? })
    }

    /// Writes the note, all of it or nothing. Not synced: a process does not outlive the boot, and within one the file is
    /// there for every other process when this returns.
    pub(super) fn write(&self, notes: &Path) -> io::Result<()> {
        let unfinished = self.mark.path_of_unfinished_in(notes);
        match fs::write(&unfinished, self.text()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(notes)?;
                fs::write(&unfinished, self.text())?;
            }
            written => written?,
        }
        fs::rename(unfinished, self.mark.path_in(notes))
    }

    /// Reads the note of an attempt.
    pub(super) fn read(notes: &Path, mark: &Mark) -> Found {
        let file = match File::open(mark.path_in(notes)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Found::Nothing,
            Err(_) => return Found::Damaged,
        };
        let mut text = String::new();
        match file.take(NOTE_BYTES_MAX as u64).read_to_string(&mut text) {
            Ok(_) => Self::parse(&text, mark).map_or(Found::Damaged, Found::Note),
            Err(_) => Found::Damaged,
        }
    }

    /// The attempts that notes are there for, finished or not, damaged or not.
    pub(super) fn all(notes: &Path) -> Vec<Mark> {
        let files = fs::read_dir(notes).into_iter().flatten().flatten();
        let names = files.filter_map(|file| file.file_name().into_string().ok());
        let is_mark = |name: &String| name.len() == MARK_CHARS && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        names.filter(is_mark).map(Mark).collect()
    }

    /// Removes the note of an attempt. Where that fails the note stays, which costs a look at the next start.
    pub(super) fn forget(notes: &Path, mark: &Mark) {
        let _ = fs::remove_file(mark.path_in(notes));
        let _ = fs::remove_file(mark.path_of_unfinished_in(notes));
    }

    fn text(&self) -> String {
        let Self { mark, leader, started_ticks, boot } = self;
        format!("mark {}\nleader {}\nstarted {started_ticks}\nboot {boot}\n", mark.0, leader.as_raw_pid())
    }

    /// Only what [`text`](Self::text) writes is a note: by anything else nothing is killed.
    fn parse(text: &str, mark: &Mark) -> Option<Self> {
        let mut lines = text.lines();
        let mut value_of = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let note = Self {
            mark: Mark(value_of("mark")?.to_owned()),
            leader: pid_of(value_of("leader")?)?,
            started_ticks: value_of("started")?.parse().ok()?,
            boot: value_of("boot")?.to_owned(),
        };
        (note.mark == *mark && !note.leader.is_init() && note.text() == text).then_some(note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_kernel::key::ExecutionKey;

    fn mark(step: &str, number: u32) -> Mark {
        Mark::of(AttemptName { execution: ExecutionKey([7; 16]), step, number })
    }

    fn note() -> Note {
        let leader = Pid::from_raw(4242).unwrap();
        Note { mark: mark("fetch[3].parse", 1), leader, started_ticks: 99, boot: "b-1".into() }
    }

    #[test]
    fn a_note_is_read_back_and_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let notes = folder.path().join("not/yet/there");
        let note = note();
        assert_eq!(Note::read(&notes, &note.mark), Found::Nothing);
        note.write(&notes).unwrap();
        assert_eq!(Note::read(&notes, &note.mark), Found::Note(note.clone()));
        assert_eq!(Note::read(&notes, &mark("fetch[3].parse", 2)), Found::Nothing);
        assert_eq!(fs::read_dir(&notes).unwrap().count(), 1, "nothing unfinished is left");
        Note::forget(&notes, &note.mark);
        Note::forget(&notes, &note.mark);
        assert_eq!(fs::read_dir(&notes).unwrap().count(), 0);
    }

    #[test]
    fn every_damage_is_seen() {
        let (note, text) = (note(), note().text());
        assert_eq!(Note::parse(&text, &note.mark), Some(note.clone()));
        for end in 0..text.len() {
            assert_eq!(Note::parse(&text[..end], &note.mark), None, "cut off at {end}");
        }
        for (from, to) in
            [("4242", "1"), ("4242", "0"), ("4242", "-4242"), ("4242", "+4242"), ("4242", "04242"), ("99", "x")]
        {
            assert_eq!(Note::parse(&text.replace(from, to), &note.mark), None, "{from} as {to}");
        }
        assert_eq!(Note::parse(&format!("{text}more"), &note.mark), None);
        assert_eq!(Note::parse(&text, &mark("fetch[3].parse", 2)), None, "the note of another attempt");
    }

    #[test]
    fn what_cannot_be_read_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let note = note();
        fs::create_dir(note.mark.path_in(folder.path())).unwrap();
        assert_eq!(Note::read(folder.path(), &note.mark), Found::Damaged);
    }

    #[test]
    fn marks_tell_attempts_apart_and_fit_file_names() {
        let long = "a".repeat(5000);
        let marks = [mark("a", 1), mark("a", 2), mark("a1", 1), mark("a[1]/..", 1), mark(&long, 1)];
        for (index, mark) in marks.iter().enumerate() {
            assert_eq!(mark.text().len(), 64);
            assert!(!marks[..index].contains(mark));
        }
    }
}
