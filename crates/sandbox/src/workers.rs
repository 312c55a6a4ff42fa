//! A pool of processes that run untrusted code.
//!
//! The interpreter's limits cannot end a native call that does not check them. The pool kills the worker then: the call
//! gets its fault, and the next call gets a new process. A worker shares nothing with this process except a pair of
//! sockets.

mod link;
mod share;
mod spawner;

use crate::fault::{Fault, FaultKind};
use crate::javascript::time_exceeded;
use crate::limits::{
    CALLS_PER_WORKER_MAX, EARLY_CALLS_MAX, IDLE_MAX, PREPARATION_MAX, START_MAX, WALL_GRACE, WALL_MS_MAX,
    WORKER_WAIT_MAX, WORKERS_DEFAULT_MAX,
};
use crate::request::{Call, Request};
use crate::response::Response;
use crate::wire::Message;
pub use link::WorkerCommand;
use link::{Link, Lost};
use share::{Place, Share};
use spawner::Spawner;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A pool of workers. All methods may be called from any thread.
///
/// A worker is started on demand and answers calls of one tenant only. It ends after [`CALLS_PER_WORKER_MAX`] calls,
/// after [`IDLE_MAX`] without a call, when another tenant needs its slot, and with the pool or this process.
pub struct Workers {
    spawner: Spawner,
    shared: Arc<Shared>,
}

/// The state shared by calling threads and the thread that starts workers.
struct Shared {
    share: Mutex<Share<Worker>>,
    /// Notified whenever a slot is taken or released.
    changed: Condvar,
}

/// A worker with its age.
struct Worker {
    link: Link,
    calls: u32,
    /// Calls that arrived while the worker prepared for them, since a second worker was last requested.
    early_calls: u32,
    idle_since: Instant,
}

impl Worker {
    fn new(link: Link) -> Worker {
        Worker { link, calls: 0, early_calls: 0, idle_since: Instant::now() }
    }
}

impl Workers {
    /// Makes a pool with a worker for each core, at most four.
    pub fn new(command: WorkerCommand) -> Workers {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Workers::with_count(command, cores.min(WORKERS_DEFAULT_MAX))
    }

    /// Makes a pool of at most `workers_max` workers for one tenant, at least one. The same number of slots is reserved
    /// for tenants that have no worker.
    pub fn with_count(command: WorkerCommand, workers_max: usize) -> Workers {
        let shared = Arc::new(Shared { share: Mutex::new(Share::new(workers_max)), changed: Condvar::new() });
        let tidied = shared.clone();
        Workers { spawner: Spawner::new(command, Arc::new(move || tidied.end_idle())), shared }
    }

    /// Answers a request of a tenant. Waits at most [`WORKER_WAIT_MAX`] for a worker, then at most the wall limit of
    /// the request and a second for its answer.
    ///
    /// A worker that dies unexpectedly gives the fault `crashed`. One that died before it had read the request is
    /// silently replaced once.
    pub fn call(&self, tenant: &str, request: &Request) -> Response {
        self.call_within(tenant, request, WORKER_WAIT_MAX)
            .map_or_else(|busy| Response::of(Err(busy)), |(answer, _)| answer)
    }

    /// As [`call`](Self::call), with a bound on the wait for a worker. Also returns the duration of that wait.
    ///
    /// # Errors Fails with `unavailable` if no worker was free in time, or if too many calls of the tenant wait
    /// already.
    pub fn call_within(
        &self,
        tenant: &str,
        request: &Request,
        wait_max: Duration,
    ) -> Result<(Response, Duration), Fault> {
        let bytes = request.to_bytes();
        let wall = Duration::from_millis(request.limits.wall_ms_max.min(WALL_MS_MAX)) + WALL_GRACE;
        let (mut retried, mut waited) = (false, Duration::ZERO);
        loop {
            let began = Instant::now();
            let place = self.shared.place(tenant, began + wait_max)?;
            let mut worker = match self.worker(tenant, place) {
                Ok(worker) => worker,
                Err(fault) => return Ok((Response::of(Err(fault)), waited)),
            };
            waited += began.elapsed();
            let lost = match worker.link.ask(&bytes, Instant::now() + START_MAX, wall) {
                Ok(answer) => {
                    worker.calls += 1;
                    self.start_second(tenant, &mut worker);
                    let is_spent = worker.calls >= CALLS_PER_WORKER_MAX;
                    self.shared.release(tenant, (!is_spent).then_some(worker));
                    return Ok((answer, waited));
                }
                Err(lost) => lost,
            };
            drop(worker);
            self.shared.release(tenant, None);
            if lost == Lost::BeforeReading && !retried {
                retried = true;
                continue;
            }
            return Ok((Response::of(Err(fault_of(&lost, request))), waited));
        }
    }

