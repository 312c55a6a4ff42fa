//! A pool of processes that run strangers' code.
//!
//! What the interpreter's own limits cannot end, a native call that never looks at them, ends here: the process is
//! killed, the call has its fault, and the next call gets a new process. Nothing is shared but a pair of sockets.

mod keeper;
mod link;

use crate::answer::Answer;
use crate::fault::{Fault, FaultKind};
use crate::javascript::time_exceeded;
use crate::limits::{START_MAX, WALL_GRACE, WALL_MS_MAX, WORKERS_DEFAULT_MAX};
use crate::request::{Call, Request};
use crate::wire::Message;
use keeper::Keeper;
use link::{Link, Lost};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How a worker is started: a program that calls [`worker::serve`](crate::worker::serve) with its standard streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerCommand {
    /// The program; `/proc/self/exe` for the one that runs.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

/// A pool of workers. Shared by reference; every method may be called from any thread.
///
/// Workers are started when they are needed, used again, and replaced when they died. Dropping the pool ends them, and
/// so does the kernel when this process ends.
pub struct Workers {
    workers_max: usize,
    keeper: Keeper,
    state: Mutex<State>,
    /// Told whenever a worker is put back or given up.
    freed: Condvar,
}

#[derive(Default)]
struct State {
    idle: Vec<Link>,
    /// Workers that are idle, in use, or about to be started.
    alive: usize,
}

impl Workers {
    /// A pool of as many workers as there are cores, at most four.
    pub fn new(command: WorkerCommand) -> Workers {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Workers::with_count(command, cores.min(WORKERS_DEFAULT_MAX))
    }

    /// A pool of at most `workers_max` workers, and at least one.
    pub fn with_count(command: WorkerCommand, workers_max: usize) -> Workers {
        Workers {
            workers_max: workers_max.max(1),
            keeper: Keeper::new(command),
            state: Mutex::default(),
            freed: Condvar::new(),
        }
    }

    /// Answers a request. Blocks until a worker is free, then for at most the wall limit of the request and a second.
    ///
    /// A worker that dies unasked is the fault `crashed`; one that died before it had read the request is replaced once
    /// without a word.
    pub fn call(&self, request: &Request) -> Answer {
        let bytes = request.to_bytes();
        let wall = Duration::from_millis(request.limits.wall_ms_max.min(WALL_MS_MAX)) + WALL_GRACE;
        let mut retried = false;
        loop {
            let mut link = match self.acquire() {
                Ok(link) => link,
                Err(fault) => return Answer::of(Err(fault)),
            };
            let answer = link.ask(&bytes, Instant::now() + START_MAX, wall);
            let lost = match answer {
                Ok(answer) => {
                    self.release(Some(link));
                    return answer;
                }
                Err(lost) => lost,
            };
            drop(link);
            self.release(None);
            if lost == Lost::BeforeReading && !retried {
                retried = true;
                continue;
            }
            return Answer::of(Err(fault_of(&lost, request)));
        }
    }

    /// What holds the workers, as one of them says.
    pub fn hello(&self) -> Answer {
        self.call(&Request { call: Call::Hello, limits: crate::Limits::default() })
    }

    fn acquire(&self) -> Result<Link, Fault> {
        let mut state = self.state();
        loop {
            if let Some(link) = state.idle.pop() {
                return Ok(link);
            }
            if state.alive < self.workers_max {
                break;
            }
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.alive += 1;
        drop(state);
        self.keeper.start().inspect_err(|_| self.release(None))
    }

    /// Puts a worker back, or gives up its place.
    fn release(&self, link: Option<Link>) {
        let mut state = self.state();
        match link {
            Some(link) => state.idle.push(link),
            None => state.alive -= 1,
        }
        self.freed.notify_one();
    }

    /// Nothing that runs under the lock can leave the state half-changed.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
