//! The asynchronous driver. It passes the outputs of the shard to the store, the executors and the callers, and turns
//! their results into events of the shard. It decides nothing about executions.

mod admission;
mod command_turns;
mod failures;
mod files;
mod inbox;
mod loading;
mod metrics;
mod ownership;
mod pace;
mod quarantine;
mod queue;
mod sweeping;
mod telemetry;
mod turns;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use mainspring_effects::{Adopted, AttemptName, CancelHandle, Executors};
use mainspring_kernel::{
    effect::{Attempt, Outcome},
    input::Input,
    instance::Instance,
    key::ExecutionKey,
};
use mainspring_store::{Batch, CommitError, Due, PartOutcome, RemoteAttempt, Store, StoreError};
use tokio::{
    net::UnixDatagram,
    sync::{Semaphore, mpsc, oneshot},
    time::Instant,
};
use tracing::{debug, error, info};

use crate::{
    admission::{Found, Limits},
    clock::{monotonic_now, read_clocks},
    data_dir::{DataDir, DirLock},
    evaluator::{Evaluator, Suspended},
    fair::{Bounds, FairSemaphore, QueueFull},
    intake::Charge,
    journal_loader::Loader,
    limits::{COUNTS_AT_A_TIME, EVALUATIONS_AT_A_TIME},
    membership::{Heartbeat, NodeSession},
    options::EngineScope,
    shard::{AttemptRecovery, CommittedFrame, Event, Handoff, Output, PendingInput, Reply, Shard, Ticket},
    trace_spans::Spans,
};
use admission::AdmissionDriver;
use failures::Watchdog;
use inbox::{Inbox, Page};
use metrics::{Effect, Metrics};
use ownership::NodeLiveness;
pub use ownership::NodeProblem;
pub(crate) use ownership::Ownership;
pub(crate) use queue::{Commands, Received, queue};
use sweeping::{Sweep, Swept};
pub(crate) use telemetry::Watcher;

/// Interval at which timers are read from the store, in addition to notifications: recovery is level-triggered.
const TIMER_POLL_INTERVAL: Duration = Duration::from_secs(20);

/// Interval at which the inbox is polled, for messages whose wake-up was lost.
const INBOX_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Commands handled before the outputs of the shard are performed. It bounds the size of a commit.
const COMMANDS_AT_A_TIME: usize = 1024;

/// With this many executions waiting for a commit, the result of the last commit is handled before the remaining
/// commands. Below it, one larger commit costs less than two.
const WORTH_A_COMMIT: usize = 512;

/// Bounds of the pause before a commit is retried at a shared store that does not write.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(1_000);

/// Commits in a row with an unknown outcome before this process stops.
const UNKNOWN_COMMITS_MAX: u32 = 3;

/// Input of the driver.
pub(crate) enum Command {
    Event(Event),
    /// An event for the shard whose reply a caller waits for.
    Ask(Ticket, Asker, Event),
    /// Subscribes to the durable frames of an execution.
    Watch(ExecutionKey, Watcher),
    /// An attempt has finished.
    Ended(ExecutionKey, Instance, u32, Outcome),
    /// A turn that was decided outside the driver and needs evaluations.
    Evaluate(ExecutionKey, u64, Box<Suspended>),
    /// A page of inbox messages.
    InboxPage(Box<Page>),
    /// A notification: these partitions have inbox messages.
    Notified(Vec<u32>),
    /// A receipt for an execution of another node was enqueued, or enqueuing it was abandoned. The attempt is present
    /// if the store lists it as running here.
    PassedOn(ExecutionKey, Option<RemoteAttempt>),
    /// The result of a check that the store still has the files it opened.
    FilesChecked(Result<(), StoreError>),
    /// The result of comparing some executions with their journals.
    Swept(Swept),
    /// Organizations whose running executions are to be read from the store.
    Organizations(BTreeSet<String>),
    /// The pause between two reads caused by notifications is over.
    FollowNotifications,
    /// The limits of an organization have changed.
    BoundsChanged(String),
    /// The running and queued executions of an organization.
    Found(String, Found),
    /// The bound of an organization's unfinished executions and their present count. `None` if the store does not
    /// answer.
    CountedLive(String, Option<(u32, u64)>),
    /// Executions whose wake-up time is close.
    Due(Vec<Due>),
    /// The read of due executions is complete.
    DueRead,
    /// The store has recorded a quarantine, with the organization that the execution counted for, or has not answered.
    QuarantineRecorded(ExecutionKey, Result<Option<String>, StoreError>),
    /// The parents of quarantined executions that were notified.
    NotifiedParents(quarantine::NotifiedParents),
    /// Quarantined executions. `None` if the store does not answer.
    Quarantined(Option<Vec<ExecutionKey>>),
    /// Activates an execution: loads it and continues its work.
    Activate(ExecutionKey),
    /// Requests the executions in memory and those with a timer.
    Pending(oneshot::Sender<Pending>),
    /// Stops all attempts and ends the driver.
    Drain,
}

