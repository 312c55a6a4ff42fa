//! The asynchronous driver. It passes the outputs of the shard to the store, the executors and the callers, and turns
//! their results into events of the shard. It decides nothing about executions.

mod admitting;
mod aside;
mod failing;
mod files;
mod loading;
mod looking;
mod meters;
mod owning;
mod pace;
mod queue;
mod seeing;
mod sharing;
mod sweeping;
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
    evaluator::{Evaluator, Suspended},
    fair::{Bounds, FairSemaphore, QueueFull},
    home::{Held, Home},
    intake::Charge,
    limits::{COUNTS_AT_A_TIME, EVALUATIONS_AT_A_TIME},
    load::Loader,
    member::{Member, Word, reading, tick},
    shard::{Event, Fate, GivenUp, Moment, Output, Queued, Reply, Shard, Ticket},
    span::Spans,
};
use admitting::Admitting;
use failing::Watchdog;
use looking::{Inbox, Page};
use meters::{Effect, Meters};
use owning::Life;
pub(crate) use owning::Owned;
pub use owning::Trouble;
pub(crate) use queue::{Commands, Received, queue};
pub(crate) use seeing::Watcher;
use sweeping::{Sweep, Swept};

/// Interval at which timers are read from the store, in addition to notifications: recovery is level-triggered.
const LOOK_FOR_TIMERS: Duration = Duration::from_secs(20);

/// Interval at which the inbox is polled, for messages whose wake-up was lost.
const LOOK_FOR_LETTERS: Duration = Duration::from_secs(1);

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
    Letters(Box<Page>),
    /// A notification: these partitions have inbox messages.
    Hint(Vec<u32>),
    /// A receipt for an execution of another node was enqueued, or enqueuing it was abandoned. The attempt is present
    /// if the store lists it as running here.
    PassedOn(ExecutionKey, Option<RemoteAttempt>),
    /// The result of a check that the store still has the files it opened.
    LookedAtFiles(Result<(), StoreError>),
    /// The result of comparing some executions with their journals.
    Swept(Swept),
    /// Organizations whose running executions are to be read from the store.
    Organizations(BTreeSet<String>),
    /// The pause between two reads caused by notifications is over.
    FollowHints,
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
    SetAside(ExecutionKey, Result<Option<String>, StoreError>),
    /// The parents of quarantined executions that were notified.
    ToldParents(aside::ToldParents),
    /// Quarantined executions. `None` if the store does not answer.
    Quarantined(Option<Vec<ExecutionKey>>),
    /// Activates an execution: loads it and continues its work.
    Attend(ExecutionKey),
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

struct Underway {
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

/// The executions of a store that an engine works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// All unfinished executions.
    All,
    /// Executions that are named, submitted here, or receive an inbox message.
    Named(BTreeSet<ExecutionKey>),
}

impl Reach {
    /// Starts with no execution. Executions are added as they are named, submitted or receive a message.
    pub fn named() -> Self {
        Self::Named(BTreeSet::new())
    }

    fn holds(&self, execution: ExecutionKey) -> bool {
        match self {
            Self::All => true,
            Self::Named(named) => named.contains(&execution),
        }
    }

    /// Adds an execution. True if it was not included before.
    fn extend(&mut self, execution: ExecutionKey) -> bool {
        match self {
            Self::All => false,
            Self::Named(named) => named.insert(execution),
        }
    }
}

/// Times of the next polls of the store.
struct Looks {
    letters_at: Instant,
    timers_at: Instant,
}

/// The parts of the driver that callers of the engine use as well.
pub(crate) struct Outside {
    pub(crate) commands: Commands,
    pub(crate) spans: Option<Spans>,
    pub(crate) limits: Option<Arc<dyn Limits>>,
    pub(crate) why_stopped: Arc<Mutex<Option<String>>>,
    pub(crate) owned: Arc<Mutex<Owned>>,
    pub(crate) effects: FairSemaphore<String>,
}

/// A commit for the commit thread: its number, its batch, the pause before it, and the time of submission.
type Flight = (u64, Arc<Batch>, Duration, std::time::Instant);

/// The result of a heartbeat, with the partitions that it released.
type Spoken = (GivenUp, Word);

/// The result of a commit.
type Answered = (u64, Result<Vec<PartOutcome>, CommitError>);

