//! Tests of [`Executors`]: attempts that no executor performs, and outcomes of calls that were held open.

use std::sync::Arc;

use mainspring_effects::{
    Adopted, AttemptName, BoxFuture, CancelHandle, CancelSignal, Executor, Executors,
    secrets::{Reading, SecretSource, SecretUser, SecretValue},
};
use mainspring_kernel::{
    effect::{Attempt, AttemptFlags, Outcome},
    hash::Hash,
    key::ExecutionKey,
    secret::{PlacedSecret, SecretReference, SecretUses},
    value::Value,
};

fn attempt() -> Attempt {
    Attempt {
        execution: ExecutionKey([5; 16]),
        root: ExecutionKey([5; 16]),
        execution_id: "nightly-42".into(),
        organization: None,
        workflow_id: None,
        step: "build".into(),
        number: 1,
        effect: "tool".into(),
        params: Value::map([("tool", "repair".into())]),
        intent: Hash([0xab; 32]),
        flags: AttemptFlags::default(),
        handed_out_at: 0,
        workspace: None,
        secrets: SecretUses::default(),
        progress: None,
    }
}

const VALUE: &str = "hunter2hunter2";

/// Holds each call open, and ends it with the value of its secret.
struct Holds;

impl Executor for Holds {
    fn performs(&self, _: &Attempt) -> bool {
        true
    }

    fn perform<'a>(&'a self, _: &'a Attempt, _: CancelSignal) -> BoxFuture<'a, Outcome> {
        Box::pin(async { Outcome::Interrupted })
    }

    fn watch<'a>(&'a self, _: &'a Attempt, _: CancelSignal) -> BoxFuture<'a, Option<Outcome>> {
        Box::pin(async { Some(Outcome::Done(format!("it is {VALUE}").as_str().into())) })
    }

    fn adopt<'a>(&'a self, _: &'a Attempt) -> BoxFuture<'a, Adopted> {
        Box::pin(async { Adopted::Interrupted })
    }

    fn forget(&self, _: AttemptName<'_>) {}
}

struct OneSecret;

impl SecretSource for OneSecret {
    fn read<'a>(&'a self, _: &'a str, _: &'a SecretUser) -> Reading<'a> {
        Box::pin(async { Ok(SecretValue::new(VALUE).unwrap()) })
    }
}

#[tokio::test]
async fn the_result_of_a_detached_call_is_redacted() {
    let reference = SecretReference { name: "TOKEN".into(), prefix: String::new() };
    let placed = PlacedSecret { parameter: "env".into(), key: "TOKEN".into(), reference };
    let attempt = Attempt { secrets: SecretUses { workflow: None, references: vec![placed] }, ..attempt() };
    let executors = Executors::new(vec![Arc::new(Holds)]).with_secrets(Some(Arc::new(OneSecret)));
    let outcome = executors.watch(&attempt, CancelHandle::pair().1).await;
    assert_eq!(outcome, Some(Outcome::Done("it is ***".into())));
}

/// Another process of the same store may have had an executor for the attempt.
#[tokio::test]
async fn an_attempt_without_an_executor_is_interrupted() {
    let attempt = attempt();
    let executors = Executors::default();
    assert_eq!(executors.adopt(&attempt).await, Adopted::Interrupted);
    let Outcome::Failed(failure) = executors.perform(&attempt, CancelHandle::pair().1).await else {
        panic!("it was done")
    };
    assert_eq!(failure.code, "no_executor");
    assert!(failure.message.contains("the tool `repair`"), "{failure:?}");
}