/// A caller that waits for a reply, with its share of the bound of pending requests.
pub(crate) struct Asker {
    pub(crate) sender: oneshot::Sender<Reply>,
    pub(crate) _charge: Charge,
}

type Running = (ExecutionKey, Instance, u32);

struct RunningAttempt {
    cancel_handle: CancelHandle,
    effect: Effect,
    step: String,
    began: std::time::Instant,
}

/// The open work of an engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pending {
    /// Active executions in memory: they have an open attempt, a load or a commit in progress.
    pub live: Vec<ExecutionKey>,
    /// Executions with a timer of any kind.
    pub timed: Vec<ExecutionKey>,
}

/// Times of the next polls of the store.
struct PollSchedule {
    inbox_at: Instant,
    timers_at: Instant,
}

/// The parts of the driver that callers of the engine use as well.
pub(crate) struct DriverHandles {
    pub(crate) commands: Commands,
    pub(crate) spans: Option<Spans>,
    pub(crate) limits: Option<Arc<dyn Limits>>,
    pub(crate) why_stopped: Arc<Mutex<Option<String>>>,
    pub(crate) owned: Arc<Mutex<Ownership>>,
    pub(crate) effects: FairSemaphore<String>,
}

/// A commit for the commit thread: its number, its batch, the pause before it, and the time of submission.
type InFlightCommit = (u64, Arc<Batch>, Duration, std::time::Instant);

/// The result of a heartbeat, with the partitions that it released.
type HeartbeatResult = (Handoff, Heartbeat);

/// The result of a commit.
type Answered = (u64, Result<Vec<PartOutcome>, CommitError>);

pub(crate) struct Driver {
    shard: Shard,
    store: Arc<dyn Store>,
    loader: Arc<Loader>,
    loads: loading::Loads,
    /// Permits for counts and reads of organizations. They do not wait behind loads, which may be many and long.
    counting: Arc<Semaphore>,
    evaluations: FairSemaphore<String>,
    effects: FairSemaphore<String>,
    executors: Executors,
    evaluator: Arc<dyn Evaluator>,
    data_dir: Option<(DataDir, DirLock)>,
    scope: EngineScope,
    /// The node of a shared store. `None` for the only process of a store.
    session: Option<NodeSession>,
    owned: Arc<Mutex<Ownership>>,
    pending_handoff: Handoff,
    /// Attempts whose receipts were enqueued before the store recorded that they run here.
    ended_early: Vec<RemoteAttempt>,
    liveness: Arc<NodeLiveness>,
    /// Receipts that are being enqueued, counted by execution.
    passing_on: BTreeMap<ExecutionKey, usize>,
    /// Results of heartbeats, with the partitions that they released. They do not wait behind commands.
    heartbeats: (mpsc::UnboundedSender<HeartbeatResult>, mpsc::UnboundedReceiver<HeartbeatResult>),
    is_checking_files: bool,
    sweep: Sweep,
    heartbeat_at: Option<Instant>,
    problem: Option<NodeProblem>,
    commands: Commands,
    commits: std::sync::mpsc::Sender<InFlightCommit>,
    /// Results of commits.
    answers: mpsc::UnboundedReceiver<Answered>,
    /// Pause before the next commit, since the last one was not written.
    pause: Duration,
    waiting: BTreeMap<Ticket, Asker>,
    watchers: HashMap<ExecutionKey, Vec<Watcher>>,
    running: BTreeMap<Running, RunningAttempt>,
    inbox: Inbox,
    /// Executions whose quarantine is not recorded in the store yet, with the reason.
    pending_quarantines: BTreeMap<ExecutionKey, String>,
    in_flight: bool,
    unknown_commits: u32,
    draining: bool,
    why_stopped: Arc<Mutex<Option<String>>>,
    over: bool,
    metrics: Metrics,
    spans: Option<Spans>,
    /// Admission under concurrency limits. `None` if this engine has no limits.
    admission: Option<AdmissionDriver>,
    aside: quarantine::Aside,
    /// A warning about the store's refusal to write was logged.
    is_stalled: bool,
    /// A warning about failed heartbeats was logged.
    is_store_unreachable: bool,
    /// A warning about the difference to the clock of the store was logged.
    is_clock_skewed: bool,
    writing: ownership::Writing,
    pace: pace::Pace,
    queued: command_turns::PendingInput,
    deciders: turns::Deciders,
}

