//! The interface of the engine for its callers: open a folder, start, decide, signal, cancel, watch, drain. It
//! contains no logic of executions: a call becomes a command of the driver or a read of the store.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use mainspring_effects::{Executors, LiveProgress, partial::PartialTexts};
use mainspring_kernel::{
    input::Input, instance::Instance, key::ExecutionKey, plan::Decision, state::State, value::Value,
};
use mainspring_store::{AuditEntry, Fence, SealedStore, Store, StoreError, partition_of, sqlite::SqliteStore};
use rustix::process::{Resource, getrlimit};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use crate::{
    admission::partition_of_organization,
    clock::now_ms,
    data_dir::{DataDir, DirLock},
    driver::{Asker, Command, Commands, Driver, DriverHandles, Watcher, queue},
    driver_thread,
    error::EngineError,
    evaluator::Evaluator,
    execution_keys::new_key_where,
    fair::{Bounds, FairSemaphore},
    inbox,
    intake::Intake,
    journal_loader::Loader,
    keys,
    lease::Leases,
    limits::{IDLE_BYTES_MAX, WATCHED_FRAMES_MAX, effects_at_a_time},
    membership::NodeSession,
    node::{NodeEvent, NodeProblem, Ownership},
    options::{ClusterOptions, EngineOptions, EngineResources, EngineScope},
    period_budgets::{EffectiveBudget, PeriodBudgets, merged},
    receipts::{Signer, this_process},
    resource_seals, resume_token,
    shard::{CommittedFrame, Event, Keys, NewExecution, Pending, PendingInput, Reply, Shard, ShardError, Ticket},
    start_request::{StartRequest, row},
};

/// A running engine. Dropping it without [`drain`](Self::drain) equals a crash of the process: nothing durable is lost,
/// and running attempts are interrupted.
pub struct Engine {
    store: Arc<dyn Store>,
    loader: Arc<Loader>,
    key: [u8; 32],
    commands: Commands,
    tickets: AtomicU64,
    driver: Mutex<Option<JoinHandle<()>>>,
    why_stopped: Arc<Mutex<Option<String>>>,
    owned: Arc<Mutex<Ownership>>,
    effects: FairSemaphore<String>,
    intake: Intake,
    budgets: Option<Arc<dyn PeriodBudgets>>,
    partial: PartialTexts,
    executors: Executors,
}

/// The answer to a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartAnswer {
    /// The key of the new or existing execution.
    pub execution: ExecutionKey,
    /// True if an execution with this name or idempotency key existed already.
    pub existed: bool,
    /// True if the start is durable in an inbox but not processed. The owner of the partition then checks its name and
    /// idempotency key.
    pub is_enqueued: bool,
}

impl Engine {
    /// Locks the folder, and starts to work on its unfinished executions in scope. `executors` is called once the
    /// folder is locked.
    pub async fn open(
        options: EngineOptions,
        executors: impl FnOnce(&DataDir, &DirLock) -> Executors,
    ) -> Result<Self, EngineError> {
        let EngineOptions { data_dir, key, scope, evaluator, spans, limits, budgets, seal_note } = options;
        let mut held = data_dir.hold(&key)?;
        let store = SqliteStore::open(&data_dir.journal())?;
        held.begin(&data_dir, &store, now_ms())?;
        let store: Arc<dyn Store> = Arc::new(store);
        let executors = executors(&data_dir, &held);
        let data_dir = Some((data_dir, held));
        let resources = EngineResources { data_dir, sharing: None, spans, limits, budgets, seal_note };
        Self::run(store, key, (executors, evaluator), resources, scope)
    }

