//! How executions and attempts are named in distributed tracing (W3C Trace Context): names that everybody can make again.
//!
//! An execution lives for days, over crashes and on several nodes. Nobody can be asked which number was drawn for it, so
//! none is drawn. Traces and spans are named by hashes of what they are: the name of a trace goes to third parties, which
//! learn no key of an execution from it.

use alloc::{format, string::String};

use crate::{
    effect::Attempt,
    hash::{Hash, hex},
    key::ExecutionKey,
    state::State,
    value::Value,
};

/// A trace's name: made of the key of the first execution, and no way back to it. All of its bytes are as good as random,
/// which is what those who keep a part of all traces choose by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(pub [u8; 16]);

/// A span's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(pub [u8; 8]);

/// Where the trigger of an execution that another one has started says whose family it is of.
pub const ROOT_IN_TRIGGER: &str = "rootExecutionKey";

/// The first of the executions that have started each other. One that an older release has started knows only its parent.
pub fn root_of(state: &State) -> ExecutionKey {
    if state.lineage.depth == 0 {
        return state.key;
    }
    let trigger = state.start.as_ref().and_then(|start| start.trigger.get(ROOT_IN_TRIGGER));
    let said = trigger.and_then(Value::as_text).and_then(ExecutionKey::parse);
    said.or(state.lineage.parent.as_ref().map(|parent| parent.execution)).unwrap_or(state.key)
}

impl TraceId {
    /// The trace of a family of executions.
    pub fn of_family(root: ExecutionKey) -> Self {
        let mut id = [0; 16];
        id.copy_from_slice(&Hash::of_parts(&[b"trace", &root.0]).0[..16]);
        Self(id)
    }
}

impl SpanId {
    /// An execution, from its beginning to its end.
    pub fn of_execution(execution: ExecutionKey) -> Self {
        Self::of_parts(&[b"execution", &execution.0])
    }

    /// An attempt that an effect performs.
    pub fn of_attempt(execution: ExecutionKey, step: &str, number: u32) -> Self {
        Self::of_parts(&[b"attempt", &execution.0, &number.to_be_bytes(), step.as_bytes()])
    }

    /// An attempt that is another execution: named by that one, which so knows what it hangs on.
    pub fn of_attempt_with_child(child: ExecutionKey) -> Self {
        Self::of_parts(&[b"child", &child.0])
    }

    fn of_parts(parts: &[&[u8]]) -> Self {
        let mut id = [0; 8];
        id.copy_from_slice(&Hash::of_parts(parts).0[..8]);
        Self(id)
    }
}

/// What an attempt tells those whom it calls of the trace it belongs to: the value of `traceparent`, sampled
/// (<https://www.w3.org/TR/trace-context/#traceparent-header>).
pub fn traceparent(attempt: &Attempt) -> String {
    let (trace, span) =
        (TraceId::of_family(attempt.root), SpanId::of_attempt(attempt.execution, &attempt.step, attempt.number));
    format!("00-{}-{}-01", hex(&trace.0), hex(&span.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn every_span_has_a_name_of_its_own_and_always_the_same() {
        let (a, b) = (ExecutionKey([1; 16]), ExecutionKey([2; 16]));
        let names = [
            SpanId::of_execution(a),
            SpanId::of_execution(b),
            SpanId::of_attempt_with_child(a),
            SpanId::of_attempt(a, "x", 1),
            SpanId::of_attempt(a, "x", 2),
            SpanId::of_attempt(a, "y", 1),
            SpanId::of_attempt(b, "x", 1),
        ];
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        // What has been exported once is exported again under the same name, by whatever release.
        assert_eq!(hex(&names[3].0), "9d43be9e70b3801c");
    }

    #[test]
    fn a_traceparent_has_the_form_of_the_recommendation() {
        let attempt = Attempt {
            execution: ExecutionKey([1; 16]),
            root: ExecutionKey([0xab; 16]),
            execution_id: "run".into(),
            organization: None,
            step: "x".into(),
            number: 1,
            effect: "bash".into(),
            params: Value::Null,
            intent: Hash([0; 32]),
            key_per_attempt: false,
            handed_out_at: 0,
            workspace: None,
        };
        assert_eq!(traceparent(&attempt), "00-5d666b77cb23ecc9f52da598dd49b971-9d43be9e70b3801c-01");
    }
}