impl Driver {
    pub(crate) fn new(
        shard: Shard,
        store: Arc<dyn Store>,
        loader: Arc<Loader>,
        workers: (Executors, Arc<dyn Evaluator>),
        resources: (Option<(DataDir, DirLock)>, Option<NodeSession>, EngineScope),
        handles: DriverHandles,
    ) -> Self {
        let ((data_dir, session, scope), (executors, evaluator)) = (resources, workers);
        let DriverHandles { commands, spans, limits, why_stopped, owned, effects } = handles;
        let metrics = Metrics::new();
        let (commits, answers) = committer(store.clone(), metrics.commits.clone());
        Self {
            shard,
            store,
            loader,
            loads: loading::Loads::default(),
            counting: Arc::new(Semaphore::new(COUNTS_AT_A_TIME)),
            evaluations: FairSemaphore::new(Bounds::of(EVALUATIONS_AT_A_TIME)),
            effects,
            executors,
            evaluator,
            data_dir,
            scope,
            heartbeat_at: session.is_some().then(Instant::now),
            session,
            owned,
            pending_handoff: Handoff::default(),
            ended_early: Vec::new(),
            liveness: Arc::default(),
            passing_on: BTreeMap::new(),
            heartbeats: mpsc::unbounded_channel(),
            is_checking_files: false,
            sweep: Sweep::default(),
            problem: None,
            commands,
            commits,
            answers,
            pause: Duration::ZERO,
            waiting: BTreeMap::new(),
            watchers: HashMap::new(),
            running: BTreeMap::new(),
            inbox: Inbox::default(),
            pending_quarantines: BTreeMap::new(),
            in_flight: false,
            unknown_commits: 0,
            draining: false,
            why_stopped,
            over: false,
            metrics,
            spans,
            admission: limits.map(AdmissionDriver::new),
            aside: quarantine::Aside::default(),
            is_stalled: false,
            is_store_unreachable: false,
            is_clock_skewed: false,
            writing: ownership::Writing::default(),
            pace: pace::Pace::default(),
            queued: command_turns::PendingInput::default(),
            deciders: turns::Deciders::default(),
        }
    }

