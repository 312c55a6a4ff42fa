//! The interface of the engine for its callers: open a folder, submit, decide, signal, cancel, watch, drain. It
//! contains no logic of executions: a call becomes a command of the driver or a read of the store.

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

/// Options of an engine that opens a folder.
pub struct Options {
    /// The data folder.
    pub home: Home,
    /// The installation's key; see [`keys`](crate::keys).
    pub key: [u8; 32],
    /// The executions of the folder to work on.
    pub reach: Reach,
    /// Runs functions and checks schemas.
    pub evaluator: Arc<dyn Evaluator>,
    /// Receives the spans for traces. `None` without tracing.
    pub spans: Option<Spans>,
    /// Provides the concurrency limits of organizations. `None` if every execution starts at once.
    pub limits: Option<Arc<dyn Limits>>,
}

/// A running engine. Dropping it without [`drain`](Self::drain) equals a crash of the process: nothing durable is lost,
/// and running attempts are interrupted.
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

/// Resources of an engine beside its store.
#[derive(Default)]
pub struct Ground {
    /// The data folder and the lock on it.
    pub home: Option<(Home, Held)>,
    /// Membership in a cluster of nodes. `None` if no other process uses the store.
    pub sharing: Option<Sharing>,
    /// Receives the spans for traces. `None` without tracing.
    pub spans: Option<Spans>,
    /// Provides the concurrency limits of organizations. `None` if every execution starts at once.
    pub limits: Option<Arc<dyn Limits>>,
}

/// Options of a node in a cluster that shares a store.
#[derive(Debug, Clone)]
pub struct Sharing {
    /// Timing of the lease.
    pub terms: Terms,
    /// The location of the node, as shown to people.
    pub place: String,
}

/// The answer to a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Submitted {
    /// The key of the new or existing execution.
    pub execution: ExecutionKey,
    /// True if an execution with this name or idempotency key existed already.
    pub existed: bool,
    /// True if the start is durable in an inbox but not processed. The owner of the partition then checks its name and
    /// idempotency key.
    pub is_posted: bool,
}

impl Engine {
    /// Locks the folder, and starts to work on its unfinished executions in scope. `executors` is called once the
    /// folder is locked.
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

    /// Runs an engine on a store, alone or as one of several nodes.
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

    /// Sets the number of effects performed at a time. Further effects wait, and organizations take turns.
    pub fn limit_effects(&self, at_a_time: usize) {
        self.effects.resize(at_a_time);
    }

    /// Starts an execution. When this returns, it is durable: started here, or enqueued for the owner of its partition.
    pub async fn submit(&self, request: Request) -> Result<Submitted, EngineError> {
        // The partition of a new key may be lost before the start reaches it.
        for _ in 0..3 {
            let Ok(execution) = self.new_key() else { break };
            match self.submit_as(execution, request.clone()).await {
                Err(EngineError::NotHere) => {}
                answer => return answer,
            }
        }
        let mut request = request;
        // The owner finds out if it starts, since its idempotency key may be taken in the meantime.
        request.audit.iter_mut().for_each(|entry| entry.action.push_str(".posted"));
        let execution = inbox::post_start(&*self.store, None, request, &self.key)?;
        Ok(Submitted { execution, existed: false, is_posted: true })
    }

    /// Returns a new execution key in a partition of this node, or [`EngineError::NotHere`] while the node owns none.
    pub fn new_key(&self) -> Result<ExecutionKey, EngineError> {
        let owned = self.owned();
        if owned.held.is_empty() {
            return Err(EngineError::NotHere);
        }
        new_key_where(|key| owned.held.contains(&partition_of(key, owned.partitions)))
    }

    /// The partitions that this node owns.
    pub fn held(&self) -> BTreeSet<u32> {
        self.owned().held
    }

    /// The reason why heartbeats or commits of this node fail, or why it may own no partitions, as with a wrong clock.
    /// The lease expires by itself.
    pub fn trouble(&self) -> Option<Trouble> {
        self.owned().trouble
    }

    /// Starts an execution under a key of [`new_key`](Self::new_key). A caller that watches the key first misses no
    /// frame.
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

    /// Activates an execution of the store, and adds it to the scope.
    pub fn attend(&self, execution: ExecutionKey) {
        let _ = self.commands.send(Command::Attend(execution));
    }

    /// Reports that the concurrency limits of an organization have changed.
    pub fn limits_changed(&self, organization: &str) {
        let _ = self.commands.send(Command::BoundsChanged(organization.to_owned()));
        let partition = partition_of_organization(organization, self.owned().partitions);
        self.store.notify(&[partition]);
    }

