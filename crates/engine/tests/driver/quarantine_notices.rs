//! Quarantined executions, and the executions that wait for them.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use mainspring_effects::Executors;
use mainspring_engine::{
    Engine, inbox,
    journal_loader::Loader,
    quarantine::{self, Act, Place, Released},
    start_request::StartRequest,
};
use mainspring_kernel::{input::Input, key::ExecutionKey, stored_frame::Head, value::Value};
use mainspring_store::prelude::*;
use mainspring_store::{
    Batch, EnqueueRequest, Filter, InboxEntry, InboxMessage, Node, Part, PartOutcome, ReadLimit, memory::MemoryStore,
    partition_of,
};

use super::{
    WAITS, block_on, engine,
    hooked_store::{Call, Hooked},
    lease, plan, request, status, until,
};

const PARENT: &str = r#"{"steps":[{"type":"subworkflow","id":"c","workflow":"child"}]}"#;

/// The node that quarantined a child crashed before it notified the parent, whose partition another node owns.
#[test]
fn the_next_owner_of_a_quarantined_child_notifies_the_parent() {
    let store = MemoryStore::new();
    store.repartition(2).unwrap();
    block_on(async {
        let first = engine(store.clone(), Executors::new(Vec::new()), None);
        let workflows = BTreeMap::from([("child".to_owned(), plan(WAITS))]);
        let (parent, child) = loop {
            let workflows = workflows.clone();
            let parent = first.start(StartRequest { workflows, ..request(PARENT) }).await.unwrap().execution;
            let children = || store.executions(&Filter::default(), None, 99).unwrap().into_iter();
            let child = || children().find(|row| row.parent == Some(parent)).map(|row| row.key);
            until(async || child().is_some()).await;
            if let Some(child) = child().filter(|child| partition_of(*child, 2) != partition_of(parent, 2)) {
                break (parent, child);
            }
        };
        first.drain().await;
        store.quarantine(child, "by a node that is dead").unwrap();
        // Another node owns the partition of the child while this one reads the parent.
        let (place, release) = (String::new(), String::new());
        let other =
            Node { name: "other".into(), address: place, release, decide_version: u32::MAX, accepts_partitions: true };
        store.heartbeat(&other, 60_000).unwrap();
        assert_eq!(store.acquire("other", &[partition_of(child, 2)]).unwrap().len(), 1);
        let second = engine(store.clone(), Executors::new(Vec::new()), lease(900));
        until(async || second.owned_partitions() == [partition_of(parent, 2)].into()).await;
        until(async || second.pending().await.live.contains(&parent)).await;
        assert_eq!(status(&store, parent), "running", "no owner of the child can notify");
        store.leave("other").unwrap();
        until(async || status(&store, parent) == "failed").await;
        let row = store.execution(parent).unwrap().unwrap();
        assert_eq!(row.error.as_deref(), Some("child_quarantined"));
        second.drain().await;
    });
}

/// A parent that waits for a child, which waits for a signal. No engine runs them.
async fn tree(store: &MemoryStore) -> (ExecutionKey, ExecutionKey) {
    let first = engine(store.clone(), Executors::new(Vec::new()), None);
    let workflows = BTreeMap::from([("child".to_owned(), plan(WAITS))]);
    let parent = first.start(StartRequest { workflows, ..request(PARENT) }).await.unwrap().execution;
    let children = || store.executions(&Filter::default(), None, 99).unwrap().into_iter();
    let child = || children().find(|row| row.parent == Some(parent)).map(|row| row.key);
    until(async || child().is_some()).await;
    let child = child().unwrap();
    first.drain().await;
    (parent, child)
}

const ACT: Act<'_> = Act { key: &[1; 32], by: "me", reason: "a test", audit: &[] };

/// Both were quarantined, and the child was ended while its parent could not be notified.
#[test]
fn a_parent_released_after_the_end_of_its_child_is_notified() {
    let store = MemoryStore::new();
    block_on(async {
        let (parent, child) = tree(&store).await;
        for execution in [parent, child] {
            store.quarantine(execution, "a fault of the engine").unwrap();
        }
        let rows = Arc::new(AtomicU32::new(0));
        let counted = rows.clone();
        let hooked = Hooked::on(&store, move |call| {
            counted.fetch_add(u32::from(call == Call::Row), Ordering::SeqCst);
            Ok(())
        });
        let second = engine(hooked, Executors::new(Vec::new()), None);
        until(async || rows.load(Ordering::SeqCst) >= 2).await;
        let loader = Loader::new(Arc::new(store.clone()), [1; 32]);
        let place = Place { store: &store, loader: &loader, data_dir: None };
        quarantine::force_end(place, child, &ACT).unwrap();
        quarantine::release(place, parent, &ACT).unwrap();
        until(async || status(&store, parent) == "failed").await;
        let row = store.execution(parent).unwrap().unwrap();
        assert_eq!(row.error.as_deref(), Some("child_quarantined"));
        second.drain().await;
    });
}