    /// Runs until the engine is drained or cannot continue.
    pub(crate) async fn run(mut self, mut received: Received) {
        let watchdog = Watchdog::of(&self);
        let wakeup_socket = self.wakeup_socket();
        self.subscribe();
        self.publish();
        self.log_start();
        self.want_quarantined();
        let mut schedule = PollSchedule { inbox_at: Instant::now(), timers_at: Instant::now() };
        let mut commands = Vec::with_capacity(COMMANDS_AT_A_TIME);
        while !self.is_over() {
            let now = self.shard.now(read_clocks());
            let timer = self.shard.next_time().map(|at| Instant::now() + Duration::from_millis(at.saturating_sub(now)));
            let part = self.pace.next(Instant::now(), self.shard.split_tenants()).map(|(_, at)| at);
            let wake = [timer, part].into_iter().flatten().min();
            let pages = self.can_take_messages().then(Instant::now);
            let next = [wake, pages, self.heartbeat_at, Some(schedule.inbox_at), Some(schedule.timers_at)];
            let next = next.into_iter().flatten().min();
            tokio::select! {
                biased;
                count = received.recv_many(&mut commands, COMMANDS_AT_A_TIME) => if count == 0 { break },
                answer = self.answers.recv(), if !self.over => match answer {
                    Some(answer) => self.committed(answer),
                    None => self.stop("the thread that writes has ended; this is a fault of ours".into()),
                },
                Some((handoff, word)) = self.heartbeats.1.recv() => self.on_heartbeat(&handoff, word),
                () = sleep_until(next) => {}
                () = woken(wakeup_socket.as_ref()) => self.poll_inbox(),
                () = tokio::task::yield_now(), if self.has_more() => {}
            }
            self.run_due_work(wake, &mut schedule);
            self.count_commands(&commands, received.len());
            if !commands.is_empty() {
                self.pace.command(Instant::now());
            }
            self.handle_commands(&mut commands);
            self.receive_commit_answer();
            self.take_messages();
            self.run_outputs();
            self.metrics.take(self.shard.counters());
        }
        self.log_stop();
        if let Some((data_dir, _)) = &self.data_dir {
            let _ = std::fs::remove_file(data_dir.wakeup_socket());
        }
        self.leave().await;
        watchdog.dismiss();
    }

    /// Runs the work whose time has come, in every iteration of the loop. Under constant load a node would otherwise
    /// send no heartbeat and lose its partitions.
    fn run_due_work(&mut self, wake: Option<Instant>, schedule: &mut PollSchedule) {
        let now = Instant::now();
        self.keep_alive();
        let began = Instant::now();
        let part = self.pace.next(began, self.shard.split_tenants());
        if let Some((tenant, _)) = part.filter(|(_, at)| *at <= began) {
            let used = pace::thread_time();
            self.shard.put_split_first(tenant);
            self.handle(Event::Wake);
            self.pace.record_part(tenant, (began, Instant::now()), pace::thread_time().saturating_sub(used));
        } else if wake.is_some_and(|at| at <= now) {
            self.handle(Event::Due(Vec::new()));
        }
        if schedule.inbox_at <= now {
            schedule.inbox_at = now + INBOX_POLL_INTERVAL;
            self.count_memory();
            self.rescan_inbox();
            self.check_files();
            self.sweep();
            self.search_queues_of_others();
        }
        if schedule.timers_at <= now {
            schedule.timers_at = now + TIMER_POLL_INTERVAL;
            self.poll_timers();
            self.read_quarantined();
            self.refresh_organizations();
        }
    }

    /// Drops the partitions of an expired lease before the event is handled.
    fn handle(&mut self, event: Event) {
        let reading = read_clocks();
        self.shard.expire(reading);
        self.shard.handle(self.shard.now(reading), event);
    }

    fn handle_one_command(&mut self, command: Command) {
        self.keep_alive();
        if self.shard.is_shared() || self.shard.gathered() >= WORTH_A_COMMIT {
            self.receive_commit_answer();
        }
        self.handle_command(command);
    }

    fn handle_command(&mut self, command: Command) {
        match command {
            Command::Event(event) => {
                self.meet_quarantined(&event);
                self.handle(event);
            }
            Command::Ask(..) if self.draining => {}
            Command::Ask(ticket, asker, event) => {
                self.waiting.insert(ticket, asker);
                self.scope.extend(event.execution());
                self.enter(event);
            }
            Command::Activate(execution) => self.activate(execution),
            Command::Watch(execution, watcher) => self.watch(execution, watcher),
            Command::Ended(execution, instance, attempt, outcome) => self.ended(execution, instance, attempt, outcome),
            Command::Evaluate(execution, evaluation, suspended) => self.evaluate(execution, evaluation, *suspended),
            Command::InboxPage(page) => self.take_page(*page),
            Command::Notified(partitions) => self.on_notified(&partitions),
            Command::PassedOn(execution, remote) => self.passed_on(execution, remote),
            Command::FilesChecked(found) => self.files_checked(found),
            Command::Swept(swept) => self.swept(swept),
            Command::Organizations(organizations) => self.want_reads_of(&organizations),
            Command::FollowNotifications => self.follow_notifications(),
            Command::BoundsChanged(organization) => self.bounds_changed(&organization),
            Command::Found(organization, found) => self.found(&organization, found),
            Command::CountedLive(organization, found) => self.counted_live(&organization, found),
            Command::NotifiedParents(notified) => self.parents_notified(notified),
            Command::Quarantined(found) => self.found_quarantined(found),
            Command::Pending(sender) => drop(sender.send(self.shard.pending())),
            Command::Due(mut due) => {
                due.retain(|due| self.scope.contains(due.execution));
                self.handle(Event::Due(due));
            }
            Command::DueRead => self.due_read(),
            Command::QuarantineRecorded(execution, answer) => self.on_quarantine_recorded(execution, answer),
            Command::Drain => {
                self.draining = true;
                self.liveness.leave();
                self.running.values().for_each(|underway| underway.cancel_handle.cancel());
            }
        }
    }

