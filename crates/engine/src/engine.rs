//! The engine as its callers see it: open a folder, submit, decide, signal, cancel, watch, drain.

use std::{
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
use mainspring_store::{Fence, Store, sqlite::SqliteStore};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use crate::{
    error::EngineError,
    evaluator::Evaluator,
    home::{Held, Home},
    load::Loader,
    request::{PARTITION, Request, row},
    rim::{Command, Pending, Reach, Rim},
    shard::{Event, Keys, Moment, Queued, Reply, Shard, ShardError, Submission, Ticket},
    token,
};

/// Room in memory for executions that wait for something: bytes of their journals, of which a state takes a few times
/// as much.
const RESTING_BYTES_MAX: usize = 64 * 1024 * 1024;

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
}

/// An engine that runs. Dropping it without [`drain`](Self::drain) is like the process's death: nothing is lost, and
/// what was running is interrupted.
pub struct Engine {
    store: Arc<dyn Store>,
    loader: Arc<Loader>,
    key: [u8; 32],
    commands: mpsc::UnboundedSender<Command>,
    tickets: AtomicU64,
    rim: Mutex<Option<JoinHandle<()>>>,
    why_stopped: Arc<Mutex<Option<String>>>,
}

/// The answer to a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Submitted {
    /// The execution.
    pub execution: ExecutionKey,
    /// Whether it was there already, by its name or its idempotency key.
    pub existed: bool,
}

impl Engine {
    /// Takes the folder and begins to work on what is in reach and not finished. `executors` is asked for once the folder
    /// is held.
    pub async fn open(
        options: Options,
        executors: impl FnOnce(&Home, &Held) -> Executors,
    ) -> Result<Self, EngineError> {
        let Options { home, key, reach, evaluator } = options;
        let held = home.hold(&key)?;
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&home.journal())?);
        let executors = executors(&home, &held);
        Self::run(store, key, (executors, evaluator), Some((home, held)), reach)
    }

    /// An engine on a store that nobody else uses.
    pub fn run(
        store: Arc<dyn Store>,
        key: [u8; 32],
        workers: (Executors, Arc<dyn Evaluator>),
        home: Option<(Home, Held)>,
        reach: Reach,
    ) -> Result<Self, EngineError> {
        let epoch = store.claim(PARTITION, &format!("process {}", std::process::id()))?;
        let mut salting = [0; 32];
        getrandom::fill(&mut salting).map_err(|error| EngineError::Stopped(error.to_string()))?;
        let shard =
            Shard::new(Fence { partition: PARTITION, epoch }, Keys { sealing: key, salting }, RESTING_BYTES_MAX);
        let loader = Arc::new(Loader::new(store.clone(), key));
        let (commands, received) = mpsc::unbounded_channel();
        let why_stopped = Arc::new(Mutex::new(None));
        let ground = (home, reach);
        let rim =
            Rim::new(shard, store.clone(), loader.clone(), workers, ground, commands.clone(), why_stopped.clone());
        let rim = Mutex::new(Some(tokio::spawn(rim.run(received))));
        Ok(Self { store, loader, key, commands, tickets: AtomicU64::new(1), rim, why_stopped })
    }

    /// Starts an execution. When this returns, it is durable.
    pub async fn submit(&self, request: Request) -> Result<Submitted, EngineError> {
        let execution = new_key(now_ms())?;
        self.submit_as(execution, request).await
    }

    /// Starts an execution under a fresh key of [`new_key`]: a caller that watches the key before misses nothing.
    pub async fn submit_as(&self, execution: ExecutionKey, request: Request) -> Result<Submitted, EngineError> {
        if let Some(existing) = self.existing(&request)? {
            return Ok(Submitted { execution: existing, existed: true });
        }
        let now = now_ms();
        let (plan, stored_plans) = (request.plan.clone(), request.stored_plans());
        let start = request.start(execution);
        let row = row(execution, &start, &plan, now);
        let submission = |ticket| {
            let (start, ticket) = (Box::new(start), Some(ticket));
            Event::Submit(Box::new(Submission { execution, plan, stored_plans, start, row, letter: None, ticket }))
        };
        match self.ask(submission).await {
            Ok(_) => Ok(Submitted { execution, existed: false }),
            Err(EngineError::Exists(execution)) => Ok(Submitted { execution, existed: true }),
            Err(error) => Err(error),
        }
    }

    /// Goes on with an execution that is in the store, whatever the reach.
    pub fn attend(&self, execution: ExecutionKey) {
        let _ = self.commands.send(Command::Attend(execution));
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
        self.take(execution, Input::Decide { instance, gate, decision, by, reason }).await
    }

    /// Sends a named message. False if one of this identity has come before, or nobody can take it any more.
    pub async fn signal(
        &self,
        execution: ExecutionKey,
        id: String,
        name: String,
        payload: Value,
    ) -> Result<bool, EngineError> {
        self.take(execution, Input::Signal { id, name, payload }).await
    }

    /// Asks an execution to end. False if it is ending already.
    pub async fn cancel(&self, execution: ExecutionKey, reason: &str, by: &str) -> Result<bool, EngineError> {
        self.take(execution, Input::Cancel { reason: reason.into(), by: by.into() }).await
    }

    /// Every durable frame of an execution from now on. Read the journal after this to miss none.
    pub fn watch(&self, execution: ExecutionKey) -> mpsc::UnboundedReceiver<Arc<Moment>> {
        let (sender, receiver) = mpsc::unbounded_channel();
        // An engine that has stopped drops the sender, and the watcher's channel closes.
        let _ = self.commands.send(Command::Watch(execution, sender));
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

    fn existing(&self, request: &Request) -> Result<Option<ExecutionKey>, EngineError> {
        if let Some(id) = &request.execution_id
            && let Some(row) = self.store.execution_by_id(id)?
        {
            return Ok(Some(row.key));
        }
        let Some(key) = &request.idempotency_key else { return Ok(None) };
        let row = self.store.execution_by_idempotency_key(request.plan.name.as_deref(), key)?;
        Ok(row.map(|row| row.key))
    }

    async fn take(&self, execution: ExecutionKey, input: Input) -> Result<bool, EngineError> {
        let taken =
            self.ask(|ticket| Event::Take(execution, Queued { input, letter: None, ticket: Some(ticket) })).await?;
        Ok(taken)
    }

    async fn ask(&self, event: impl FnOnce(Ticket) -> Event) -> Result<bool, EngineError> {
        let ticket = Ticket(self.tickets.fetch_add(1, Ordering::Relaxed));
        let (sender, receiver) = oneshot::channel::<Reply>();
        let stopped = || EngineError::Stopped(self.why_stopped().unwrap_or_else(|| "it was drained".into()));
        self.commands.send(Command::Ask(ticket, sender, event(ticket))).map_err(|_| stopped())?;
        match receiver.await.map_err(|_| stopped())? {
            Ok(taken) => Ok(taken.changed),
            Err(ShardError::NoSuchExecution) => Err(EngineError::NoSuchExecution),
            Err(ShardError::Quarantined(why)) => Err(EngineError::Quarantined(why)),
            Err(ShardError::Exists(key)) => Err(EngineError::Exists(key)),
            Err(ShardError::Store(why)) => Err(EngineError::Stopped(why)),
        }
    }
}

/// Milliseconds since 1970 by this machine's clock.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A fresh key.
pub fn new_key(now: u64) -> Result<ExecutionKey, EngineError> {
    let mut entropy = [0; 10];
    getrandom::fill(&mut entropy).map_err(|error| EngineError::Stopped(error.to_string()))?;
    Ok(ExecutionKey::new(now, entropy))
}