#[test]
fn a_child_that_is_released_before_its_parent_continues() {
    let store = MemoryStore::new();
    let (parent, child) = block_on(tree(&store));
    for execution in [parent, child] {
        store.quarantine(execution, "a fault of the engine").unwrap();
    }
    let loader = Loader::new(Arc::new(store.clone()), [1; 32]);
    let place = Place { store: &store, loader: &loader, data_dir: None };
    let seal = store.head(parent).unwrap().unwrap().head;
    store.change_head(parent, |row| row.head = Head::sealed(&[2; 32], parent, seal.sequence, seal.hash));
    let refused = quarantine::release(place, child, &ACT).unwrap_err().to_string();
    assert!(refused.contains(&parent.to_string()), "whether it is waited for cannot be known: {refused}");
    store.change_head(parent, |row| row.head = seal);
    assert_eq!(quarantine::release(place, child, &ACT).unwrap(), Released::Resumed);
}

#[test]
fn force_end_of_a_child_ignores_a_broken_parent_journal() {
    let store = MemoryStore::new();
    let (parent, child) = block_on(tree(&store));
    store.quarantine(child, "a fault of the engine").unwrap();
    let seal = store.head(parent).unwrap().unwrap().head;
    store.change_head(parent, |row| row.head = Head::sealed(&[2; 32], parent, seal.sequence, seal.hash));
    let loader = Loader::new(Arc::new(store.clone()), [1; 32]);
    quarantine::force_end(Place { store: &store, loader: &loader, data_dir: None }, child, &ACT).unwrap();
    assert!(loader.forced_end(child).unwrap().is_some());
}

/// Another node owned it when the quarantine was recorded, and ran it to its end.
#[test]
fn messages_to_an_ended_quarantined_execution_are_consumed() {
    let store = MemoryStore::new();
    block_on(async {
        let first = engine(store.clone(), Executors::new(Vec::new()), None);
        let signal = |id: &str| Input::Signal { id: id.into(), name: "go".into(), payload: Value::Null };
        let execution = first.start(request(WAITS)).await.unwrap().execution;
        inbox::enqueue(&store, None, &[1; 32], (execution, &signal("one")), None).unwrap();
        until(async || status(&store, execution) == "completed").await;
        store.quarantine(execution, "by a node that did not hold it any more").unwrap();
        inbox::enqueue(&store, None, &[1; 32], (execution, &signal("two")), None).unwrap();
        until(async || !inbox::is_waiting(&store, execution, None).unwrap()).await;
        first.drain().await;
    });
}

