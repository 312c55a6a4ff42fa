//! Tests of [`Executors`] for attempts that no executor performs.

use mainspring_effects::{Adopted, CancelHandle, Executors};
use mainspring_kernel::{
    effect::{Attempt, Outcome},
    hash::Hash,
    key::ExecutionKey,
    value::Value,
};

/// Another process of the same store may have had an executor for the attempt.
#[tokio::test]
async fn an_attempt_without_an_executor_is_interrupted_not_unstarted() {
    let attempt = Attempt {
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
        key_per_attempt: false,
        handed_out_at: 0,
        workspace: None,
        secrets: mainspring_kernel::secret::SecretUses::default(),
        progress: None,
    };
    let executors = Executors::default();
    assert_eq!(executors.adopt(&attempt).await, Adopted::Interrupted);
    let Outcome::Failed(failure) = executors.perform(&attempt, CancelHandle::pair().1).await else {
        panic!("it was done")
    };
    assert_eq!(failure.code, "no_executor");
    assert!(failure.message.contains("the tool `repair`"), "{failure:?}");
}