    /// Handles the result of a commit that has arrived, so that the next one is submitted at once.
    fn receive_commit_answer(&mut self) {
        if let Ok(answer) = self.answers.try_recv() {
            self.committed(answer);
            self.run_outputs();
        }
    }

    fn committed(&mut self, (commit_id, answer): Answered) {
        self.in_flight = false;
        self.writing.answered(monotonic_now(), &answer);
        let doubt = answer.as_ref().err();
        if let Some(error) = doubt {
            self.log_commit_error(commit_id, error);
        }
        self.count_doubt(doubt);
        self.handle(Event::Committed { commit_id, answer });
    }

    fn activate(&mut self, execution: ExecutionKey) {
        // Messages to an execution outside the scope may have been skipped.
        if self.scope.extend(execution) {
            self.reset_inbox_cursor();
            self.poll_inbox();
        }
        self.handle(Event::Due(vec![Due { execution, wake_at: 0 }]));
    }

    /// While draining, a stop without a decision is not a receipt: the attempt stays open and counts as interrupted
    /// when the execution resumes.
    fn ended(&mut self, execution: ExecutionKey, instance: Instance, attempt: u32, outcome: Outcome) {
        let name = (execution, instance, attempt);
        if let Some(underway) = self.running.remove(&name) {
            self.record_attempt_end(&name, &underway, &outcome);
        }
        let (_, instance, _) = name;
        if self.draining && matches!(outcome, Outcome::Stopped(_)) {
            return;
        }
        let input = Input::Receipt { instance, attempt, outcome };
        self.handle(Event::Take(execution, PendingInput::without_reply(input)));
    }

    /// Submits the pending commit and performs the released outputs until none is left. While several organizations share
    /// the driver, a round has a time limit: timers and commands do not wait for all outputs of a large commit.
    fn run_outputs(&mut self) {
        if self.over {
            return;
        }
        self.shard.expire(read_clocks());
        self.shard.flush();
        let began = Instant::now();
        while let Some(output) = self.next_output() {
            self.run_output(output);
            if self.over || self.has_used_round(began) {
                return;
            }
        }
    }

    /// True if commands or outputs are left from the last round.
    fn has_more(&self) -> bool {
        !self.over && (!self.queued.is_empty() || self.shard.has_outputs())
    }