/// A parent with many quarantined children is read a few times, and not once per child.
#[test]
fn a_parent_is_read_once_for_many_quarantined_children() {
    const CHILDREN: usize = 12;
    let store = MemoryStore::new();
    block_on(async {
        let first = engine(store.clone(), Executors::new(Vec::new()), None);
        let workflows = BTreeMap::from([("child".to_owned(), plan(WAITS))]);
        let steps: Vec<String> = (0..CHILDREN)
            .map(|number| format!(r#"{{"type":"subworkflow","id":"c{number}","workflow":"child"}}"#))
            .collect();
        let text = format!(
            r#"{{"constraints":{{"maxParallel":100}},"steps":[{{"type":"parallel","id":"all","steps":[{}]}}]}}"#,
            steps.join(",")
        );
        let parent = first.start(StartRequest { workflows, ..request(&text) }).await.unwrap().execution;
        let rows = || store.executions(&Filter::default(), None, 99).unwrap().into_iter();
        let children = || rows().filter(|row| row.parent == Some(parent)).map(|row| row.key);
        until(async || children().count() == CHILDREN).await;
        first.drain().await;
        children().for_each(|child| store.quarantine(child, "a fault of the engine").unwrap());
        let reads = Arc::new(AtomicU32::new(0));
        let counted = reads.clone();
        let hooked = Hooked::on(&store, move |call| {
            counted.fetch_add(u32::from(call == Call::Frames(parent)), Ordering::SeqCst);
            Ok(())
        });
        let second = engine(hooked, Executors::new(Vec::new()), None);
        until(async || status(&store, parent) == "failed").await;
        second.drain().await;
        // Read once to continue it, once for the first child and once for all others, each time in at most three pages.
        let reads = reads.load(Ordering::SeqCst);
        assert!(reads <= CHILDREN as u32, "{reads} reads");
    });
}

/// The parent's journal is long, and the child is released while it is read.
#[test]
fn a_parent_is_not_notified_of_a_child_released_during_the_read() {
    let store = MemoryStore::new();
    let (parent, child) = block_on(tree(&store));
    store.quarantine(child, "a fault of the engine").unwrap();
    let released = store.clone();
    let hooked = Arc::new(Hooked::on(&store, move |call| {
        if call == Call::Frames(parent) {
            let loader = Loader::new(Arc::new(released.clone()), [1; 32]);
            let place = Place { store: &released, loader: &loader, data_dir: None };
            let _ = quarantine::release(place, child, &ACT);
        }
        Ok(())
    }));
    let loader = Loader::new(hooked.clone(), [1; 32]);
    assert!(!quarantine::notify_parent(Place { store: &*hooked, loader: &loader, data_dir: None }, child).unwrap());
    assert!(!inbox::is_waiting(&store, parent, None).unwrap(), "nothing is posted");
}

/// A parent on this node, and a child whose start waits in the inbox of another node, which then loses it.
async fn parent_of_unbegun(store: &MemoryStore) -> (Engine, ExecutionKey, ExecutionKey, InboxMessage) {
    store.repartition(2).unwrap();
    let (place, release) = (String::new(), String::new());
    let other =
        Node { name: "other".into(), address: place, release, decide_version: u32::MAX, accepts_partitions: true };
    store.heartbeat(&other, 600_000).unwrap();
    let fences = store.acquire("other", &[1]).unwrap();
    let here = engine(store.clone(), Executors::new(Vec::new()), lease(900));
    until(async || here.owned_partitions() == [0].into()).await;
    loop {
        let workflows = BTreeMap::from([("child".to_owned(), plan(WAITS))]);
        let request = StartRequest { workflows, ..request(PARENT) };
        let Ok(started) = here.start(request).await else { continue };
        let message =
            || store.inbox(&[1], 0, ReadLimit::of(99)).unwrap().into_iter().find(|found| found.message.id == "start");
        let child = || store.executions(&Filter::default(), None, 99).unwrap();
        let is_known = || child().iter().any(|row| row.parent == Some(started.execution));
        until(async || message().is_some() || is_known()).await;
        let Some(InboxEntry { message, .. }) = message() else { continue };
        let part = Part { consumed: vec!["start".into()], ..Part::empty(message.execution, 1) };
        let batch = Batch { fences, parts: vec![part], ..Batch::default() };
        assert_eq!(store.commit(&batch).unwrap(), [PartOutcome::Durable]);
        return (here, started.execution, message.execution, message);
    }
}

#[test]
fn a_parent_of_a_lost_child_start_ends_after_a_cancel() {
    let store = MemoryStore::new();
    block_on(async {
        let (here, parent, ..) = parent_of_unbegun(&store).await;
        store.leave("other").unwrap();
        until(async || here.owned_partitions().len() == 2).await;
        assert_eq!(status(&store, parent), "running");
        let cancel = Input::Cancel { reason: "why".into(), by: "me".into() };
        inbox::enqueue(&store, None, &[1; 32], (parent, &cancel), None).unwrap();
        until(async || status(&store, parent) == "cancelled").await;
        here.drain().await;
    });
}

#[test]
fn a_waiting_parent_is_notified_of_a_forged_start() {
    let store = MemoryStore::new();
    block_on(async {
        let (here, parent, child, start) = parent_of_unbegun(&store).await;
        // The message of an unrelated execution names this parent: the parent is not notified.
        let other_execution = ExecutionKey([9; 16]);
        for execution in [other_execution, child] {
            let mut forged = InboxMessage { execution, partition: partition_of(execution, 2), ..start.clone() };
            forged.body[1] ^= 1;
            assert!(store.enqueue(&EnqueueRequest::of(&forged, 2)).unwrap());
            if execution == other_execution {
                until(async || !inbox::is_waiting(&store, other_execution, None).unwrap() || forged.partition == 1)
                    .await;
                assert_eq!(status(&store, parent), "running");
            }
        }
        store.leave("other").unwrap();
        until(async || status(&store, parent) == "failed").await;
        let row = store.execution(parent).unwrap().unwrap();
        assert_eq!(row.error.as_deref(), Some("child_not_started"));
        assert!(store.head(child).unwrap().is_none() && store.head(other_execution).unwrap().is_none());
        here.drain().await;
    });
}