pub(crate) struct Rim {
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
    home: Option<(Home, Held)>,
    reach: Reach,
    /// The node of a shared store. `None` for the only process of a store.
    member: Option<Member>,
    owned: Arc<Mutex<Owned>>,
    giving_up: GivenUp,
    /// Attempts whose receipts were enqueued before the store recorded that they run here.
    ended_early: Vec<RemoteAttempt>,
    life: Arc<Life>,
    /// Receipts that are being enqueued, counted by execution.
    passing_on: BTreeMap<ExecutionKey, usize>,
    /// Results of heartbeats, with the partitions that they released. They do not wait behind commands.
    words: (mpsc::UnboundedSender<Spoken>, mpsc::UnboundedReceiver<Spoken>),
    is_looking_at_files: bool,
    sweep: Sweep,
    speak_at: Option<Instant>,
    trouble: Option<Trouble>,
    commands: Commands,
    commits: std::sync::mpsc::Sender<Flight>,
    /// Results of commits.
    answers: mpsc::UnboundedReceiver<Answered>,
    /// Pause before the next commit, since the last one was not written.
    pause: Duration,
    waiting: BTreeMap<Ticket, Asker>,
    watchers: HashMap<ExecutionKey, Vec<Watcher>>,
    running: BTreeMap<Running, Underway>,
    inbox: Inbox,
    /// Executions whose quarantine is not recorded in the store yet, with the reason.
    setting_aside: BTreeMap<ExecutionKey, String>,
    in_flight: bool,
    unknown_commits: u32,
    draining: bool,
    why_stopped: Arc<Mutex<Option<String>>>,
    over: bool,
    meters: Meters,
    spans: Option<Spans>,
    /// Admission under concurrency limits. `None` if this engine has no limits.
    admitting: Option<Admitting>,
    aside: aside::Aside,
    /// A warning about the store's refusal to write was logged.
    is_stalled: bool,
    /// A warning about failed heartbeats was logged.
    is_unheard: bool,
    /// A warning about the difference to the clock of the store was logged.
    is_clock_apart: bool,
    writing: owning::Writing,
    pace: pace::Pace,
    queued: sharing::Queued,
    deciders: turns::Deciders,
}

