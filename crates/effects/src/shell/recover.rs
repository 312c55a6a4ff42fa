//! Recovery of attempts of an earlier process: finds and ends the processes that it left running.

use std::{path::Path, time::Duration};

use tokio::task::JoinSet;

use super::{
    process::{self, Stat, boot_id},
    process_group::{Members, blocking},
    process_record::{Found, Mark, ProcessRecord},
};
use crate::Adopted;

/// Ends the remaining processes of an attempt and returns what is known about it.
///
/// A missing record proves that the attempt was never started only if the attempt is of this boot and the store was not
/// restored since (`is_trusted`). A record states its own boot.
///
/// | record | trusted, or of this boot | ended processes | answer |
/// |---|---|---|---|
/// | none | yes | nothing | never started |
/// | none | no | nothing | interrupted |
/// | damaged | either | every process with the mark | interrupted |
/// | there | no | nothing | interrupted |
/// | there | yes | the group, if it is the attempt's | interrupted |
pub(super) async fn adopt(records: &Path, mark: &Mark, is_trusted: bool, grace: Duration) -> Adopted {
    let found = ProcessRecord::read(records, mark);
    let is_of_this_boot = match &found {
        Found::Record(record) => boot_id().map_or(true, |boot| boot == record.boot),
        Found::Nothing | Found::Damaged => true,
    };
    let leftovers = match found {
        Found::Nothing if is_trusted => return Adopted::NeverStarted,
        Found::Nothing => return Adopted::Interrupted,
        Found::Damaged => Some(Members::With(mark.assignment())),
        Found::Record(record) => match boot_id() {
            Ok(boot) if boot != record.boot => None,
            Ok(_) => blocking(move || group_of(&record)).await,
            Err(_) => Some(Members::With(mark.assignment())),
        },
    };
    if let Some(leftovers) = leftovers {
        leftovers.end(grace).await;
    }
    if is_of_this_boot {
        // The kernel ends a container with the process that started it, unless one of its processes hangs.
        Members::With(mark.container()).end(Duration::ZERO).await;
    }
    Adopted::Interrupted
}

/// Ends the processes of all recorded attempts, and removes the records. The caller owns the folder of the records and
/// will not recover all of these attempts itself: another node may resume them.
pub async fn end_leftovers(records: &Path, grace: Duration) {
    let mut ends = JoinSet::new();
    for mark in ProcessRecord::all(records) {
        let records = records.to_owned();
        ends.spawn(async move {
            adopt(&records, &mark, true, grace).await;
            ProcessRecord::forget(&records, &mark);
        });
    }
    while ends.join_next().await.is_some() {}
}

/// Returns the group that a record names, unless its number was reused. The group is the recorded one if its leader has
/// the recorded start time, or if a member carries the attempt's mark: a number stays with a group until its last
/// member has ended.
fn group_of(record: &ProcessRecord) -> Option<Members> {
    let group = Members::OfGroup(record.leader);
    let is_same_leader = || Stat::of(record.leader).is_some_and(|stat| stat.started_ticks == record.started_ticks);
    let assignment = record.mark.assignment();
    let is_marked = || group.sweep().into_iter().any(|pid| process::has_variable(pid, &assignment));
    (is_same_leader() || is_marked()).then_some(group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AttemptName;
    use mainspring_kernel::key::ExecutionKey;
    use rustix::process::Pid;
    use std::{
        fs,
        os::unix::process::CommandExt,
        process::{Child, Command},
    };

    /// A grace period longer than any test, so that SIGTERM alone must suffice.
    const LONG: Duration = Duration::from_secs(3600);

    fn mark(number: u32) -> Mark {
        Mark::of(AttemptName { execution: ExecutionKey([9; 16]), step: "adopt", number })
    }

    /// Starts a process in its own group, with the mark or without.
    fn sleeper(mark: Option<&Mark>) -> Child {
        let mut command = Command::new("sleep");
        command.arg("300").process_group(0).envs(mark.map(|mark| ("MAINSPRING_MARK", mark.text())));
        let child = command.spawn().unwrap();
        // Spawning returns a moment before the child has its own memory. Until then it shows this process's
        // environment.
        let is_ready = |mark: &Mark| process::has_variable(Pid::from_child(&child), &mark.assignment());
        while mark.is_some_and(|mark| !is_ready(mark)) {
            std::thread::yield_now();
        }
        child
    }

    fn record_of(child: &Child, mark: &Mark) -> ProcessRecord {
        let leader = Pid::from_child(child);
        let started_ticks = Stat::of(leader).unwrap().started_ticks;
        ProcessRecord { mark: mark.clone(), leader, started_ticks, boot: boot_id().unwrap() }
    }

    /// Recovers the attempt that a living process is recorded for, and returns whether the process survives.
    async fn survives(number: u32, is_marked: bool, damage: impl FnOnce(&mut ProcessRecord)) -> bool {
        let (folder, mark) = (tempfile::tempdir().unwrap(), mark(number));
        let mut child = sleeper(is_marked.then_some(&mark));
        let mut record = record_of(&child, &mark);
        damage(&mut record);
        record.write(folder.path()).unwrap();
        assert_eq!(adopt(folder.path(), &mark, true, LONG).await, Adopted::Interrupted);
        assert_eq!(
            ProcessRecord::read(folder.path(), &mark),
            Found::Record(record),
            "only forgetting removes a record"
        );
        let survives = child.try_wait().unwrap().is_none();
        let _ = child.kill();
        child.wait().unwrap();
        survives
    }

    #[tokio::test]
    async fn only_recorded_or_marked_processes_are_killed() {
        assert!(!survives(1, false, |_| {}).await, "the leader that was written down");
        assert!(!survives(2, true, |record| record.started_ticks += 1).await, "a marked member of the group");
        assert!(
            survives(3, false, |record| record.started_ticks += 1).await,
            "a process of another user with the same number"
        );
        assert!(survives(4, true, |record| record.boot = "another".into()).await, "a record of another boot");
    }

    #[tokio::test]
    async fn all_recorded_processes_are_killed_and_their_records_deleted() {
        let folder = tempfile::tempdir().unwrap();
        end_leftovers(&folder.path().join("none"), LONG).await;
        let marks = [mark(1), mark(2)];
        let mut children = marks.each_ref().map(|mark| sleeper(Some(mark)));
        for (child, mark) in children.iter().zip(&marks) {
            record_of(child, mark).write(folder.path()).unwrap();
        }
        fs::write(folder.path().join("a unrelated's file"), "").unwrap();
        end_leftovers(folder.path(), LONG).await;
        assert!(children.iter_mut().all(|child| !child.wait().unwrap().success()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn without_a_record_the_boot_decides() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(adopt(folder.path(), &mark(1), true, LONG).await, Adopted::NeverStarted);
        assert_eq!(adopt(folder.path(), &mark(1), false, LONG).await, Adopted::Interrupted);
    }

    #[tokio::test]
    async fn a_damaged_record_kills_by_the_mark_only() {
        let (folder, mark) = (tempfile::tempdir().unwrap(), mark(5));
        let (mut ours, mut unrelated) = (sleeper(Some(&mark)), sleeper(None));
        record_of(&unrelated, &mark).write(folder.path()).unwrap();
        let file = folder.path().join(mark.text());
        fs::write(&file, fs::read_to_string(&file).unwrap() + "x").unwrap();
        assert_eq!(adopt(folder.path(), &mark, true, LONG).await, Adopted::Interrupted);
        assert!(!ours.wait().unwrap().success());
        assert!(unrelated.try_wait().unwrap().is_none());
        unrelated.kill().unwrap();
        unrelated.wait().unwrap();
    }
}
