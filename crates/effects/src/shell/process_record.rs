//! Process records: a file for each attempt, written before its script starts, by which a later process finds what it
//! left running.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use mainspring_kernel::hash::Hash;
use rustix::process::Pid;

use super::{
    limits::PROCESS_RECORD_BYTES_MAX,
    process::{Stat, boot_id, pid_of},
};
use crate::AttemptName;

/// The variable in which every process of an attempt carries the attempt's mark.
pub(super) const MARK_VARIABLE: &str = "MAINSPRING_MARK";

/// The variable in which the processes that make a container carry the attempt's mark.
pub(super) const CONTAINER_VARIABLE: &str = "MAINSPRING_CONTAINER";

/// The process group of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessRecord {
    /// The attempt's mark.
    pub(super) mark: Mark,
    /// The first process, whose number is also its group's.
    pub(super) leader: Pid,
    /// Its start time: the number alone may have been reused.
    pub(super) started_ticks: u64,
    /// The boot in which it started. After a reboot none of its processes is left.
    pub(super) boot: String,
}

/// The identity of an attempt in file names and environments, hashed since the names of steps are long and contain
/// brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark(String);

/// The result of reading a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// There is no record: the attempt's script was certainly not started, or the record was removed.
    Nothing,
    /// The file is not a record of this attempt, or cannot be read.
    Damaged,
    Record(ProcessRecord),
}

/// A SHA-256 hash in hexadecimal digits.
const MARK_CHARS: usize = 64;

impl Mark {
    /// Returns the mark of an attempt. It depends only on the attempt, since it is needed where the record is not
    /// readable.
    pub(super) fn of(attempt: AttemptName<'_>) -> Self {
        // Parts of fixed length come first, so that no two attempts give the same bytes.
        let number = attempt.number.to_be_bytes();
        Self(Hash::of_parts(&[b"attempt", &attempt.execution.0, &number, attempt.step.as_bytes()]).hex())
    }

    /// Returns the mark of a container that belongs to no attempt. It is like no other of this boot: `owner` is this process
    /// with its start time.
    pub(super) fn of_program((owner, started_ticks): (Pid, u64), number: u64) -> Self {
        let owner = owner.as_raw_pid().to_be_bytes();
        Self(Hash::of_parts(&[b"program", &owner, &started_ticks.to_be_bytes(), &number.to_be_bytes()]).hex())
    }

    /// Returns the assignment in the environment of the attempt's processes.
    pub(super) fn assignment(&self) -> String {
        format!("{MARK_VARIABLE}={}", self.0)
    }

    /// Returns the assignment in the environment of a container's outer processes, which no script inside can change.
    pub(super) fn container(&self) -> String {
        format!("{CONTAINER_VARIABLE}={}", self.0)
    }

    /// Sixty-four hexadecimal digits.
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    fn path_in(&self, records: &Path) -> PathBuf {
        records.join(&self.0)
    }

    fn path_of_unfinished_in(&self, records: &Path) -> PathBuf {
        records.join(format!("{}.unfinished", self.0))
    }
}

impl ProcessRecord {
    /// Makes the record of a child that was just started.
    pub(super) fn of(mark: Mark, leader: Pid) -> io::Result<Self> {
        let stat = Stat::of(leader).ok_or_else(|| io::Error::other("/proc does not show a child"))?;
        Ok(Self { mark, leader, started_ticks: stat.started_ticks, boot: boot_id()? })
    }

