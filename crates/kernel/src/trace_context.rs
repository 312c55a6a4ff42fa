//! Trace and span ids of executions and attempts (W3C Trace Context).
//!
//! An execution can live for days, across crashes and on several nodes, so random ids would have to be stored and
//! shared. Instead the ids are hashes of execution keys, and every node computes the same ones. A trace id is sent to
//! third parties; the hash does not reveal the execution key. Spans are exported elsewhere.

use alloc::{format, string::String};

use crate::{
    effect::Attempt,
    hash::{Hash, hex},
    key::ExecutionKey,
};

/// A trace id, derived from the key of the root execution by a one-way hash. All of its bytes are uniformly
/// distributed, as samplers that select traces by id require.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(pub [u8; 16]);

/// The id of one span of a trace: a part of a hash of the execution and the attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(pub [u8; 8]);

impl TraceId {
    /// Returns the trace id of an execution tree.
    pub fn of_tree(root: ExecutionKey) -> Self {
        let mut id = [0; 16];
        id.copy_from_slice(&Hash::of_parts(&[b"trace", &root.0]).0[..16]);
        Self(id)
    }
}

impl SpanId {
    /// Returns the id of the span that covers an execution from start to end.
    pub fn of_execution(execution: ExecutionKey) -> Self {
        Self::of_parts(&[b"execution", &execution.0])
    }

    /// Returns the id of the span of an attempt that an executor performs.
    pub fn of_attempt(execution: ExecutionKey, step: &str, number: u32) -> Self {
        Self::of_parts(&[b"attempt", &execution.0, &number.to_be_bytes(), step.as_bytes()])
    }

    /// Returns the id of the span of an attempt that is a child execution. It derives from the child's key alone, so
    /// the child can compute the id of its parent span.
    pub fn of_attempt_with_child(child: ExecutionKey) -> Self {
        Self::of_parts(&[b"child", &child.0])
    }

    fn of_parts(parts: &[&[u8]]) -> Self {
        let mut id = [0; 8];
        id.copy_from_slice(&Hash::of_parts(parts).0[..8]);
        Self(id)
    }
}

/// Returns the `traceparent` header value for requests that the attempt makes, with the sampled flag set
/// (<https://www.w3.org/TR/trace-context/#traceparent-header>).
pub fn traceparent(attempt: &Attempt) -> String {
    let (trace, span) =
        (TraceId::of_tree(attempt.root), SpanId::of_attempt(attempt.execution, &attempt.step, attempt.number));
    format!("00-{}-{}-01", hex(&trace.0), hex(&span.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;
    use alloc::collections::BTreeSet;

    #[test]
    fn span_ids_are_distinct_and_stable() {
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
        // Ids of exported spans must not change between releases.
        assert_eq!(hex(&names[3].0), "9d43be9e70b3801c");
    }

    #[test]
    fn a_traceparent_has_the_form_of_the_recommendation() {
        let attempt = Attempt {
            execution: ExecutionKey([1; 16]),
            root: ExecutionKey([0xab; 16]),
            execution_id: "run".into(),
            organization: None,
            workflow_id: None,
            step: "x".into(),
            number: 1,
            effect: "bash".into(),
            params: Value::Null,
            intent: Hash([0; 32]),
            flags: crate::effect::AttemptFlags::default(),
            handed_out_at: 0,
            workspace: None,
            secrets: crate::secret::SecretUses::default(),
            progress: None,
        };
        assert_eq!(traceparent(&attempt), "00-5d666b77cb23ecc9f52da598dd49b971-9d43be9e70b3801c-01");
    }
}