impl Rim {
    pub(crate) fn new(
        shard: Shard,
        store: Arc<dyn Store>,
        loader: Arc<Loader>,
        workers: (Executors, Arc<dyn Evaluator>),
        ground: (Option<(Home, Held)>, Option<Member>, Reach),
        outside: Outside,
    ) -> Self {
        let ((home, member, reach), (executors, evaluator)) = (ground, workers);
        let Outside { commands, spans, limits, why_stopped, owned, effects } = outside;
        let meters = Meters::new();
        let (commits, answers) = committer(store.clone(), meters.commits.clone());
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
            home,
            reach,
            speak_at: member.is_some().then(Instant::now),
            member,
            owned,
            giving_up: GivenUp::default(),
            ended_early: Vec::new(),
            life: Arc::default(),
            passing_on: BTreeMap::new(),
            words: mpsc::unbounded_channel(),
            is_looking_at_files: false,
            sweep: Sweep::default(),
            trouble: None,
            commands,
            commits,
            answers,
            pause: Duration::ZERO,
            waiting: BTreeMap::new(),
            watchers: HashMap::new(),
            running: BTreeMap::new(),
            inbox: Inbox::default(),
            setting_aside: BTreeMap::new(),
            in_flight: false,
            unknown_commits: 0,
            draining: false,
            why_stopped,
            over: false,
            meters,
            spans,
            admitting: limits.map(Admitting::new),
            aside: aside::Aside::default(),
            is_stalled: false,
            is_unheard: false,
            is_clock_apart: false,
            writing: owning::Writing::default(),
            pace: pace::Pace::default(),
            queued: sharing::Queued::default(),
            deciders: turns::Deciders::default(),
        }
    }

    /// Runs until the engine is drained or cannot continue.
    pub(crate) async fn run(mut self, mut received: Received) {
        let watchdog = Watchdog::of(&self);
        let bell = self.bell();
        self.listen();
        self.publish();
        self.see_beginning();
        self.want_quarantined();
        let mut looks = Looks { letters_at: Instant::now(), timers_at: Instant::now() };
        let mut commands = Vec::with_capacity(COMMANDS_AT_A_TIME);
        while !self.is_over() {
            let now = self.shard.now(reading());
            let timer = self.shard.next_time().map(|at| Instant::now() + Duration::from_millis(at.saturating_sub(now)));
            let part = self.pace.next(Instant::now(), self.shard.split_tenants()).map(|(_, at)| at);
            let wake = [timer, part].into_iter().flatten().min();
            let pages = self.can_take_messages().then(Instant::now);
            let next = [wake, pages, self.speak_at, Some(looks.letters_at), Some(looks.timers_at)];
            let next = next.into_iter().flatten().min();
            tokio::select! {
                biased;
                count = received.recv_many(&mut commands, COMMANDS_AT_A_TIME) => if count == 0 { break },
                answer = self.answers.recv(), if !self.over => match answer {
                    Some(answer) => self.committed(answer),
                    None => self.stop("the thread that writes has ended; this is a fault of ours".into()),
                },
                Some((given_up, word)) = self.words.1.recv() => self.spoken(&given_up, word),
                () = sleep_until(next) => {}
                () = ring(bell.as_ref()) => self.look_for_letters(),
                () = tokio::task::yield_now(), if self.has_more() => {}
            }
            self.do_what_is_due(wake, &mut looks);
            self.count_commands(&commands, received.len());
            if !commands.is_empty() {
                self.pace.command(Instant::now());
            }
            self.obey_all(&mut commands);
            self.look_for_answer();
            self.take_messages();
            self.carry();
            self.meters.take(self.shard.tally());
        }
        self.see_end();
        if let Some((home, _)) = &self.home {
            let _ = std::fs::remove_file(home.bell());
        }
        self.leave().await;
        watchdog.dismiss();
    }

    /// Runs the work whose time has come, in every iteration of the loop. Under constant load a node would otherwise
    /// send no heartbeat and lose its partitions.
    fn do_what_is_due(&mut self, wake: Option<Instant>, looks: &mut Looks) {
        let now = Instant::now();
        self.keep_alive();
        let began = Instant::now();
        let part = self.pace.next(began, self.shard.split_tenants());
        if let Some((tenant, _)) = part.filter(|(_, at)| *at <= began) {
            let used = pace::thread_time();
            self.shard.put_split_first(tenant);
            self.handle(Event::Wake);
            self.pace.went_on(tenant, (began, Instant::now()), pace::thread_time().saturating_sub(used));
        } else if wake.is_some_and(|at| at <= now) {
            self.handle(Event::Due(Vec::new()));
        }
        if looks.letters_at <= now {
            looks.letters_at = now + LOOK_FOR_LETTERS;
            self.count_memory();
            self.look_for_all_letters();
            self.look_at_files();
            self.sweep();
            self.look_for_queues_of_others();
        }
        if looks.timers_at <= now {
            looks.timers_at = now + LOOK_FOR_TIMERS;
            self.look_for_timers();
            self.look_for_quarantined();
            self.look_at_organizations();
        }
    }

    /// Drops the partitions of an expired lease before the event is handled.
    fn handle(&mut self, event: Event) {
        let reading = reading();
        self.shard.expire(reading);
        self.shard.handle(self.shard.now(reading), event);
    }

    fn obey_one(&mut self, command: Command) {
        self.keep_alive();
        if self.shard.is_shared() || self.shard.gathered() >= WORTH_A_COMMIT {
            self.look_for_answer();
        }
        self.obey(command);
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Event(event) => {
                self.meet_quarantined(&event);
                self.handle(event);
            }
            Command::Ask(..) if self.draining => {}
            Command::Ask(ticket, asker, event) => {
                self.waiting.insert(ticket, asker);
                self.reach.extend(event.execution());
                self.enter(event);
            }
            Command::Attend(execution) => self.attend(execution),
            Command::Watch(execution, watcher) => self.watch(execution, watcher),
            Command::Ended(execution, instance, attempt, outcome) => self.ended(execution, instance, attempt, outcome),
            Command::Evaluate(execution, evaluation, suspended) => self.evaluate(execution, evaluation, *suspended),
            Command::Letters(page) => self.take_page(*page),
            Command::Hint(partitions) => self.hear(&partitions),
            Command::PassedOn(execution, remote) => self.passed_on(execution, remote),
            Command::LookedAtFiles(found) => self.looked_at_files(found),
            Command::Swept(swept) => self.swept(swept),
            Command::Organizations(organizations) => self.want_to_look_at(&organizations),
            Command::FollowHints => self.follow_hints(),
            Command::BoundsChanged(organization) => self.bounds_changed(&organization),
            Command::Found(organization, found) => self.found(&organization, found),
            Command::CountedLive(organization, found) => self.counted_live(&organization, found),
            Command::ToldParents(told) => self.told_parents(told),
            Command::Quarantined(found) => self.found_quarantined(found),
            Command::Pending(sender) => drop(sender.send(self.shard.pending())),
            Command::Due(mut due) => {
                due.retain(|due| self.reach.holds(due.execution));
                self.handle(Event::Due(due));
            }
            Command::DueRead => self.due_read(),
            Command::SetAside(execution, answer) => self.is_set_aside(execution, answer),
            Command::Drain => {
                self.draining = true;
                self.life.leave();
                self.running.values().for_each(|underway| underway.cancel_handle.cancel());
            }
        }
    }

    /// Handles the result of a commit that has arrived, so that the next one is submitted at once.
    fn look_for_answer(&mut self) {
        if let Ok(answer) = self.answers.try_recv() {
            self.committed(answer);
            self.carry();
        }
    }

    fn committed(&mut self, (flight, answer): Answered) {
        self.in_flight = false;
        self.writing.answered(tick(), &answer);
        let doubt = answer.as_ref().err();
        if let Some(error) = doubt {
            self.see_doubt(flight, error);
        }
        self.count_doubt(doubt);
        self.handle(Event::Committed { flight, answer });
    }

    fn attend(&mut self, execution: ExecutionKey) {
        // Messages to an execution outside the scope may have been skipped.
        if self.reach.extend(execution) {
            self.forget_letters();
            self.look_for_letters();
        }
        self.handle(Event::Due(vec![Due { execution, wake_at: 0 }]));
    }

    /// While draining, a stop without a decision is not a receipt: the attempt stays open and counts as interrupted
    /// when the execution resumes.
    fn ended(&mut self, execution: ExecutionKey, instance: Instance, attempt: u32, outcome: Outcome) {
        let name = (execution, instance, attempt);
        if let Some(underway) = self.running.remove(&name) {
            self.see_end_of_attempt(&name, &underway, &outcome);
        }
        let (_, instance, _) = name;
        if self.draining && matches!(outcome, Outcome::Stopped(_)) {
            return;
        }
        let input = Input::Receipt { instance, attempt, outcome };
        self.handle(Event::Take(execution, Queued::silent(input)));
    }

    /// Submits the pending commit and performs the released outputs until none is left. While several organizations share
    /// the driver, a round has a time limit: timers and commands do not wait for all outputs of a large commit.
    fn carry(&mut self) {
        if self.over {
            return;
        }
        self.shard.expire(reading());
        self.shard.flush();
        let began = Instant::now();
        while let Some(output) = self.next_output() {
            self.carry_out(output);
            if self.over || self.has_used_round(began) {
                return;
            }
        }
    }

    /// True if commands or outputs are left from the last round.
    fn has_more(&self) -> bool {
        !self.over && (!self.queued.is_empty() || self.shard.has_outputs())
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Commit { flight, batch } => {
                self.in_flight = true;
                // The commit thread ends only with the driver.
                let _ = self.commits.send((flight, batch, self.pause, std::time::Instant::now()));
            }
            Output::Load(execution, number) => self.load(execution, number),
            Output::Perform { execution, instance, attempt } => self.perform(execution, instance, attempt),
            Output::Stop { execution, instance, attempt } => {
                self.end_running(&(execution, instance, attempt), CancelHandle::cancel);
            }
            Output::Kill { execution, instance, attempt } => {
                self.end_running(&(execution, instance, attempt), CancelHandle::kill);
            }
            Output::Adopt { execution, instance, attempt } => {
                self.adopt_behind_letters(execution, instance, attempt);
            }
            Output::Forget { execution, step, attempt } if self.has_noted_frames() => {
                self.executors.forget(AttemptName { execution, step: &step, number: attempt });
            }
            // The remaining process record of the attempt is cleaned up at the next start.
            Output::Forget { .. } => {}
            Output::Reply(ticket, reply) => {
                self.answered(ticket, reply.is_ok());
                self.waiting.remove(&ticket).map(|asker| asker.sender.send(reply));
            }
            Output::Evaluate { execution, evaluation, suspended } => self.evaluate(execution, evaluation, *suspended),
            Output::LettersPosted(partitions) => self.letters_posted(&partitions),
            Output::LettersWait => {
                self.forget_letters();
                self.look_for_letters();
            }
            Output::Gained(partitions) => self.gained(partitions),
            Output::GivenUp(given_up) => self.given_up(given_up),
            Output::Lost(partitions) if self.member.is_some() => self.lost(&partitions),
            Output::Lost(_) => {
                self.stop("another process has taken over this store's executions".into());
            }
            Output::PassOn(execution, input, remote) => self.pass_on(execution, input, remote),
            Output::StopRemote(attempt) => self.stop_remote(attempt),
            Output::Attend(execution) => {
                // Enqueued, since it may produce outputs of its own.
                let _ = self.commands.send(Command::Attend(execution));
            }
            Output::Tell(moment) => self.tell(&moment),
            Output::Quarantine(execution, why) => self.quarantine(execution, why),
            // A draining node does not wait for a store that fails: another node decides the pending inputs again.
            // The engine of a command ends with the error. A server waits, for free disk space as well.
            Output::Stalled(why) if (self.member.is_some() || self.reach == Reach::All) && !self.draining => {
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
        self.shard.expire(reading());
        self.shard.next_output()
    }

    /// Stops the process after several commits in a row with an unknown outcome. Each is read back and retried, which
    /// would never end on a disk that fails every time.
    fn count_doubt(&mut self, error: Option<&CommitError>) {
        match error {
            Some(CommitError::NotWritten(_) | CommitError::Refused(_) | CommitError::Blocked(_)) => {}
            Some(error @ CommitError::Unknown(_)) if self.member.is_none() => {
                self.unknown_commits += 1;
                if self.unknown_commits >= UNKNOWN_COMMITS_MAX {
                    self.stop(error.to_string());
                }
            }
            _ => {
                self.unknown_commits = 0;
                self.pause = Duration::ZERO;
                self.see_store_write();
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
        let is_quiet = self.running.is_empty() && self.passing_on.is_empty() && self.setting_aside.is_empty();
        self.draining
            && is_quiet
            && (self.over
                || !(self.in_flight || self.shard.has_waiting() || self.shard.has_outputs() || !self.queued.is_empty()))
    }

    fn tell(&mut self, moment: &Arc<Moment>) {
        self.see(moment);
        self.count(moment);
        if let Some(watchers) = self.watchers.get_mut(&moment.execution) {
            watchers.retain(|watcher| watcher.tell(moment));
            if watchers.is_empty() {
                self.watchers.remove(&moment.execution);
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
        self.meters.attempts.begin(effect);
        debug!(%execution, step = attempt.step, attempt = number, effect = attempt.effect, "an attempt has started");
        let underway =
            Underway { cancel_handle, effect, step: step_for_logs(&attempt), began: std::time::Instant::now() };
        self.running.insert((execution, instance.clone(), number), underway);
        let (executors, commands) = (self.executors.clone(), self.commands.clone());
        let tenant = self.shard.tenant(execution).to_owned();
        let at_once = self.effects.try_acquire(tenant.clone());
        if at_once.is_none() {
            self.shard.wait_for_permit(execution, &instance, number);
        }
        let request = at_once.is_none().then(|| self.effects.acquire(tenant));
        tokio::spawn(async move {
            let mut witness =
                failing::Witness { commands, attempt: Some((execution, instance, number)), step: attempt.step.clone() };
            // An attempt that is asked to stop while it waits needs no permit: its executor returns at once.
            let _permit = match request {
                Some(Ok(request)) => tokio::select! {
                    biased;
                    () = stop.requested() => None,
                    permit = request => {
                        witness.tell_beginning();
                        Some(permit)
                    }
                },
                Some(Err(QueueFull)) | None => at_once,
            };
            let outcome = executors.perform(&attempt, stop).await;
            witness.tell(outcome);
        });
    }

    fn adopt(&self, execution: ExecutionKey, instance: Instance, attempt: Attempt) {
        if self.draining {
            return;
        }
        let (executors, commands) = (self.executors.clone(), self.commands.clone());
        let meters = self.meters.attempts.clone();
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
            meters.adopt(adopted);
            let fate = match adopted {
                Adopted::NeverStarted => Fate::NeverStarted,
                Adopted::Interrupted => {
                    info!(%execution, step = attempt.step, attempt = attempt.number, "an attempt was interrupted");
                    Fate::Interrupted
                }
            };
            let attempt = attempt.number;
            let _ = commands.send(Command::Event(Event::Adopted { execution, instance, attempt, fate }));
        });
    }
}

/// Starts the commit thread, so that the shard continues while the disk is busy.
fn committer(
    store: Arc<dyn Store>,
    meters: meters::Commits,
) -> (std::sync::mpsc::Sender<Flight>, mpsc::UnboundedReceiver<Answered>) {
    let (sender, receiver) = std::sync::mpsc::channel::<Flight>();
    let (answers, answered) = mpsc::unbounded_channel();
    let work = move || {
        for (flight, batch, pause, handed_over) in receiver {
            std::thread::sleep(pause);
            let answer = store.commit(&batch);
            seeing::count_commit(&meters, &batch, handed_over);
            // The shard then drops the last reference and frees the memory on the thread that allocated it.
            drop(batch);
            if answers.send((flight, answer)).is_err() {
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

async fn ring(bell: Option<&UnixDatagram>) {
    match bell {
        Some(bell) => drop(bell.recv(&mut [0; 1]).await),
        None => std::future::pending().await,
    }
}