    /// Writes the record atomically. It is not synced: no process outlives the boot, and within one boot every other
    /// process sees the file as soon as this returns.
    pub(super) fn write(&self, records: &Path) -> io::Result<()> {
        let unfinished = self.mark.path_of_unfinished_in(records);
        match fs::write(&unfinished, self.text()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(records)?;
                fs::write(&unfinished, self.text())?;
            }
            written => written?,
        }
        fs::rename(unfinished, self.mark.path_in(records))
    }

    pub(super) fn read(records: &Path, mark: &Mark) -> Found {
        let file = match File::open(mark.path_in(records)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Found::Nothing,
            Err(_) => return Found::Damaged,
        };
        let mut text = String::new();
        match file.take(PROCESS_RECORD_BYTES_MAX as u64).read_to_string(&mut text) {
            Ok(_) => Self::parse(&text, mark).map_or(Found::Damaged, Found::Record),
            Err(_) => Found::Damaged,
        }
    }

    /// Lists the attempts with a complete record, whether readable or damaged.
    pub(super) fn all(records: &Path) -> Vec<Mark> {
        let files = fs::read_dir(records).into_iter().flatten().flatten();
        let names = files.filter_map(|file| file.file_name().into_string().ok());
        let is_mark = |name: &String| name.len() == MARK_CHARS && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        names.filter(is_mark).map(Mark).collect()
    }

    /// Removes the record of an attempt. On failure it stays, which costs one recovery at the next start.
    pub(super) fn forget(records: &Path, mark: &Mark) {
        let _ = fs::remove_file(mark.path_in(records));
        let _ = fs::remove_file(mark.path_of_unfinished_in(records));
    }

    fn text(&self) -> String {
        let Self { mark, leader, started_ticks, boot } = self;
        format!("mark {}\nleader {}\nstarted {started_ticks}\nboot {boot}\n", mark.0, leader.as_raw_pid())
    }

    /// Accepts only the output of [`text`](Self::text), since a process is killed on the word of a record.
    fn parse(text: &str, mark: &Mark) -> Option<Self> {
        let mut lines = text.lines();
        let mut value_of = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let record = Self {
            mark: Mark(value_of("mark")?.to_owned()),
            leader: pid_of(value_of("leader")?)?,
            started_ticks: value_of("started")?.parse().ok()?,
            boot: value_of("boot")?.to_owned(),
        };
        (record.mark == *mark && !record.leader.is_init() && record.text() == text).then_some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_kernel::key::ExecutionKey;

    fn mark(step: &str, number: u32) -> Mark {
        Mark::of(AttemptName { execution: ExecutionKey([7; 16]), step, number })
    }

    fn record() -> ProcessRecord {
        let leader = Pid::from_raw(4242).unwrap();
        ProcessRecord { mark: mark("fetch[3].parse", 1), leader, started_ticks: 99, boot: "b-1".into() }
    }

    #[test]
    fn a_record_is_read_back_and_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let records = folder.path().join("not/yet/there");
        let record = record();
        assert_eq!(ProcessRecord::read(&records, &record.mark), Found::Nothing);
        record.write(&records).unwrap();
        assert_eq!(ProcessRecord::read(&records, &record.mark), Found::Record(record.clone()));
        assert_eq!(ProcessRecord::read(&records, &mark("fetch[3].parse", 2)), Found::Nothing);
        assert_eq!(fs::read_dir(&records).unwrap().count(), 1, "nothing unfinished is left");
        ProcessRecord::forget(&records, &record.mark);
        ProcessRecord::forget(&records, &record.mark);
        assert_eq!(fs::read_dir(&records).unwrap().count(), 0);
    }

    #[test]
    fn every_damage_is_detected() {
        let (record, text) = (record(), record().text());
        assert_eq!(ProcessRecord::parse(&text, &record.mark), Some(record.clone()));
        for end in 0..text.len() {
            assert_eq!(ProcessRecord::parse(&text[..end], &record.mark), None, "cut off at {end}");
        }
        for (from, to) in
            [("4242", "1"), ("4242", "0"), ("4242", "-4242"), ("4242", "+4242"), ("4242", "04242"), ("99", "x")]
        {
            assert_eq!(ProcessRecord::parse(&text.replace(from, to), &record.mark), None, "{from} as {to}");
        }
        assert_eq!(ProcessRecord::parse(&format!("{text}more"), &record.mark), None);
        assert_eq!(ProcessRecord::parse(&text, &mark("fetch[3].parse", 2)), None, "the record of another attempt");
    }

    #[test]
    fn unreadable_records_are_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let record = record();
        fs::create_dir(record.mark.path_in(folder.path())).unwrap();
        assert_eq!(ProcessRecord::read(folder.path(), &record.mark), Found::Damaged);
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