    /// Returns the open work of the engine. It is empty once the engine has stopped.
    pub async fn pending(&self) -> Pending {
        let (sender, receiver) = oneshot::channel();
        let _ = self.commands.send(Command::Pending(sender));
        receiver.await.unwrap_or_default()
    }

    /// Decides at a gate. False if the gate no longer accepts this decision.
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

    /// Sends a signal. False if one with this identity was received before, or if the execution can no longer receive
    /// it.
    pub async fn signal(
        &self,
        execution: ExecutionKey,
        id: String,
        name: String,
        payload: Value,
    ) -> Result<bool, EngineError> {
        self.take(execution, Input::Signal { id, name, payload }, None).await
    }

    /// Cancels an execution. False if it is ending already.
    pub async fn cancel(&self, execution: ExecutionKey, reason: &str, by: &str) -> Result<bool, EngineError> {
        self.take(execution, Input::Cancel { reason: reason.into(), by: by.into() }, None).await
    }

    /// Processes an input, as [`decide`](Self::decide), [`signal`](Self::signal) and [`cancel`](Self::cancel) do. The
    /// audit entry is durable with the change, if the input changes anything.
    pub async fn take(
        &self,
        execution: ExecutionKey,
        input: Input,
        audit: Option<AuditEntry>,
    ) -> Result<bool, EngineError> {
        let (letter, audit) = (None, audit.map(Box::new));
        self.ask(|ticket| Event::Take(execution, Queued { input, letter, ticket: Some(ticket), audit })).await
    }

    /// Enqueues an input in the inbox of an execution, with an audit entry, for the owner of its partition. Returns the
    /// id of the message.
    pub fn post(
        &self,
        execution: ExecutionKey,
        input: &Input,
        audit: Option<&AuditEntry>,
    ) -> Result<String, EngineError> {
        inbox::post(&*self.store, None, &self.key, (execution, input), audit)
    }

    /// Subscribes to all later durable frames of an execution. A journal read after this call leaves no gap.
    pub fn watch(&self, execution: ExecutionKey) -> mpsc::UnboundedReceiver<Arc<Moment>> {
        let (sender, receiver) = mpsc::unbounded_channel();
        // An engine that has stopped drops the sender, which closes the channel.
        let _ = self.commands.send(Command::Watch(execution, Watcher::OfAll(sender)));
        receiver
    }

    /// The same with a bound, for the many watchers of a server. At most [`WATCHED_FRAMES_MAX`] frames wait to be read.
    /// Beyond that the channel closes, and the rest is in the journal. A new call subscribes again.
    pub fn watch_in_time(&self, execution: ExecutionKey) -> mpsc::Receiver<Arc<Moment>> {
        let (sender, receiver) = mpsc::channel(WATCHED_FRAMES_MAX);
        let _ = self.commands.send(Command::Watch(execution, Watcher::InTime(sender)));
        receiver
    }

    /// Reads the state of an execution from the store.
    pub fn state(&self, execution: ExecutionKey) -> Result<State, EngineError> {
        let read = self.loader.journal(execution)?.ok_or(EngineError::NoSuchExecution)?;
        Ok(read.journal.state)
    }

    /// Returns the gate that a token opens, if the gate is open and has not expired.
    pub fn gate_of(&self, state: &State, token: &str) -> Result<(Instance, u32), EngineError> {
        let found = token::gate_of(&self.key, state, token);
        let (instance, gate) =
            found.ok_or_else(|| EngineError::NoOpenGate("the token opens no gate that waits".into()))?;
        if now_ms() >= gate.expires_at {
            return Err(EngineError::NoOpenGate("the token has expired".into()));
        }
        Ok((instance.clone(), gate.number))
    }

    /// The installation's key, for tokens and seals.
    pub fn key(&self) -> &[u8; 32] {
        &self.key
    }

    /// The reader of journals.
    pub fn loader(&self) -> &Loader {
        &self.loader
    }

    /// The store of the engine.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The reason if the engine has stopped by itself.
    pub fn why_stopped(&self) -> Option<String> {
        self.why_stopped.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// True once [`drain`](Self::drain) was called.
    pub fn is_draining(&self) -> bool {
        self.rim.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Stops running attempts, writes pending results and unlocks the folder. No new work starts.
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

/// Claims all partitions of a store that no other process uses.
fn all_of(store: &dyn Store) -> Result<Leases, EngineError> {
    let (partitions, holder) = (store.partitions()?, format!("process {}", std::process::id()));
    let claim = |partition| Ok(Fence { partition, epoch: store.claim(partition, &holder)? });
    let fences: Vec<Fence> = (0..partitions).map(claim).collect::<Result<_, StoreError>>()?;
    Ok(Leases::alone(partitions, fences))
}

/// The wall clock of this machine, in milliseconds since 1970.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