    fn run_output(&mut self, output: Output) {
        match output {
            Output::Commit { commit_id, batch } => {
                self.in_flight = true;
                // The commit thread ends only with the driver.
                let _ = self.commits.send((commit_id, batch, self.pause, std::time::Instant::now()));
            }
            Output::Load(execution, number) => self.load(execution, number),
            Output::Perform { execution, instance, attempt } => self.perform(execution, instance, attempt),
            Output::Stop { execution, instance, attempt } => {
                self.end_running(&(execution, instance, attempt), CancelHandle::cancel);
            }
            Output::Kill { execution, instance, attempt } => {
                self.end_running(&(execution, instance, attempt), CancelHandle::kill);
            }
            Output::Reconcile { execution, instance, attempt } => {
                self.reconcile_behind_inbox(execution, instance, attempt);
            }
            Output::Forget { execution, step, attempt } if self.has_recorded_frames() => {
                self.executors.forget(AttemptName { execution, step: &step, number: attempt });
            }
            // The remaining process record of the attempt is cleaned up at the next start.
            Output::Forget { .. } => {}
            Output::Reply(ticket, reply) => {
                self.answered(ticket, reply.is_ok());
                self.waiting.remove(&ticket).map(|asker| asker.sender.send(reply));
            }
            Output::Evaluate { execution, evaluation, suspended } => self.evaluate(execution, evaluation, *suspended),
            Output::MessagesEnqueued(partitions) => self.on_messages_enqueued(&partitions),
            Output::RescanInbox => {
                self.reset_inbox_cursor();
                self.poll_inbox();
            }
            Output::Acquired(partitions) => self.acquired(partitions),
            Output::Handoff(handoff) => self.handoff(handoff),
            Output::Lost(partitions) if self.session.is_some() => self.lost(&partitions),
            Output::Lost(_) => {
                self.stop("another process has taken over this store's executions".into());
            }
            Output::PassOn(execution, input, remote) => self.pass_on(execution, input, remote),
            Output::StopRemote(attempt) => self.stop_remote(attempt),
            Output::Activate(execution) => {
                // Enqueued, since it may produce outputs of its own.
                let _ = self.commands.send(Command::Activate(execution));
            }
            Output::Notify(frame) => self.notify(&frame),
            Output::Quarantine(execution, why) => self.quarantine(execution, why),
            // A draining node does not wait for a store that fails: another node decides the pending inputs again.
            // The engine of a command ends with the error. A server waits, for free disk space as well.
            Output::Stalled(why) if (self.session.is_some() || self.scope == EngineScope::All) && !self.draining => {
                self.pause = (self.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
                self.stalled(why);
            }
            Output::Stalled(why) | Output::Fatal(why) => self.stop(why),
        }
    }

    /// Does nothing if the attempt no longer runs here.
    fn end_running(&self, name: &Running, end: fn(&CancelHandle)) {
        self.running.get(name).into_iter().for_each(|underway| end(&underway.cancel_handle));
    }

    /// Checks the lease first, so that no output is performed or shown after it has expired, however long this process
    /// was paused.
    fn next_output(&mut self) -> Option<Output> {
        self.shard.expire(read_clocks());
        self.shard.next_output()
    }

    /// Stops the process after several commits in a row with an unknown outcome. Each is read back and retried, which
    /// would never end on a disk that fails every time.
    fn count_doubt(&mut self, error: Option<&CommitError>) {
        match error {
            Some(CommitError::NotWritten(_) | CommitError::Refused(_) | CommitError::Blocked(_)) => {}
            Some(error @ CommitError::Unknown(_)) if self.session.is_none() => {
                self.unknown_commits += 1;
                if self.unknown_commits >= UNKNOWN_COMMITS_MAX {
                    self.stop(error.to_string());
                }
            }
            _ => {
                self.unknown_commits = 0;
                self.pause = Duration::ZERO;
                self.log_store_recovered();
            }
        }
    }

    fn stop(&mut self, why: String) {
        error!(why, "the engine cannot continue");
        self.why_stopped.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
        self.waiting.clear();
        self.watchers.clear();
        self.draining = true;
        self.over = true;
        self.running.values().for_each(|underway| underway.cancel_handle.cancel());
    }

    /// Running attempts are awaited even after the store has failed, so that no process outlives the engine.
    fn is_over(&self) -> bool {
        let is_quiet = self.running.is_empty() && self.passing_on.is_empty() && self.pending_quarantines.is_empty();
        self.draining
            && is_quiet
            && (self.over
                || !(self.in_flight || self.shard.has_waiting() || self.shard.has_outputs() || !self.queued.is_empty()))
    }

    fn notify(&mut self, frame: &Arc<CommittedFrame>) {
        self.record_frame(frame);
        self.count(frame);
        if let Some(watchers) = self.watchers.get_mut(&frame.execution) {
            watchers.retain(|watcher| watcher.notify(frame));
            if watchers.is_empty() {
                self.watchers.remove(&frame.execution);
            }
        }
    }

    fn perform(&mut self, execution: ExecutionKey, instance: Instance, attempt: Attempt) {
        if self.draining {
            return;
        }
        let (cancel_handle, mut stop) = CancelHandle::pair();
        let number = attempt.number;
        let effect = Effect::of(&attempt.effect);
        self.metrics.attempts.begin(effect);
        debug!(%execution, step = attempt.step, attempt = number, effect = attempt.effect, "an attempt has started");
        let underway =
            RunningAttempt { cancel_handle, effect, step: step_for_logs(&attempt), began: std::time::Instant::now() };
        self.running.insert((execution, instance.clone(), number), underway);
        let (executors, commands) = (self.executors.clone(), self.commands.clone());
        let tenant = self.shard.tenant(execution).to_owned();
        let at_once = self.effects.try_acquire(tenant.clone());
        if at_once.is_none() {
            self.shard.wait_for_permit(execution, &instance, number);
        }
        let request = at_once.is_none().then(|| self.effects.acquire(tenant));
        tokio::spawn(async move {
            let mut guard = failures::OutcomeGuard {
                commands,
                attempt: Some((execution, instance, number)),
                step: attempt.step.clone(),
            };
            // An attempt that is asked to stop while it waits needs no permit: its executor returns at once.
            let _permit = match request {
                Some(Ok(request)) => tokio::select! {
                    biased;
                    () = stop.requested() => None,
                    permit = request => {
                        guard.report_start();
                        Some(permit)
                    }
                },
                Some(Err(QueueFull)) | None => at_once,
            };
            let outcome = executors.perform(&attempt, stop).await;
            guard.notify(outcome);
        });
    }

    fn reconcile(&self, execution: ExecutionKey, instance: Instance, attempt: Attempt) {
        if self.draining {
            return;
        }
        let (executors, commands) = (self.executors.clone(), self.commands.clone());
        let metrics = self.metrics.attempts.clone();
        tokio::spawn(async move {
            let asked = attempt.clone();
            // If the executor panics, it is unknown if the attempt ever started.
            let adopted = tokio::spawn(async move { executors.adopt(&asked).await }).await;
            let adopted = match adopted {
                Ok(adopted) => adopted,
                Err(error) if error.is_panic() => Adopted::Interrupted,
                // The runtime is shutting down.
                Err(_) => return,
            };
            metrics.recovered(adopted);
            let recovery = match adopted {
                Adopted::NeverStarted => AttemptRecovery::NeverStarted,
                Adopted::Interrupted => {
                    info!(%execution, step = attempt.step, attempt = attempt.number, "an attempt was interrupted");
                    AttemptRecovery::Interrupted
                }
            };
            let attempt = attempt.number;
            let _ = commands.send(Command::Event(Event::AttemptRecovered { execution, instance, attempt, recovery }));
        });
    }
}

/// Starts the commit thread, so that the shard continues while the disk is busy.
fn committer(
    store: Arc<dyn Store>,
    metrics: metrics::Commits,
) -> (std::sync::mpsc::Sender<InFlightCommit>, mpsc::UnboundedReceiver<Answered>) {
    let (sender, receiver) = std::sync::mpsc::channel::<InFlightCommit>();
    let (answers, answered) = mpsc::unbounded_channel();
    let work = move || {
        for (commit_id, batch, pause, handed_over) in receiver {
            std::thread::sleep(pause);
            let answer = store.commit(&batch);
            telemetry::count_commit(&metrics, &batch, handed_over);
            // The shard then drops the last reference and frees the memory on the thread that allocated it.
            drop(batch);
            if answers.send((commit_id, answer)).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("commit".into()).spawn(work).expect("a process can start a thread");
    (sender, answered)
}

/// Returns the name of the step, or an empty string if no log line will contain it.
fn step_for_logs(attempt: &Attempt) -> String {
    if tracing::enabled!(tracing::Level::DEBUG) { attempt.step.clone() } else { String::new() }
}

async fn sleep_until(wake: Option<Instant>) {
    match wake {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

async fn woken(wakeup_socket: Option<&UnixDatagram>) {
    match wakeup_socket {
        Some(wakeup_socket) => drop(wakeup_socket.recv(&mut [0; 1]).await),
        None => std::future::pending().await,
    }
}
