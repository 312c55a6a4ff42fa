//! The driver of an engine: its reads of the inbox, a slow store, and panics.

mod clocks;
mod columns;
mod erasure;
mod failures;
mod hooked_store;
mod inbox;
mod loading;
mod quarantine;
mod quarantine_notices;
mod receipts;
mod silence;
mod undecodable;
mod unfinished;
mod watching;

use std::{sync::Arc, time::Duration};

use mainspring_effects::Executors;
use mainspring_engine::{
    ClusterOptions, Engine, EngineResources, EngineScope, evaluator::InProcess, lease::LeaseTiming,
    start_request::StartRequest,
};
use mainspring_kernel::{
    definition::{Syntax, compile, read},
    key::ExecutionKey,
    plan::Plan,
};
use mainspring_store::prelude::*;
use mainspring_store::{Store, memory::MemoryStore};

/// Waits for a signal.
const WAITS: &str = r#"{"steps":[{"type":"signal","id":"s","signal":"go"}]}"#;

fn plan(definition: &str) -> Arc<Plan> {
    Arc::new(compile(&read(definition.as_bytes(), Syntax::Guess).unwrap()).unwrap().plan)
}

fn request(definition: &str) -> StartRequest {
    StartRequest::new(plan(definition), "me")
}

/// Uses a runtime with several threads, since the store may block.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(work)
}

fn engine(store: impl Store + 'static, executors: Executors, sharing: Option<ClusterOptions>) -> Engine {
    let resources = EngineResources { sharing, ..EngineResources::default() };
    Engine::run(Arc::new(store), [1; 32], (executors, Arc::new(InProcess)), resources, EngineScope::All).unwrap()
}

fn lease(lease_ms: u64) -> Option<ClusterOptions> {
    Some(ClusterOptions { terms: LeaseTiming { lease_ms }, place: String::new() })
}

/// Repeats until a condition holds. The timeout only turns a hang into a failure.
async fn until(is_so: impl AsyncFn() -> bool) {
    let asking = async {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), asking).await.expect("it never comes to be so");
}

fn status(store: &MemoryStore, execution: ExecutionKey) -> String {
    store.execution(execution).unwrap().map_or_else(|| "unknown".into(), |row| row.status)
}
