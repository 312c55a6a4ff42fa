//! The bound of the unfinished executions of an organization.

use std::{collections::BTreeMap, sync::Arc};

use mainspring_effects::Executors;
use mainspring_engine::{
    Engine, EngineError, EngineResources, EngineScope,
    admission::{Bounds, Limits},
    evaluator::InProcess,
    inbox::enqueue_start,
    start_request::StartRequest,
};
use mainspring_kernel::{input::Input, value::Value};
use mainspring_store::prelude::*;
use mainspring_store::{ReadLimit, Store, memory::MemoryStore};

use super::{WAITS, block_on, plan, request, status, until};

const PARENT: &str = r#"{"steps":[{"type":"signal","id":"s","signal":"go"},
    {"type":"subworkflow","id":"c","workflow":"child"}]}"#;

struct Three;

impl Limits for Three {
    fn of(&self, _: &dyn Store, _: &str) -> Result<Bounds, String> {
        Ok(Bounds { user: 100, organization: 100, workflow: None, live: 3 })
    }
}

fn of_organization(definition: &str) -> StartRequest {
    let trigger = Value::map([("type", "manual".into()), ("organizationId", "o".into())]);
    let workflows = BTreeMap::from([("child".to_owned(), plan(WAITS))]);
    StartRequest { trigger, workflows, ..request(definition) }
}

#[test]
fn starts_and_child_steps_fail_at_the_bound() {
    let store = MemoryStore::new();
    block_on(async {
        let workers = (Executors::new(Vec::new()), Arc::new(InProcess) as Arc<_>);
        let resources = EngineResources { limits: Some(Arc::new(Three)), ..EngineResources::default() };
        let engine = Engine::run(Arc::new(store.clone()), [1; 32], workers, resources, EngineScope::All).unwrap();
        let parent = engine.start(of_organization(PARENT)).await.unwrap().execution;
        // The first start requests a count.
        let mut others = Vec::new();
        let refused = loop {
            match engine.start(of_organization(WAITS)).await {
                Ok(submitted) => others.push(submitted.execution),
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, EngineError::TooMany(3)), "{refused}");
        assert!(others.len() >= 2, "{others:?}");
        let payload = Value::Null;
        let go = Input::Signal { id: "1".into(), name: "go".into(), payload };
        assert!(engine.take(parent, go, None).await.unwrap());
        until(async || status(&store, parent) == "failed").await;
        let row = store.execution(parent).unwrap().unwrap();
        assert!(row.error.is_some_and(|why| why.contains("organization_executions_exceeded:3")));
        until(async || store.inbox(&[0], 0, ReadLimit::of(9)).unwrap().is_empty()).await;
        assert_eq!(store.executions(&Default::default(), None, 99).unwrap().len(), others.len() + 1);
        // There is room again after some have ended.
        for other in others {
            assert!(engine.cancel(other, "enough", "me").await.unwrap());
        }
        until(async || engine.start(of_organization(WAITS)).await.is_ok()).await;
        engine.drain().await;
    });
}

/// Detached starts stay in the inbox at the bound, and all of them start in the end.
#[test]
fn detached_starts_wait_in_the_inbox_at_the_bound() {
    let store = MemoryStore::new();
    block_on(async {
        let workers = (Executors::new(Vec::new()), Arc::new(InProcess) as Arc<_>);
        let resources = EngineResources { limits: Some(Arc::new(Three)), ..EngineResources::default() };
        let engine = Engine::run(Arc::new(store.clone()), [1; 32], workers, resources, EngineScope::All).unwrap();
        let mut first = Vec::new();
        while let Ok(submitted) = engine.start(of_organization(WAITS)).await {
            first.push(submitted.execution);
        }
        let post = |_| enqueue_start(&store, None, of_organization(WAITS), &[1; 32]).unwrap();
        let posted: Vec<_> = (0..10).map(post).collect();
        let begun = || posted.iter().filter(|execution| store.head(**execution).unwrap().is_some()).count();
        // These executions started before they were counted. One remains, which leaves room for two.
        for execution in &first[1..] {
            assert!(engine.cancel(*execution, "enough", "me").await.unwrap());
        }
        until(async || begun() > 0).await;
        assert!(begun() < posted.len(), "all began at once");
        until(async || {
            for execution in posted.iter().filter(|execution| status(&store, **execution) == "running") {
                assert!(engine.cancel(*execution, "enough", "me").await.unwrap());
            }
            posted.iter().all(|execution| status(&store, *execution) == "cancelled")
        })
        .await;
        engine.drain().await;
    });
}
