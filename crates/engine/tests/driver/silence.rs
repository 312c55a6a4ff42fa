//! A node that cannot write releases its partitions, and a node with nothing to write does not.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};

use mainspring_effects::Executors;
use mainspring_store::prelude::*;
use mainspring_store::{StoreError, memory::MemoryStore};

use crate::{
    block_on, engine,
    hooked_store::{Call, Hooked},
    lease,
    quarantine::{BASH, Steps},
    request, status, until,
};

const LEASE_MS: u64 = 900;

/// The answer to one commit is lost, although it was written. No write follows for a long time.
#[test]
fn an_unanswered_last_commit_does_not_stop_heartbeats() {
    let store = MemoryStore::new();
    let (doubts, heartbeats) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU64::new(0)));
    let (doubting, beating) = (doubts.clone(), heartbeats.clone());
    let hooked = Hooked::on(&store, move |call| match call {
        Call::Committed if doubting.fetch_add(1, Ordering::SeqCst) == 0 => {
            Err(StoreError::Unavailable("the connection broke at COMMIT".into()))
        }
        Call::Heartbeat => {
            beating.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
        _ => Ok(()),
    });
    block_on(async {
        let steps = Steps::new();
        let engine = engine(hooked, Executors::new(vec![steps.clone()]), lease(LEASE_MS));
        until(async || !engine.owned_partitions().is_empty()).await;
        let execution = engine.start(request(BASH)).await.unwrap().execution;
        until(async || steps.started_count() == 1).await;
        let began = std::time::Instant::now();
        until(async || engine.owned_partitions().is_empty() || began.elapsed().as_millis() as u64 > 3 * LEASE_MS).await;
        assert_eq!(
            (engine.owned_partitions().len(), steps.stopped()),
            (1, 0),
            "{} heartbeats",
            heartbeats.load(Ordering::SeqCst)
        );
        steps.end_one();
        until(async || status(&store, execution) == "completed").await;
        engine.drain().await;
    });
}

/// The node's heartbeats succeed, and all of its commits fail.
#[test]
fn a_node_whose_commits_all_fail_releases_its_partitions() {
    let store = MemoryStore::new();
    let hooked = Hooked::on(&store, |call| match call {
        Call::Commit => Err(StoreError::Unavailable("it may only read".into())),
        _ => Ok(()),
    });
    block_on(async {
        let engine = Arc::new(engine(hooked, Executors::new(Vec::new()), lease(LEASE_MS)));
        until(async || !engine.owned_partitions().is_empty()).await;
        let asks = engine.clone();
        let asked = tokio::spawn(async move { asks.start(request(BASH)).await });
        until(async || engine.owned_partitions().is_empty()).await;
        // The start is in the inbox of its future owner, or was refused.
        drop(asked.await);
        let view = store.cluster_view().unwrap();
        assert_eq!(view.nodes.len(), 1, "the node does not leave: its heartbeat is over when its lease is");
        engine.drain().await;
    });
}

/// Another release has upgraded the store in the meantime.
#[test]
fn a_heartbeat_stops_the_node_at_a_newer_store_format() {
    let store = MemoryStore::new();
    let is_newer = Arc::new(AtomicU32::new(0));
    let newer = is_newer.clone();
    let hooked = Hooked::on(&store, move |call| match call {
        Call::Heartbeat if newer.load(Ordering::SeqCst) > 0 => Err(StoreError::Newer { found: 9, readable: 7 }),
        _ => Ok(()),
    });
    block_on(async {
        let engine = engine(hooked, Executors::new(Vec::new()), lease(LEASE_MS));
        until(async || !engine.owned_partitions().is_empty()).await;
        is_newer.store(1, Ordering::SeqCst);
        until(async || engine.why_stopped().is_some()).await;
        let why = engine.why_stopped().unwrap();
        assert_eq!(why, StoreError::Newer { found: 9, readable: 7 }.to_string());
        engine.drain().await;
    });
}

/// A server waits for free disk space. No accepted request is lost, and readiness reports the reason.
#[test]
fn a_node_with_an_embedded_store_waits_for_it_to_be_writable() {
    let store = MemoryStore::new();
    let is_full = Arc::new(AtomicBool::new(true));
    let asked = is_full.clone();
    let hooked = Hooked::on(&store, move |call| match call {
        Call::Commit if asked.load(Ordering::SeqCst) => Err(StoreError::Unavailable("the disk is full".into())),
        _ => Ok(()),
    });
    block_on(async {
        let steps = Steps::new();
        let engine = Arc::new(engine(hooked, Executors::new(vec![steps.clone()]), None));
        let asks = engine.clone();
        let started = tokio::spawn(async move { asks.start(request(BASH)).await });
        until(async || engine.problem().is_some_and(|problem| problem.why.contains("the disk is full"))).await;
        assert_eq!(engine.why_stopped(), None);
        is_full.store(false, Ordering::SeqCst);
        let execution = started.await.unwrap().unwrap().execution;
        until(async || engine.problem().is_none()).await;
        until(async || steps.started_count() == 1).await;
        steps.end_one();
        until(async || status(&store, execution) == "completed").await;
        engine.drain().await;
    });
}
