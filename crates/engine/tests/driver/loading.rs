//! Loads of journals of several organizations on one node.

use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::Duration,
};

use mainspring_effects::Executors;
use mainspring_engine::start_request::StartRequest;
use mainspring_kernel::{key::ExecutionKey, value::Value};
use mainspring_store::memory::MemoryStore;

use super::{
    WAITS, block_on, engine,
    hooked_store::{Call, Hooked},
    request, status, until,
};

/// Longer than any test takes on a busy machine.
const BOUND: Duration = Duration::from_secs(30);

/// Executions of one organization whose journals take long to read.
const GREEDY: usize = 12;

fn of(organization: &str) -> StartRequest {
    let trigger = Value::map([("type", "manual".into()), ("organizationId", organization.into())]);
    StartRequest { trigger, ..request(WAITS) }
}

/// Blocks reads until it is opened.
#[derive(Default)]
struct Gate {
    /// The number of blocked reads, and if the gate is open.
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

impl Gate {
    fn pass(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 += 1;
        while !state.1 {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn waiting(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    fn open(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.changed.notify_all();
    }
}

/// Opens the gate even if the test fails, since blocked threads would keep the process running.
struct Opening(Arc<Gate>);

impl Drop for Opening {
    fn drop(&mut self) {
        self.0.open();
    }
}

#[test]
fn slow_loads_of_one_organization_do_not_delay_another() {
    let (store, gate) = (MemoryStore::new(), Arc::new(Gate::default()));
    block_on(async {
        let _opening = Opening(gate.clone());
        let first = engine(store.clone(), Executors::new(Vec::new()), None);
        let mut greedy = Vec::new();
        for _ in 0..GREEDY {
            greedy.push(first.start(of("greedy")).await.unwrap().execution);
        }
        let modest = first.start(of("modest")).await.unwrap().execution;
        first.drain().await;
        let (slow, at) = (greedy.clone(), gate.clone());
        let hooked = Hooked::on(&store, move |call| {
            if matches!(call, Call::Frames(execution) if slow.contains(&execution)) {
                at.pass();
            }
            Ok(())
        });
        let second = Arc::new(engine(hooked, Executors::new(Vec::new()), None));
        let go = |execution: ExecutionKey| {
            let engine = second.clone();
            tokio::spawn(async move { engine.signal(execution, "1".into(), "go".into(), Value::Null).await })
        };
        let all: Vec<_> = greedy.iter().map(|execution| go(*execution)).collect();
        until(async || gate.waiting() >= 4).await;
        let taken = tokio::time::timeout(BOUND, go(modest)).await.expect("it waits for the journals of another");
        assert!(taken.unwrap().unwrap());
        assert_eq!(status(&store, modest), "completed");
        assert!(gate.waiting() < GREEDY / 2, "one organization has so many at a time: {}", gate.waiting());
        gate.open();
        for signal in all {
            assert!(signal.await.unwrap().unwrap());
        }
        second.drain().await;
    });
}
