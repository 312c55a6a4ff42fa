//! The engine as its callers see it: open a folder, submit, decide, signal, cancel, watch, drain.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use mainspring_effects::Executors;
use mainspring_kernel::{
    input::Input, instance::Instance, key::ExecutionKey, plan::Decision, state::State, value::Value,
};
use mainspring_store::{AuditEntry, Fence, Store, StoreError, partition_of, sqlite::SqliteStore};
use rustix::process::{Resource, getrlimit};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use crate::{
    admission::{Limits, partition_of_organization},
    error::EngineError,
    evaluator::Evaluator,
    fair::{Bounds, FairSemaphore},
    home::{Held, Home},
    inbox,
    intake::Intake,
    keys,
    lease::{Leases, Terms},
    limits::{IDLE_BYTES_MAX, WATCHED_FRAMES_MAX, effects_at_a_time},
    load::Loader,
    member::Member,
    naming::new_key_where,
    request::{Request, row},
    rim::{Asker, Command, Commands, Outside, Owned, Pending, Reach, Rim, Trouble, Watcher, queue},
    shard::{Event, Keys, Moment, Queued, Reply, Shard, ShardError, Submission, Ticket},
    span::Spans,
    token,
};

/// How an engine is opened.
pub struct Options {
    /// The folder.
    pub home: Home,
    /// The installation's key; see [`keys`](crate::keys).
    pub key: [u8; 32],
    /// Which of the folder's executions to work on.
    pub reach: Reach,
    /// Who runs functions and checks schemas.
    pub evaluator: Arc<dyn Evaluator>,
    /// Who writes traces, if anybody does.
    pub spans: Option<Spans>,
    /// Who knows how much of organisations may run at a time; `None` if everything begins at once.
    pub limits: Option<Arc<dyn Limits>>,
}

/// An engine that runs. Dropping it without [`drain`](Self::drain) is like the process's death: nothing is lost, and
/// what was running is interrupted.
pub struct Engine {
    store: Arc<dyn Store>,
    loader: Arc<Loader>,
    key: [u8; 32],
    commands: Commands,
    tickets: AtomicU64,
    rim: Mutex<Option<JoinHandle<()>>>,
    why_stopped: Arc<Mutex<Option<String>>>,
    owned: Arc<Mutex<Owned>>,
    effects: FairSemaphore<String>,
    intake: Intake,
}

/// What an engine stands on beside its store.
#[derive(Default)]
pub struct Ground {
    /// The folder that it holds, with the proof.
    pub home: Option<(Home, Held)>,
    /// How it shares the store with other nodes; `None` if nobody else uses it.
    pub sharing: Option<Sharing>,
    /// Who writes traces, if anybody does.
    pub spans: Option<Spans>,
    /// Who knows how much of organisations may run at a time; `None` if everything begins at once.
    pub limits: Option<Arc<dyn Limits>>,
}

/// How a node shares a store.
#[derive(Debug, Clone)]
pub struct Sharing {
    /// How long its word holds.
    pub terms: Terms,
    /// Where it runs, for people.
    pub place: String,
}

/// The answer to a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Submitted {
    /// The execution.
    pub execution: ExecutionKey,
    /// Whether it was there already, by its name or its idempotency key.
    pub existed: bool,
    /// Whether it is not begun yet: its start is durable in the inbox of whoever comes to hold it, who finds out whether
    /// its name or its idempotency key is another's by then.
    pub is_posted: bool,
}

impl Engine {
    /// Takes the folder and begins to work on what is in reach and not finished. `executors` is asked for once the folder
    /// is held.
    pub async fn open(
        options: Options,
        executors: impl FnOnce(&Home, &Held) -> Executors,
    ) -> Result<Self, EngineError> {
        let Options { home, key, reach, evaluator, spans, limits } = options;
        let mut held = home.hold(&key)?;
        let store = SqliteStore::open(&home.journal())?;
        held.begin(&home, &store, now_ms())?;
        let store: Arc<dyn Store> = Arc::new(store);
        let executors = executors(&home, &held);
        let ground = Ground { home: Some((home, held)), sharing: None, spans, limits };
        Self::run(store, key, (executors, evaluator), ground, reach)
    }