    /// Runs an engine on a store, alone or as one of several nodes.
    pub fn run(
        store: Arc<dyn Store>,
        key: [u8; 32],
        workers: (Executors, Arc<dyn Evaluator>),
        resources: EngineResources,
        scope: EngineScope,
    ) -> Result<Self, EngineError> {
        let EngineResources { data_dir, sharing, spans, limits, budgets, seal_note } = resources;
        let loader = Loader::new(store.clone(), key);
        let (leases, member, loader) = match sharing {
            None => (all_of(&*store)?, None, loader),
            Some(ClusterOptions { terms, place }) => {
                keys::check_store(&*store, &key)?;
                (Leases::none(), Some(NodeSession::here(store.clone(), terms, &place)?), loader.among_nodes())
            }
        };
        let node = member.as_ref().map(|member| format!("/{}", member.name())).unwrap_or_default();
        let signer = Signer::new(&key, &format!("{}{node}", this_process()))?;
        resource_seals::seal_store(&store, &key, seal_note.as_ref())?;
        let store = SealedStore::over(store, key);
        let mut salting = [0; 32];
        getrandom::fill(&mut salting).map_err(|error| EngineError::Stopped(error.to_string()))?;
        let mut shard = Shard::new(leases, Keys { sealing: key, salting }, IDLE_BYTES_MAX);
        if spans.is_some() {
            shard.make_spans();
        }
        let owned = Ownership { partitions: shard.partitions(), held: shard.held().collect(), problem: None };
        let loader = Arc::new(loader);
        let (commands, received) = queue();
        let (why_stopped, owned) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(owned)));
        let (to_driver, reasons) = (commands.clone(), why_stopped.clone());
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let effects = FairSemaphore::new(Bounds::of(effects_at_a_time(files)));
        let (to_owned, to_effects) = (owned.clone(), effects.clone());
        let executors = workers.0.clone();
        let handles = DriverHandles {
            commands: to_driver,
            spans,
            limits,
            budgets: budgets.clone(),
            why_stopped: reasons,
            owned: to_owned,
            effects: to_effects,
        };
        let partial = workers.0.partial_texts().clone();
        let driver =
            Driver::new(shard, store.clone(), loader.clone(), workers, (data_dir, member, scope), signer, handles);
        let driver = Mutex::new(Some(driver_thread::run(driver, received)));
        Ok(Self {
            store,
            loader,
            key,
            commands,
            tickets: AtomicU64::new(1),
            driver,
            budgets,
            why_stopped,
            owned,
            effects,
            intake: Intake::default(),
            partial,
            executors,
        })
    }

    /// The progress of the attempts that this process performs, and the texts that their sessions report.
    pub fn live_progress(&self) -> &LiveProgress {
        self.executors.live_progress()
    }

    /// Sets the number of effects performed at a time. Further effects wait, and organizations take turns.
    pub fn limit_effects(&self, at_a_time: usize) {
        self.effects.resize(at_a_time);
    }

    /// Starts an execution. When this returns, it is durable: started here, or enqueued for the owner of its partition.
    pub async fn start(&self, request: StartRequest) -> Result<StartAnswer, EngineError> {
        // The partition of a new key may be lost before the start arrives.
        for _ in 0..3 {
            let Ok(execution) = self.new_key() else { break };
            match self.start_as(execution, request.clone()).await {
                Err(EngineError::NotHere) => {}
                answer => return answer,
            }
        }
        let mut request = request;
        // The owner finds out if it starts, since its idempotency key may be taken in the meantime.
        request.audit.iter_mut().for_each(|entry| entry.action.push_str(".posted"));
        let execution = inbox::enqueue_start(&*self.store, None, request, &self.key)?;
        Ok(StartAnswer { execution, existed: false, is_enqueued: true })
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
    pub fn owned_partitions(&self) -> BTreeSet<u32> {
        self.owned().held
    }

    /// The reason why heartbeats or commits of this node fail, or why it may own no partitions, as with a wrong clock.
    /// The lease expires by itself.
    pub fn problem(&self) -> Option<NodeProblem> {
        self.owned().problem
    }

    /// Starts an execution under a key of [`new_key`](Self::new_key). A caller that watches the key first misses no
    /// frame.
    pub async fn start_as(
        &self,
        execution: ExecutionKey,
        mut request: StartRequest,
    ) -> Result<StartAnswer, EngineError> {
        let now = now_ms();
        let (plan, stored_plans, audit) = (request.plan.clone(), request.stored_plans(), request.take_audit(execution));
        let start = request.start(execution);
        let row = row(execution, &start, &plan, now);
        let new_execution = |ticket| {
            let (start, message, ticket) = (Box::new(start), None, Some(ticket));
            Event::Start(Box::new(NewExecution { execution, plan, stored_plans, start, row, message, ticket, audit }))
        };
        match self.ask(new_execution).await {
            Ok(_) => Ok(StartAnswer { execution, existed: false, is_enqueued: false }),
            Err(EngineError::Exists(execution)) => Ok(StartAnswer { execution, existed: true, is_enqueued: false }),
            Err(error) => Err(error),
        }
    }

    /// Activates an execution of the store, and adds it to the scope.
    pub fn activate(&self, execution: ExecutionKey) {
        let _ = self.commands.send(Command::Node(NodeEvent::Activate(execution)));
    }

    /// Reports that the concurrency limits of an organization have changed.
    pub fn limits_changed(&self, organization: &str) {
        let _ = self.commands.send(Command::Node(NodeEvent::BoundsChanged(organization.to_owned())));
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
        let (message, audit) = (None, audit.map(Box::new));
        self.ask(|ticket| Event::Take(execution, PendingInput { input, message, ticket: Some(ticket), audit })).await
    }

    /// Enqueues an input in the inbox of an execution, with an audit entry, for the owner of its partition. Returns the
    /// id of the message.
    pub fn enqueue(
        &self,
        execution: ExecutionKey,
        input: &Input,
        audit: Option<&AuditEntry>,
    ) -> Result<String, EngineError> {
        inbox::enqueue(&*self.store, None, &self.key, (execution, input), audit)
    }

    /// Subscribes to all later durable frames of an execution. A journal read after this call leaves no gap.
    pub fn watch(&self, execution: ExecutionKey) -> mpsc::UnboundedReceiver<Arc<CommittedFrame>> {
        let (sender, receiver) = mpsc::unbounded_channel();
        // An engine that has stopped drops the sender, which closes the channel.
        let _ = self.commands.send(Command::Watch(execution, Watcher::OfAll(sender)));
        receiver
    }

    /// The same with a bound, for the many watchers of a server. At most [`WATCHED_FRAMES_MAX`] frames wait to be read.
    /// Beyond that the channel closes, and the rest is in the journal. A new call subscribes again.
    pub fn watch_in_time(&self, execution: ExecutionKey) -> mpsc::Receiver<Arc<CommittedFrame>> {
        let (sender, receiver) = mpsc::channel(WATCHED_FRAMES_MAX);
        let _ = self.commands.send(Command::Watch(execution, Watcher::InTime(sender)));
        receiver
    }

    /// The partial texts of the attempts that this process performs. Nothing of them is in a journal.
    pub fn partial_texts(&self) -> &PartialTexts {
        &self.partial
    }

    /// Reads the state of an execution from the store.
    pub fn state(&self, execution: ExecutionKey) -> Result<State, EngineError> {
        let read = self.loader.journal(execution)?.ok_or(EngineError::NoSuchExecution)?;
        Ok(read.journal.state)
    }

    /// Returns the gate that a token opens, if the gate is open and has not expired.
    pub fn gate_of(&self, state: &State, token: &str) -> Result<(Instance, u32), EngineError> {
        let found = resume_token::gate_of(&self.key, state, token);
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

    /// The budgets for a day or a month that apply to an organization or its workflows. An error is a message for people.
    pub fn period_budgets(&self, organization: &str) -> Result<Vec<EffectiveBudget>, String> {
        match &self.budgets {
            Some(budgets) => Ok(merged(budgets.budgets(&*self.store, Some(organization))?.into_iter())),
            None => Ok(Vec::new()),
        }
    }

    /// The reason if the engine has stopped by itself.
    pub fn why_stopped(&self) -> Option<String> {
        self.why_stopped.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// True once [`drain`](Self::drain) was called.
    pub fn is_draining(&self) -> bool {
        self.driver.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Stops running attempts, writes pending results and unlocks the folder. No new work starts.
    pub async fn drain(&self) {
        let _ = self.commands.send(Command::Node(NodeEvent::Drain));
        let driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(driver) = driver {
            let _ = driver.await;
        }
        self.executors.close().await;
    }

    fn owned(&self) -> Ownership {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn ask(&self, event: impl FnOnce(Ticket) -> Event) -> Result<bool, EngineError> {
        let ticket = Ticket(self.tickets.fetch_add(1, Ordering::Relaxed));
        let (sender, receiver) = oneshot::channel::<Reply>();
        let stopped = || EngineError::Stopped(self.why_stopped().unwrap_or_else(|| "it was drained".into()));
        let event = event(ticket);
        let charge = self.intake.admit(event.size()).ok_or(EngineError::Busy)?;
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
