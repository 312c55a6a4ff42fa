//! Quarantined executions, and those that wait for them.

use std::collections::BTreeMap;

use mainspring_effects::Executors;
use mainspring_engine::request::Request;
use mainspring_store::{Filter, Node, Store, memory::MemoryStore, partition_of};

use super::{WAITS, block_on, engine, lease, plan, request, status, until};

const PARENT: &str = r#"{"steps":[{"type":"subworkflow","id":"c","workflow":"child"}]}"#;

/// The node that quarantined a child died before it told the parent, which another node holds.
#[test]
fn a_parent_is_told_by_whoever_comes_to_hold_the_quarantined_child() {
    let store = MemoryStore::new();
    store.repartition(2).unwrap();
    block_on(async {
        let first = engine(store.clone(), Executors::new(Vec::new()), None);
        let workflows = BTreeMap::from([("child".to_owned(), plan(WAITS))]);
        let (parent, child) = loop {
            let workflows = workflows.clone();
            let parent = first.submit(Request { workflows, ..request(PARENT) }).await.unwrap().execution;
            let children = || store.executions(&Filter::default(), None, 99).unwrap().into_iter();
            let child = || children().find(|row| row.parent == Some(parent)).map(|row| row.key);
            until(async || child().is_some()).await;
            if let Some(child) = child().filter(|child| partition_of(*child, 2) != partition_of(parent, 2)) {
                break (parent, child);
            }
        };
        first.drain().await;
        store.quarantine(child, "by a node that is dead").unwrap();
        // Another node holds the partition of the child while this one reads the parent.
        let (place, release) = (String::new(), String::new());
        let other = Node { name: "other".into(), place, release, decide_version: u32::MAX };
        store.beat(&other, 60_000).unwrap();
        assert_eq!(store.take("other", &[partition_of(child, 2)]).unwrap().len(), 1);
        let second = engine(store.clone(), Executors::new(Vec::new()), lease(900));
        until(async || second.held() == [partition_of(parent, 2)].into()).await;
        until(async || second.pending().await.live.contains(&parent)).await;
        assert_eq!(status(&store, parent), "running", "nobody holds the child who could tell");
        store.leave("other").unwrap();
        until(async || status(&store, parent) == "failed").await;
        let row = store.execution(parent).unwrap().unwrap();
        assert_eq!(row.error.as_deref(), Some("child_quarantined"));
        second.drain().await;
    });
}
