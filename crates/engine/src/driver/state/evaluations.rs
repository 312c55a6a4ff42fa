//! Permits for evaluations, and the threads for long turns.

use std::{
    num::NonZero,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use crate::{
    evaluator::Evaluator,
    fair::{Bounds, FairSemaphore},
    limits::EVALUATIONS_AT_A_TIME,
    shard::tenants::{Tenant, Turns},
};

/// Priority of the threads for long turns, as a `nice` value: the driver and the commit thread go first.
pub(in crate::driver) const NICE: i32 = 10;

/// Decides one turn.
pub(in crate::driver) type Job = Box<dyn FnOnce() + Send>;

/// Threads for long turns: half as many as processors. Organizations take turns. The threads start with the first long
/// turn and end with the driver.
pub(in crate::driver) struct Deciders {
    pub(in crate::driver) shared: Arc<Shared>,
    pub(in crate::driver) threads: usize,
    pub(in crate::driver) threads_max: usize,
    /// Starts a thread. Tests replace it.
    pub(in crate::driver) start: fn(Arc<Shared>) -> std::io::Result<()>,
}

impl Default for Deciders {
    fn default() -> Self {
        let threads_max = std::thread::available_parallelism().map_or(1, NonZero::get).div_ceil(2);
        Self { shared: Arc::default(), threads: 0, threads_max, start }
    }
}

#[derive(Default)]
pub(in crate::driver) struct Shared {
    pub(in crate::driver) jobs: Mutex<Jobs>,
    pub(in crate::driver) changed: Condvar,
}

#[derive(Default)]
pub(in crate::driver) struct Jobs {
    pub(in crate::driver) waiting: Turns<Job>,
    pub(in crate::driver) is_over: bool,
}

impl Deciders {
    /// Queues a turn. If the system provides no thread, the driver decides the turn itself: a busy machine may refuse
    /// one, and a panic of the driver would affect all executions.
    pub(in crate::driver) fn push(&mut self, tenant: Tenant, job: Job) {
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

pub(in crate::driver) fn start(shared: Arc<Shared>) -> std::io::Result<()> {
    std::thread::Builder::new().name("decide".into()).spawn(move || shared.work()).map(drop)
}

impl Drop for Deciders {
    fn drop(&mut self) {
        self.shared.jobs().is_over = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    pub(in crate::driver) fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::driver) fn work(&self) {
        // On Linux the priority belongs to the thread. If it cannot be lowered, turns are only later.
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
        while let Some(job) = self.next() {
            job();
        }
    }

    /// Returns the next turn, or `None` if the driver has ended.
    pub(in crate::driver) fn next(&self) -> Option<Job> {
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
pub(in crate::driver) struct Evaluations {
    pub(in crate::driver) evaluator: Arc<dyn Evaluator>,
    pub(in crate::driver) permits: FairSemaphore<String>,
    pub(in crate::driver) deciders: Deciders,
}

impl Evaluations {
    pub(in crate::driver) fn new(evaluator: Arc<dyn Evaluator>) -> Self {
        let permits = FairSemaphore::new(Bounds::of(EVALUATIONS_AT_A_TIME));
        Self { evaluator, permits, deciders: Deciders::default() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn turns_are_decided_without_a_thread_if_none_starts() {
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