    /// An engine on a store: one that nobody else uses, or one that it shares.
    pub fn run(
        store: Arc<dyn Store>,
        key: [u8; 32],
        workers: (Executors, Arc<dyn Evaluator>),
        ground: Ground,
        reach: Reach,
    ) -> Result<Self, EngineError> {
        let Ground { home, sharing, spans, limits } = ground;
        let loader = Loader::new(store.clone(), key);
        let (leases, member, loader) = match sharing {
            None => (all_of(&*store)?, None, loader),
            Some(Sharing { terms, place }) => {
                keys::check_store(&*store, &key)?;
                (Leases::none(), Some(Member::here(store.clone(), terms, &place)?), loader.among_nodes())
            }
        };
        inbox::seal_older(&store, &key, inbox::Unsealed::OfThisUpgrade)?;
        let mut salting = [0; 32];
        getrandom::fill(&mut salting).map_err(|error| EngineError::Stopped(error.to_string()))?;
        let mut shard = Shard::new(leases, Keys { sealing: key, salting }, IDLE_BYTES_MAX);
        if spans.is_some() {
            shard.make_spans();
        }
        let owned = Owned { partitions: shard.partitions(), held: shard.held().collect(), trouble: None };
        let loader = Arc::new(loader);
        let (commands, received) = queue();
        let (why_stopped, owned) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(owned)));
        let (to_rim, reasons) = (commands.clone(), why_stopped.clone());
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let effects = FairSemaphore::new(Bounds::of(effects_at_a_time(files)));
        let (to_owned, to_effects) = (owned.clone(), effects.clone());
        let outside =
            Outside { commands: to_rim, spans, limits, why_stopped: reasons, owned: to_owned, effects: to_effects };
        let rim = Rim::new(shard, store.clone(), loader.clone(), workers, (home, member, reach), outside);
        let rim = Mutex::new(Some(tokio::spawn(rim.run(received))));
        Ok(Self {
            store,
            loader,
            key,
            commands,
            tickets: AtomicU64::new(1),
            rim,
            why_stopped,
            owned,
            effects,
            intake: Intake::default(),
        })
    }

    /// Changes how many effects are performed at a time. The others wait, in turns by organization.
    pub fn limit_effects(&self, at_a_time: usize) {
        self.effects.resize(at_a_time);
    }

    /// Starts an execution. When this returns, it is durable: begun here, or handed to whoever comes to hold it.
    pub async fn submit(&self, request: Request) -> Result<Submitted, EngineError> {
        // What is held may be lost between looking and asking.
        for _ in 0..3 {
            let Ok(execution) = self.new_key() else { break };
            match self.submit_as(execution, request.clone()).await {
                Err(EngineError::NotHere) => {}
                answer => return answer,
            }
        }
        let mut request = request;
        // Whether it begins is found out by whoever takes it: another may have begun under its key by then.
        request.audit.iter_mut().for_each(|entry| entry.action.push_str(".posted"));
        let execution = inbox::post_start(&*self.store, None, request, &self.key)?;
        Ok(Submitted { execution, existed: false, is_posted: true })
    }

    /// A fresh key of an execution that will be this node's; [`EngineError::NotHere`] while it holds nothing.
    pub fn new_key(&self) -> Result<ExecutionKey, EngineError> {
        let owned = self.owned();
        if owned.held.is_empty() {
            return Err(EngineError::NotHere);
        }
        new_key_where(|key| owned.held.contains(&partition_of(key, owned.partitions)))
    }

    /// The partitions that this node holds.
    pub fn held(&self) -> BTreeSet<u32> {
        self.owned().held
    }

    /// The reason why the store does not hear this node or does not write, or why this node may hold nothing, as its clock
    /// is wrong. What is held runs out by itself.
    pub fn trouble(&self) -> Option<Trouble> {
        self.owned().trouble
    }

    /// Starts an execution under a fresh key of [`new_key`](Self::new_key): a caller that watches the key before misses
    /// nothing.
    pub async fn submit_as(&self, execution: ExecutionKey, mut request: Request) -> Result<Submitted, EngineError> {
        let now = now_ms();
        let (plan, stored_plans, audit) = (request.plan.clone(), request.stored_plans(), request.take_audit(execution));
        let start = request.start(execution);
        let row = row(execution, &start, &plan, now);
        let submission = |ticket| {
            let (start, letter, ticket) = (Box::new(start), None, Some(ticket));
            Event::Submit(Box::new(Submission { execution, plan, stored_plans, start, row, letter, ticket, audit }))
        };
        match self.ask(submission).await {
            Ok(_) => Ok(Submitted { execution, existed: false, is_posted: false }),
            Err(EngineError::Exists(execution)) => Ok(Submitted { execution, existed: true, is_posted: false }),
            Err(error) => Err(error),
        }
    }

    /// Goes on with an execution that is in the store, whatever the reach.
    pub fn attend(&self, execution: ExecutionKey) {
        let _ = self.commands.send(Command::Attend(execution));
    }

    /// How much of an organisation may run at a time has changed.
    pub fn limits_changed(&self, organization: &str) {
        let _ = self.commands.send(Command::BoundsChanged(organization.to_owned()));
        let partition = partition_of_organization(organization, self.owned().partitions);
        self.store.hint(&[partition]);
    }

    /// What the engine has before it; nothing once it has stopped.
    pub async fn pending(&self) -> Pending {
        let (sender, receiver) = oneshot::channel();
        let _ = self.commands.send(Command::Pending(sender));
        receiver.await.unwrap_or_default()
    }

    /// Decides at a gate. False if that gate does not take this decision (any more).
    pub async fn decide(
        &self,
        execution: ExecutionKey,
        instance: Instance,
        gate: u32,
        decision: Decision,
        by: &str,
        reason: Value,
    ) -> Result<bool, EngineError> {
        let by = by.to_string();
        self.take(execution, Input::Decide { instance, gate, decision, by, reason }, None).await
    }

    /// Sends a named message. False if one of this identity has come before, or nobody can take it any more.
    pub async fn signal(
        &self,
        execution: ExecutionKey,
        id: String,
        name: String,
        payload: Value,
    ) -> Result<bool, EngineError> {
        self.take(execution, Input::Signal { id, name, payload }, None).await
    }

    /// Asks an execution to end. False if it is ending already.
    pub async fn cancel(&self, execution: ExecutionKey, reason: &str, by: &str) -> Result<bool, EngineError> {
        self.take(execution, Input::Cancel { reason: reason.into(), by: by.into() }, None).await
    }

    /// An input as [`decide`](Self::decide), [`signal`](Self::signal) and [`cancel`](Self::cancel) make it, with what the
    /// audit log says of it if it changes anything: that is durable with the change.
    pub async fn take(
        &self,
        execution: ExecutionKey,
        input: Input,
        audit: Option<AuditEntry>,
    ) -> Result<bool, EngineError> {
        let (letter, audit) = (None, audit.map(Box::new));
        self.ask(|ticket| Event::Take(execution, Queued { input, letter, ticket: Some(ticket), audit })).await
    }

    /// Puts an input into the inbox of an execution, for whoever holds it, with what the audit log says of that. The answer
    /// is the letter's id.
    pub fn post(
        &self,
        execution: ExecutionKey,
        input: &Input,
        audit: Option<&AuditEntry>,
    ) -> Result<String, EngineError> {
        inbox::post(&*self.store, None, &self.key, (execution, input), audit)
    }

    /// Every durable frame of an execution from now on. Read the journal after this to miss none.
    pub fn watch(&self, execution: ExecutionKey) -> mpsc::UnboundedReceiver<Arc<Moment>> {
        let (sender, receiver) = mpsc::unbounded_channel();
        // An engine that has stopped drops the sender, and the watcher's channel closes.
        let _ = self.commands.send(Command::Watch(execution, Watcher::OfAll(sender)));
        receiver
    }

    /// The same for one of many watchers of a server. At most [`WATCHED_FRAMES_MAX`] frames wait to be read: beyond that the
    /// channel closes behind them, and the rest is in the journal. Watch again to hear of what follows.
    pub fn watch_in_time(&self, execution: ExecutionKey) -> mpsc::Receiver<Arc<Moment>> {
        let (sender, receiver) = mpsc::channel(WATCHED_FRAMES_MAX);
        let _ = self.commands.send(Command::Watch(execution, Watcher::InTime(sender)));
        receiver
    }

    /// An execution's state as the store has it.
    pub fn state(&self, execution: ExecutionKey) -> Result<State, EngineError> {
        let read = self.loader.journal(execution)?.ok_or(EngineError::NoSuchExecution)?;
        Ok(read.journal.state)
    }

    /// The gate that a token opens, if it is open and its time is not over.
    pub fn gate_of(&self, state: &State, token: &str) -> Result<(Instance, u32), EngineError> {
        let found = token::gate_of(&self.key, state, token);
        let (instance, gate) =
            found.ok_or_else(|| EngineError::NoOpenGate("the token opens no gate that waits".into()))?;
        if now_ms() >= gate.expires_at {
            return Err(EngineError::NoOpenGate("the token has expired".into()));
        }
        Ok((instance.clone(), gate.number))
    }

    /// The key that tokens and seals are made with.
    pub fn key(&self) -> &[u8; 32] {
        &self.key
    }

    /// What reads journals.
    pub fn loader(&self) -> &Loader {
        &self.loader
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Why the engine has stopped, if it has by itself.
    pub fn why_stopped(&self) -> Option<String> {
        self.why_stopped.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it was drained, or is on its way to it.
    pub fn is_draining(&self) -> bool {
        self.rim.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Ends what runs, writes what has come and gives the folder back. Nothing new is begun.
    pub async fn drain(&self) {
        let _ = self.commands.send(Command::Drain);
        let rim = self.rim.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(rim) = rim {
            let _ = rim.await;
        }
    }

    fn owned(&self) -> Owned {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn ask(&self, event: impl FnOnce(Ticket) -> Event) -> Result<bool, EngineError> {
        let ticket = Ticket(self.tickets.fetch_add(1, Ordering::Relaxed));
        let (sender, receiver) = oneshot::channel::<Reply>();
        let stopped = || EngineError::Stopped(self.why_stopped().unwrap_or_else(|| "it was drained".into()));
        let event = event(ticket);
        let charge = self.intake.admit(&event).ok_or(EngineError::Busy)?;
        self.commands.send(Command::Ask(ticket, Asker { sender, _charge: charge }, event)).map_err(|_| stopped())?;
        match receiver.await.map_err(|_| stopped())? {
            Ok(taken) => Ok(taken.changed),
            Err(ShardError::NoSuchExecution) => Err(EngineError::NoSuchExecution),
            Err(ShardError::Quarantined(why)) => Err(EngineError::Quarantined(why)),
            Err(ShardError::Exists(key)) => Err(EngineError::Exists(key)),
            Err(ShardError::NotHere) => Err(EngineError::NotHere),
            Err(ShardError::Store(why)) => Err(EngineError::Stopped(why)),
            Err(ShardError::TooMany(most)) => Err(EngineError::TooMany(most)),
        }
    }
}

/// All partitions of a store that nobody else uses.
fn all_of(store: &dyn Store) -> Result<Leases, EngineError> {
    let (partitions, holder) = (store.partitions()?, format!("process {}", std::process::id()));
    let claim = |partition| Ok(Fence { partition, epoch: store.claim(partition, &holder)? });
    let fences: Vec<Fence> = (0..partitions).map(claim).collect::<Result<_, StoreError>>()?;
    Ok(Leases::alone(partitions, fences))
}

/// Milliseconds since 1970 by this machine's clock.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
