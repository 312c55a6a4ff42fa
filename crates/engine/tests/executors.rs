//! Executors that violate their contract.

use std::{sync::Arc, time::Duration};

use mainspring_effects::{Adopted, AttemptName, BoxFuture, CancelSignal, Executor, Executors};
use mainspring_engine::{
    Engine, EngineResources, EngineScope, evaluator::InProcess, execution_keys::new_key, start_request::StartRequest,
};
use mainspring_kernel::{
    definition::{Syntax, compile, read},
    effect::{Attempt, Outcome},
    record::Ending,
    state::ExecutionStatus,
};
use mainspring_store::memory::MemoryStore;

/// Panics before its future exists, or while it runs.
struct Panics {
    at_once: bool,
}

impl Executor for Panics {
    fn performs(&self, _: &Attempt) -> bool {
        true
    }

    fn perform<'a>(&'a self, _: &'a Attempt, _: CancelSignal) -> BoxFuture<'a, Outcome> {
        assert!(!self.at_once, "on purpose");
        Box::pin(async {
            tokio::task::yield_now().await;
            panic!("on purpose")
        })
    }

    fn adopt<'a>(&'a self, _: &'a Attempt) -> BoxFuture<'a, Adopted> {
        Box::pin(std::future::ready(Adopted::NeverStarted))
    }

    fn forget(&self, _: AttemptName<'_>) {}
}

#[tokio::test]
async fn an_executor_panic_fails_only_its_attempt() {
    for at_once in [true, false] {
        let workers = (Executors::new(vec![Arc::new(Panics { at_once })]), Arc::new(InProcess) as Arc<_>);
        let engine =
            Engine::run(Arc::new(MemoryStore::new()), [1; 32], workers, EngineResources::default(), EngineScope::All)
                .unwrap();
        let definition = r#"{"steps":[{"type":"tool","tool":"breaks","id":"work"}]}"#;
        let plan = compile(&read(definition.as_bytes(), Syntax::Guess).unwrap()).unwrap().plan;
        let key = new_key().unwrap();
        let mut watch = engine.watch(key);
        engine.start_as(key, StartRequest::new(Arc::new(plan), "me")).await.unwrap();
        let end = async { while watch.recv().await.expect("it has an end").status != ExecutionStatus::Failed {} };
        // The timeout only turns a hang into a failure.
        tokio::time::timeout(Duration::from_secs(60), end).await.expect("it comes to its end");
        let state = engine.state(key).unwrap();
        let Some(Ending::Failed { fault, .. }) = &state.end.ending else { panic!("{state:?}") };
        assert_eq!(fault.code, "executor_panicked");
        engine.drain().await;
    }
}
