//! Turns that are processed outside the driver: turns that wait for functions, and long turns.

use std::{
    num::NonZero,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use mainspring_kernel::{key::ExecutionKey, limits::TURN_EVALUATION_MS_MAX, state::State};

use super::{Command, Driver};
use crate::{
    evaluator::{Begun, Evaluator, ForTenant, Rest, Suspended, tenant_of},
    fair::{Bounds, FairSemaphore, QueueFull},
    limits::EVALUATIONS_AT_A_TIME,
    shard::{
        Event, panics,
        tenants::{Tenant, Turns},
    },
};

/// Priority of the threads for long turns, as a `nice` value: the driver and the commit thread go first.
const NICE: i32 = 10;

/// Decides one turn.
type Job = Box<dyn FnOnce() + Send>;

/// Threads for long turns: half as many as processors. Organizations take turns. The threads start with the first long
/// turn and end with the driver.
struct Deciders {
    shared: Arc<Shared>,
    threads: usize,
    threads_max: usize,
    /// Starts a thread. Tests replace it.
    start: fn(Arc<Shared>) -> std::io::Result<()>,
}

impl Default for Deciders {
    fn default() -> Self {
        let threads_max = std::thread::available_parallelism().map_or(1, NonZero::get).div_ceil(2);
        Self { shared: Arc::default(), threads: 0, threads_max, start }
    }
}

#[derive(Default)]
pub(super) struct Shared {
    jobs: Mutex<Jobs>,
    changed: Condvar,
}

#[derive(Default)]
struct Jobs {
    waiting: Turns<Job>,
    is_over: bool,
}

impl Deciders {
    /// Queues a turn. If the system provides no thread, the driver decides the turn itself: a busy machine may refuse
    /// one, and a panic of the driver would affect all executions.
    fn push(&mut self, tenant: Tenant, job: Job) {
        if self.threads < self.threads_max {
            match (self.start)(self.shared.clone()) {
                Ok(()) => self.threads += 1,
                Err(error) => tracing::debug!(%error, "a thread that decides long turns could not be started"),
            }
        }
        if self.threads == 0 {
            return job();
        }
        self.shared.jobs().waiting.push(tenant, job);
        self.shared.changed.notify_one();
    }
}

fn start(shared: Arc<Shared>) -> std::io::Result<()> {
    std::thread::Builder::new().name("decide".into()).spawn(move || shared.work()).map(drop)
}

impl Drop for Deciders {
    fn drop(&mut self) {
        self.shared.jobs().is_over = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        // On Linux the priority belongs to the thread. If it cannot be lowered, turns are only later.
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
        while let Some(job) = self.next() {
            job();
        }
    }

    /// Returns the next turn, or `None` if the driver has ended.
    fn next(&self) -> Option<Job> {
        let mut jobs = self.jobs();
        loop {
            if jobs.is_over {
                return None;
            }
            if let Some(job) = jobs.waiting.pop() {
                return Some(job);
            }
            jobs = self.changed.wait(jobs).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Evaluations in progress, and the threads for long turns.
pub(super) struct Evaluations {
    evaluator: Arc<dyn Evaluator>,
    permits: FairSemaphore<String>,
    deciders: Deciders,
}

impl Evaluations {
    pub(super) fn new(evaluator: Arc<dyn Evaluator>) -> Self {
        let permits = FairSemaphore::new(Bounds::of(EVALUATIONS_AT_A_TIME));
        Self { evaluator, permits, deciders: Deciders::default() }
    }
}

impl Driver {
    /// Evaluates untrusted code on a thread of its own, while the shard continues with other executions.
    pub(super) fn evaluate(&mut self, execution: ExecutionKey, evaluation: u64, suspended: Suspended) {
        if matches!(suspended.rest, Rest::Whole(_)) {
            return self.decide_elsewhere(execution, evaluation, suspended);
        }
        let (evaluator, commands) = (self.evaluations.evaluator.clone(), self.commands.clone());
        let (time, evaluations) = (self.telemetry.metrics.evaluation_time.clone(), self.evaluations.permits.clone());
        let tenant = tenant_of(&suspended.state).to_owned();
        let request = evaluations.acquire(tenant.clone());
        tokio::spawn(async move {
            let permit = match request {
                Ok(request) => Some(request.await),
                Err(QueueFull) => None,
            };
            tokio::task::spawn_blocking(move || {
                let began = std::time::Instant::now();
                let plan = suspended.state.plan.clone();
                let evaluator = ForTenant { evaluator: &*evaluator, tenant: &tenant };
                let mut is_over = || began.elapsed() >= Duration::from_millis(TURN_EVALUATION_MS_MAX);
                // A panic loses the state, which is not needed: the execution is quarantined.
                let finished = catch_unwind(AssertUnwindSafe(|| suspended.finish(&evaluator, &mut is_over)));
                let finished =
                    finished.unwrap_or_else(|panic| (State::new(execution, plan), Err(panics::why(&*panic))));
                let finished = Box::new(finished);
                time.record(began.elapsed());
                drop(permit);
                let _ = commands.send(Event::Evaluated { execution, evaluation, finished }.into());
            });
        });
    }

    fn decide_elsewhere(&mut self, execution: ExecutionKey, evaluation: u64, suspended: Suspended) {
        let (commands, tenant) = (self.commands.clone(), self.node.shard().tenant_key(execution));
        let decide = move || {
            let plan = suspended.state.plan.clone();
            let begun = catch_unwind(AssertUnwindSafe(|| suspended.begin()));
            let begun = begun.unwrap_or_else(|panic| {
                Begun::Finished(Box::new((State::new(execution, plan), Err(panics::why(&*panic)))))
            });
            let _ = commands.send(match begun {
                Begun::Finished(finished) => Event::Evaluated { execution, evaluation, finished }.into(),
                Begun::Paused(suspended) => Command::Evaluate(execution, evaluation, suspended),
            });
        };
        self.evaluations.deciders.push(tenant, Box::new(decide));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn turns_are_decided_also_where_no_thread_can_be_started() {
        let (sender, receiver) = mpsc::channel();
        let job = |number: u32| -> Job {
            let sender = sender.clone();
            Box::new(move || sender.send(number).expect("the test listens"))
        };
        let no_thread = |_| Err(std::io::ErrorKind::WouldBlock.into());
        let mut deciders = Deciders::default();
        (deciders.start, deciders.threads_max) = (no_thread, 2);
        deciders.push(Tenant::default(), job(1));
        assert_eq!(receiver.try_recv(), Ok(1));
        deciders.start = start;
        deciders.push(Tenant::default(), job(2));
        assert_eq!(receiver.recv(), Ok(2));
        deciders.start = no_thread;
        deciders.push(Tenant::default(), job(3));
        assert_eq!((receiver.recv(), deciders.threads), (Ok(3), 1), "one thread is enough");
    }
}