    /// Returns the restrictions of a worker, as reported by one of them.
    pub fn hello(&self) -> Response {
        self.call("", &Request { call: Call::Hello, limits: crate::Limits::default() })
    }

    /// Returns the worker for a slot of this tenant: an idle one or a new one.
    fn worker(&self, tenant: &str, place: Place<Worker>) -> Result<Worker, Fault> {
        match place {
            Place::Idle(mut worker) => {
                worker.early_calls += u32::from(worker.idle_since.elapsed() < PREPARATION_MAX);
                Ok(worker)
            }
            Place::New(ended) => {
                drop(ended);
                let started = self.spawner.start().inspect_err(|_| self.shared.release(tenant, None))?;
                Ok(Worker::new(started))
            }
        }
    }

    /// Starts a second worker for a tenant whose calls often arrive while its only worker prepares for the next call.
    fn start_second(&self, tenant: &str, worker: &mut Worker) {
        if worker.early_calls < EARLY_CALLS_MAX {
            return;
        }
        worker.early_calls = 0;
        if !self.shared.share().has_room_for_second(tenant) {
            return;
        }
        let (shared, tenant) = (self.shared.clone(), tenant.to_owned());
        self.spawner.start_in_background(move |link| {
            let rejected = shared.share().add_second(&tenant, Worker::new(link));
            // Dropped without the lock: the drop waits for the process.
            drop(rejected);
        });
    }
}

impl Shared {
    /// Waits for a slot of the pool.
    fn place(&self, tenant: &str, deadline: Instant) -> Result<Place<Worker>, Fault> {
        let busy = |why: &str| {
            let message = format!("No worker was free for this call: {why}. Try again when fewer calls run.");
            Fault::new(FaultKind::Unavailable, message)
        };
        let mut share = self.share();
        let ticket = share.wait(tenant).ok_or_else(|| busy("too many calls of its organization wait already"))?;
        loop {
            if let Some(place) = share.take(tenant, ticket) {
                // The next waiting call may get a slot as well.
                self.changed.notify_all();
                return Ok(place);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                share.leave(tenant, ticket);
                self.changed.notify_all();
                return Err(busy("others have kept all of them for as long as a call may wait"));
            }
            share = self.changed.wait_timeout(share, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Releases a slot, and keeps its worker if it can answer more calls.
    fn release(&self, tenant: &str, worker: Option<Worker>) {
        let worker = worker.map(|worker| Worker { idle_since: Instant::now(), ..worker });
        let mut share = self.share();
        share.release(tenant, worker);
        drop(share);
        self.changed.notify_all();
    }

    fn end_idle(&self) {
        let over = self.share().end_idle(|worker| worker.idle_since.elapsed() >= IDLE_MAX);
        // Ending a worker waits for its process, so it happens without the lock.
        drop(over);
    }

    /// Ignores poisoning: no code under the lock can leave the state inconsistent.
    fn share(&self) -> MutexGuard<'_, Share<Worker>> {
        self.share.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fault_of(lost: &Lost, request: &Request) -> Fault {
    let crashed = |what: &str| {
        let message = format!("The worker {what}. The code was ended with it, and nothing else was harmed.");
        Fault::new(FaultKind::Crashed, message)
    };
    match lost {
        Lost::BeforeReading => crashed("died before it had read the request"),
        Lost::Died(how) => crashed(&format!("died: {how}")),
        Lost::TooSlow => Fault::new(FaultKind::TimeExceeded, time_exceeded(&request.limits)),
        Lost::Garbled => crashed("answered with something that is no answer"),
    }
}
