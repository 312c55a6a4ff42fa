//! The sandboxes of a node: one for each execution, started at its first script, bounded for each organization.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use mainspring_kernel::{effect::Attempt, hash::hex, key::ExecutionKey};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::timeout,
};

use super::{
    limits::{CLEANUP_MAX, SANDBOXES_MAX},
    options::SandboxOptions,
    process::StartError,
    profile::Profile,
    running::{self, Sandbox},
};

/// The sandboxes of a node.
pub(super) struct Sandboxes {
    options: SandboxOptions,
    slots: Mutex<BTreeMap<ExecutionKey, Arc<Slot>>>,
    /// One for each organization that has a sandbox profile.
    rooms: Mutex<BTreeMap<String, Room>>,
    started: AtomicU64,
    /// Sandboxes that have not ended.
    running: watch::Sender<usize>,
    is_closed: AtomicBool,
}

/// The sandbox of an execution. The lock is held while it is started, so that there is only one.
struct Slot {
    organization: String,
    sandbox: tokio::sync::Mutex<Option<Sandbox>>,
}

/// The bound of an organization.
#[derive(Clone)]
struct Room {
    permits: Arc<Semaphore>,
    /// Attempts that wait for the end of a sandbox.
    waiting: Arc<AtomicUsize>,
}

/// Counts an attempt that waits.
struct Waiting(Arc<AtomicUsize>);

impl Sandboxes {
    pub(super) fn new(options: SandboxOptions) -> Arc<Self> {
        Arc::new(Self {
            options,
            slots: Mutex::default(),
            rooms: Mutex::default(),
            started: AtomicU64::new(0),
            running: watch::Sender::new(0),
            is_closed: AtomicBool::new(false),
        })
    }

    /// Returns the sandbox of the attempt's execution. Starts it if there is none.
    pub(super) async fn obtain(
        self: &Arc<Self>,
        profile: &Arc<Profile>,
        attempt: &Attempt,
    ) -> Result<Sandbox, StartError> {
        if self.is_closed.load(Ordering::SeqCst) {
            return Err(StartError::Refused("the node is stopping".into()));
        }
        let (execution, organization) = (attempt.execution, attempt.organization.clone().unwrap_or_default());
        let new = || Arc::new(Slot { organization: organization.clone(), sandbox: tokio::sync::Mutex::new(None) });
        let slot = locked(&self.slots).entry(execution).or_insert_with(new).clone();
        let mut held = slot.sandbox.lock().await;
        if let Some(sandbox) = held.as_ref().filter(|sandbox| sandbox.is_alive()) {
            return Ok(sandbox.clone());
        }
        let room = self.room(&organization);
        let permit = self.permit(&room, &organization).await?;
        let (all, profile, attempt) = (self.clone(), profile.clone(), attempt.clone());
        // In a task of its own, so that a sandbox is ended in order if its attempt is canceled during the start.
        let starting = tokio::spawn(async move { all.start(&profile, &attempt, (room, permit)).await });
        let started = starting.await.map_err(|_| StartError::Failed("the node is stopping".into()));
        let started = started.and_then(|started| started);
        *held = started.as_ref().ok().cloned();
        drop(held);
        drop(slot);
        if started.is_err() {
            self.tidy(execution);
        }
        started
    }

    async fn start(
        self: &Arc<Self>,
        profile: &Arc<Profile>,
        attempt: &Attempt,
        (room, permit): (Room, OwnedSemaphorePermit),
    ) -> Result<Sandbox, StartError> {
        let execution = attempt.execution;
        let workspace = attempt.workspace.clone().unwrap_or_default();
        let name = self.name(execution);
        let started = running::start(profile, &self.options, (name, &workspace), room.waiting).await;
        let (sandbox, running, _) = started?;
        self.running.send_modify(|running| *running += 1);
        let all = self.clone();
        tokio::spawn(async move {
            running.run().await;
            drop(permit);
            all.tidy(execution);
            all.running.send_modify(|running| *running -= 1);
        });
        Ok(sandbox)
    }

    /// Waits until the organization may have one more sandbox. One that is idle is ended for it.
    async fn permit(&self, room: &Room, organization: &str) -> Result<OwnedSemaphorePermit, StartError> {
        if let Ok(permit) = room.permits.clone().try_acquire_owned() {
            return Ok(permit);
        }
        let _waiting = Waiting::new(&room.waiting);
        let slots: Vec<Arc<Slot>> = locked(&self.slots).values().cloned().collect();
        let theirs = slots.iter().filter(|slot| slot.organization == organization);
        let idle = theirs.filter_map(|slot| slot.sandbox.try_lock().ok()?.clone()).find(Sandbox::is_idle);
        idle.iter().for_each(Sandbox::retire);
        drop(slots);
        room.permits.clone().acquire_owned().await.map_err(|_| StartError::Failed("the node is stopping".into()))
    }

    fn room(&self, organization: &str) -> Room {
        let new = || Room { permits: Arc::new(Semaphore::new(SANDBOXES_MAX)), waiting: Arc::default() };
        locked(&self.rooms).entry(organization.to_owned()).or_insert_with(new).clone()
    }

    /// A DNS label that no other sandbox has: the key of the execution, the time and a number.
    fn name(&self, execution: ExecutionKey) -> String {
        let ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let number = self.started.fetch_add(1, Ordering::Relaxed) & 0xffff;
        format!("ms-{}-{ms:x}-{number:x}", hex(&execution.0))
    }

    /// Forgets the slot of an execution without a sandbox, unless an attempt uses it.
    fn tidy(&self, execution: ExecutionKey) {
        let mut slots = locked(&self.slots);
        let is_unused = slots.get(&execution).is_some_and(|slot| {
            let is_dead = |held: &Option<Sandbox>| held.as_ref().is_none_or(|sandbox| !sandbox.is_alive());
            Arc::strong_count(slot) == 1 && slot.sandbox.try_lock().is_ok_and(|held| is_dead(&held))
        });
        if is_unused {
            slots.remove(&execution);
        }
    }

    /// Ends the sandbox of an execution that has ended.
    pub(super) fn retire(&self, execution: ExecutionKey) {
        let slot = locked(&self.slots).get(&execution).cloned();
        if let Some(sandbox) = slot.and_then(|slot| slot.sandbox.try_lock().ok()?.clone()) {
            sandbox.retire();
        }
        self.tidy(execution);
    }

    /// Ends all sandboxes, and starts no more.
    pub(super) async fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        let slots: Vec<Arc<Slot>> = locked(&self.slots).values().cloned().collect();
        for slot in slots {
            if let Some(sandbox) = slot.sandbox.lock().await.take() {
                sandbox.end();
            }
        }
        let mut running = self.running.subscribe();
        let all_ended = running.wait_for(|running| *running == 0);
        // A command that cannot be ended must not keep the node.
        let _ = timeout(self.options.timing.grace + CLEANUP_MAX, all_ended).await;
    }
}

impl Waiting {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
